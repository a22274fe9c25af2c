//! The session of a conversation: begun, or found again.

use super::question::Question;
use crate::cli::Chat;
use crate::client::{Client, Frames, code_of, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::invocation;
use domain::error_code::ErrorCode;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use sse_stream::Sse;
use std::time::Duration;
use tokio::time::timeout;

/// Messages that are shown of a session that is continued.
const RECALLED_MAX: u64 = 10;

/// Returns the session to go on with, or begins one.
pub(super) async fn open_session(
    client: &Client,
    loaded: &Loaded,
    options: Chat,
) -> Result<Value, Failure> {
    if let Some(id) = &options.session {
        return without_messages(client, id).await;
    }
    let agent = options.agent.unwrap_or_else(|| default_agent(loaded));
    let path = format!("/api/agents/{}/sessions", segment(&agent));
    let body = json!({ "session_type": options.session_type, "model": options.model });
    match client.post(&path, &body).await {
        Ok(session) => Ok(session),
        Err(failure) => Err(point_to_current(client, loaded, &agent, failure).await),
    }
}

/// Returns a session without its messages.
pub(super) async fn without_messages(client: &Client, id: &str) -> Result<Value, Failure> {
    let path = format!("/api/sessions/{}?from=1&to=0", segment(id));
    client.get(&path).await
}

/// Returns a session with its last messages.
pub(super) async fn with_last_messages(client: &Client, session: &Value) -> Result<Value, Failure> {
    let from = first_recalled(session);
    let id = segment(text(session, "/session_id"));
    client.get(&format!("/api/sessions/{id}?from={from}")).await
}

/// The first of the last messages of a session.
pub(super) fn first_recalled(session: &Value) -> u64 {
    let last = number(session, "/last_message");
    last.saturating_sub(RECALLED_MAX - 1).max(1)
}

/// Returns the path of the stream of a session and those that work for it; without a position, of
/// what is new.
pub(super) fn stream_path(agent: &str, session: &str, after: Option<u64>) -> String {
    let after = after.map(|after| format!("&after={after}"));
    format!(
        "/api/agents/{agent}/stream?view=log&session={session}&spawned=true{}",
        after.unwrap_or_default()
    )
}

/// Returns a stream that has just begun, if it goes on: with an event, or quietly for so long. A
/// host that is still starting answers with a stream that ends.
pub(super) async fn lasting(mut frames: Frames, quiet: Duration) -> Option<Frames> {
    match timeout(quiet, first_event(&mut frames)).await {
        Err(_) => Some(frames),
        Ok(None) => None,
        Ok(Some(first)) => Some(stream::iter([Ok(first)]).chain(frames).boxed()),
    }
}

async fn first_event(frames: &mut Frames) -> Option<Sse> {
    loop {
        let frame = frames.next().await?.ok()?;
        if frame.event.is_some() {
            return Some(frame);
        }
    }
}

/// Returns the question of a session that waits longest.
pub(super) fn question(session: &Value) -> Option<Question> {
    session.get("pending_action").and_then(Question::read)
}

/// Returns whether a session takes no more input.
pub(super) fn has_ended(session: &Value) -> bool {
    ["completed", "terminated"].contains(&text(session, "/status"))
}

/// Returns the command that goes on with a session.
pub(super) fn going_on(loaded: &Loaded, session: &str) -> String {
    invocation::command(loaded, &format!("chat --session {session}"))
}

/// Adds advice that names the current session of an agent. An agent that leads one session leads no
/// other.
async fn point_to_current(
    client: &Client,
    loaded: &Loaded,
    agent: &str,
    failure: Failure,
) -> Failure {
    if code_of(&failure) != Some(ErrorCode::SessionAlreadyActive) {
        return failure;
    }
    let agents = client.get("/api/agents?all=true").await.unwrap_or_default();
    let named = |known: &&Value| {
        ["/id", "/path", "/definition"]
            .iter()
            .any(|name| text(known, name) == agent)
    };
    let mut found = list(&agents, "/agents").iter().filter(named);
    match found.find_map(|known| known.get("current_session_id")?.as_str()) {
        Some(current) => failure.advise(going_on(loaded, current)),
        None => failure,
    }
}

fn default_agent(loaded: &Loaded) -> String {
    let agents = &loaded.config.agents;
    let named = agents
        .iter()
        .find(|definition| definition.agent_id.0 == "assistant");
    let shown = agents.iter().find(|definition| definition.ui_visible);
    named.or(shown).or(agents.first()).map_or_else(
        || "assistant".to_owned(),
        |definition| definition.agent_id.0.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::{first_recalled, lasting, stream_path};
    use crate::client::Frames;
    use crate::failure::Failure;
    use anyhow::anyhow;
    use futures::{StreamExt, stream};
    use serde_json::json;
    use sse_stream::Sse;
    use std::time::Duration;

    #[test]
    fn the_last_messages_begin_at_the_first_where_there_are_few() {
        for (last, first) in [(0, 1), (3, 1), (10, 1), (11, 2), (25, 16)] {
            assert_eq!(first_recalled(&json!({ "last_message": last })), first);
        }
    }

    #[test]
    fn a_stream_without_a_position_begins_with_what_is_new() {
        assert!(stream_path("a", "s", None).ends_with("&spawned=true"));
        assert!(stream_path("a", "s", Some(0)).ends_with("&spawned=true&after=0"));
    }

    #[tokio::test]
    async fn a_stream_that_only_ends_is_not_that_of_a_host_that_is_back() {
        let quiet = Duration::from_millis(20);
        let come_back = || Ok::<_, Failure>(Sse::default().retry(5_000));
        let event = || Sse::default().event("run.started.v1");
        let broken = Err::<Sse, _>(Failure::from(anyhow!("it broke")));
        let ended: [Frames; 3] = [
            stream::empty().boxed(),
            stream::iter([come_back()]).boxed(),
            stream::iter([broken]).boxed(),
        ];
        for frames in ended {
            assert!(lasting(frames, quiet).await.is_none());
        }
        let pending = stream::iter([come_back()]).chain(stream::pending());
        assert!(lasting(pending.boxed(), quiet).await.is_some());
        let reported = stream::iter([come_back(), Ok(event())]);
        let mut frames = lasting(reported.boxed(), quiet).await.unwrap();
        assert_eq!(frames.next().await.unwrap().unwrap(), event());
        assert!(frames.next().await.is_none());
    }
}

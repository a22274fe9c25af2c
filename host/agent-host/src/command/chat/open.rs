//! The session of a conversation: begun, found again, or switched to.

use super::command::{Command, HELP};
use super::question::Question;
use super::scene::Scene;
use super::{Awaited, Conversation};
use crate::answer::{Row, fill, is_true, list, number, text};
use crate::cli::Chat;
use crate::client::{Client, Frames, Refused, code_of, segment};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::invocation;
use crate::terminal::{Shade, clean};
use anyhow::anyhow;
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
        return client.session(id).await;
    }
    let agent = options.agent.unwrap_or_else(|| default_agent(loaded));
    let path = format!("/api/agents/{}/sessions", segment(&agent));
    let body = json!({ "session_type": options.session_type, "model": options.model });
    match client.post(&path, &body).await {
        Ok(session) => Ok(session),
        Err(failure) => Err(point_to_current(client, loaded, &agent, failure).await),
    }
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

/// Sessions that a list shows.
const SESSIONS_SHOWN: u16 = 50;

/// A session to go to, and the stream of it.
struct Place {
    agent: String,
    session: String,
    frames: Frames,
    /// The last event that was seen; none if the stream has only what is new.
    position: Option<u64>,
}

impl Conversation<'_> {
    /// Does what a line asks `chat` for. A refusal names no part of the request that `chat` made of
    /// the line: nobody wrote that.
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), Failure> {
        let done = match command {
            Command::Agent { name, message } => self.go_to_agent(&name, message).await,
            Command::Back => self.go_back().await,
            Command::New => self.go_to_new().await,
            Command::Agents => self.list_agents().await,
            Command::Sessions => self.list_sessions().await,
            Command::Session { id } => self.go_to_session(&id).await,
            Command::Rename { name } => self.change(&json!({ "name": name }), "(named)").await,
            Command::Pin { pinned: true } => {
                self.change(&json!({ "pinned": true }), "(pinned)").await
            }
            Command::Pin { pinned: false } => {
                let change = json!({ "pinned": false });
                self.change(&change, "(not pinned any more)").await
            }
            Command::Fork { name } => self.go_to_fork(name).await,
            Command::Clear => self.clear().await,
            Command::Delete => self.delete().await,
            Command::Help => {
                let lines = HELP.iter();
                lines.for_each(|line| self.line.line(Shade::Plain, line));
                Ok(())
            }
        };
        done.map_err(|mut failure| {
            if let Some(refused) = failure.error.downcast_mut::<Refused>() {
                refused.field = None;
            }
            failure
        })
    }

    async fn go_to_agent(&mut self, name: &str, message: Option<String>) -> Result<(), Failure> {
        let path = format!("{}/switch", self.path());
        let body = json!({ "agent": name, "message": message });
        let there = self.client.post(&path, &body).await?;
        // Nothing of the answer to the message is missed.
        let position = number(&there, "/position").checked_sub(1);
        let place = self.place(&there, position).await?;
        self.enter(place).await?;
        if position.is_some() {
            self.awaited = Awaited::Agent;
        }
        Ok(())
    }

    async fn go_to_new(&mut self) -> Result<(), Failure> {
        let path = format!("/api/agents/{}/sessions", self.agent);
        let body = json!({ "session_type": "chat" });
        let opened = self.client.post(&path, &body).await?;
        let place = self.place(&opened, Some(0)).await?;
        self.enter(place).await
    }

    async fn go_to_session(&mut self, id: &str) -> Result<(), Failure> {
        let there = self.client.session(id).await?;
        if has_ended(&there) {
            let error = anyhow!("that session has ended ({})", text(&there, "/status"));
            return Err(Failure::new(Exit::Refused, error));
        }
        let place = self.place(&there, None).await?;
        self.enter(place).await
    }

    /// Changes what the session is called, or where it stands in lists.
    async fn change(&mut self, change: &Value, reported: &str) -> Result<(), Failure> {
        self.client.patch(&self.path(), change).await?;
        self.line.line(Shade::Faint, reported);
        Ok(())
    }

    async fn go_to_fork(&mut self, name: Option<String>) -> Result<(), Failure> {
        let path = format!("{}/fork", self.path());
        let forked = self.client.post(&path, &json!({ "name": name })).await?;
        let place = self.place(&forked, None).await?;
        self.enter(place).await
    }

    async fn clear(&mut self) -> Result<(), Failure> {
        let path = format!("{}/clear", self.path());
        self.client.post(&path, &json!({})).await?;
        // Its messages are counted from 1 again.
        self.scene = Scene::default();
        self.line.line(Shade::Faint, "(the session is empty)");
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Failure> {
        self.client.delete(&self.path()).await?;
        self.line
            .line(Shade::Faint, "(deleted; this is a new session)");
        self.go_to_new().await
    }

    async fn go_back(&mut self) -> Result<(), Failure> {
        let here = self.client.session(&self.session).await?;
        let switch_origin = here.pointer("/attributes/switched_from");
        let Some(switch_origin) = switch_origin.filter(|outcome| outcome.is_object()) else {
            let error = anyhow!("nobody switched to this session: there is nowhere to go back to");
            return Err(Failure::new(Exit::Refused, error).advise(
                "`/agent NAME` goes to another agent, and `/sessions` lists the sessions",
            ));
        };
        // The stream begins before the summary does.
        let place = self.place(switch_origin, None).await?;
        let path = format!("{}/return", self.path());
        let returned = self.client.post(&path, &json!({})).await?;
        self.enter(place).await?;
        if returned.get("run_id").is_some_and(Value::is_string) {
            self.line
                .line(Shade::Faint, "(a summary of what you did there follows)");
            self.awaited = Awaited::Agent;
        }
        Ok(())
    }

    /// Follows the session that an answer names.
    async fn place(&self, named: &Value, position: Option<u64>) -> Result<Place, Failure> {
        let agent = text(named, "/agent_id").to_owned();
        let session = text(named, "/session_id").to_owned();
        let path = stream_path(&agent, &session, position);
        Ok(Place {
            frames: self.client.follow(&path).await?,
            agent,
            session,
            position,
        })
    }

    /// Goes on in another session.
    async fn enter(&mut self, place: Place) -> Result<(), Failure> {
        let is_streamed = place.position.is_some();
        let client = self.client;
        let mut session = client.session(&place.session).await?;
        let view = client
            .get(&format!("/api/agents/{}", segment(&place.agent)))
            .await?;
        self.agent = place.agent;
        self.session = place.session;
        self.frames = place.frames;
        self.position = place.position;
        self.scene = Scene::default();
        self.terminal.notice(&format!(
            "{} ({}), session {}",
            clean(text(&view, "/name")),
            text(&view, "/path"),
            self.session
        ));
        // What the stream shows is not shown twice.
        if !is_streamed {
            session = with_last_messages(client, &session).await?;
            self.recall(&session);
        }
        self.await_what(&session);
        Ok(())
    }

    async fn list_agents(&mut self) -> Result<(), Failure> {
        let listed = self.client.definitions().await?;
        let shown = list(&listed, "/definitions").iter();
        for definition in shown.filter(|definition| is_true(definition, "/ui_visible")) {
            let row = Row::of(definition, &["{/definition}"], &["{/description}"]);
            self.line.line(Shade::Plain, &row.line());
        }
        Ok(())
    }

    /// Lists the sessions that take input, in groups by agent.
    async fn list_sessions(&mut self) -> Result<(), Failure> {
        let path = format!("/api/sessions?open=true&limit={SESSIONS_SHOWN}");
        let listed = self.client.get(&path).await?;
        for group in list(&listed, "/agents") {
            let row = Row::of(group, &["{/label} ({/path})"], &[]);
            self.line.line(Shade::Plain, &row.line());
            for session in list(group, "/sessions") {
                let is_here = text(session, "/session_id") == self.session;
                let here = if is_here { "*" } else { " " };
                let said = "[[{/name}]][[{!/name}{/last_snippet}]]";
                let row = Row::default().cell(format!("{here} {}", fill(session, "{/session_id}")));
                self.line
                    .line(Shade::Plain, &row.notes(session, &[said]).line());
            }
        }
        if is_true(&listed, "/more") {
            let line = format!("(the latest {SESSIONS_SHOWN}; `session list` has the others)");
            self.line.line(Shade::Faint, &line);
        }
        Ok(())
    }
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

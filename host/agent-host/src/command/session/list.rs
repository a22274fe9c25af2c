//! `session list`.

use super::{line, without_messages};
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
use crate::invocation;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// The sessions to list.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Only those of this agent.
    pub(super) agent: Option<String>,
    /// True to include agents that work for others, and hidden ones.
    pub(super) all: bool,
    /// Maximum number.
    pub(super) limit: u16,
}

/// Lists sessions, the last used first.
pub(super) async fn list_sessions(
    client: &Client,
    loaded: &Loaded,
    wanted: Wanted,
    terminal: Terminal,
) -> Result<(), Failure> {
    let limit = usize::from(wanted.limit);
    let mut sessions = Vec::new();
    for agent in &agents(client, &wanted).await? {
        let id = segment(text(agent, "/id"));
        // One more, to know whether there are more.
        let path = format!("/api/agents/{id}/sessions?limit={}", (limit + 1).min(200));
        let page = client.get(&path).await?;
        for mut session in list(&page, "/sessions").iter().cloned() {
            if let Value::Object(fields) = &mut session {
                fields.insert("agent_path".to_owned(), json!(text(agent, "/path")));
            }
            sessions.push(session);
        }
    }
    sessions.sort_by(|a, b| text(b, "/updated_at").cmp(text(a, "/updated_at")));
    let are_more = sessions.len() > limit;
    sessions.truncate(limit);
    for session in &mut sessions {
        // What a run waits for is told with its session alone.
        let shown = match session.get("run_id").is_some_and(Value::is_string) {
            true => without_messages(client, text(session, "/id")).await?,
            false => Value::Null,
        };
        if let Value::Object(fields) = session {
            fields.insert("run_status".to_owned(), json!(shown.get("run_status")));
        }
    }
    terminal.result(&json!({ "sessions": sessions }), || {
        sessions.iter().map(line).collect()
    });
    if sessions.is_empty() {
        terminal.notice(&format!(
            "there are no sessions yet; this begins one: {}",
            invocation::command(loaded, "chat")
        ));
    }
    if are_more {
        let more = (limit * 2).min(200);
        terminal.notice(&format!("there are more: --limit {more} shows them"));
    }
    Ok(())
}

/// Returns the agents whose sessions are listed.
async fn agents(client: &Client, wanted: &Wanted) -> Result<Vec<Value>, Failure> {
    match &wanted.agent {
        Some(agent) => {
            let path = format!("/api/agents/{}", segment(agent));
            Ok(vec![client.get(&path).await?])
        }
        None => {
            let all = wanted.all;
            let path = format!("/api/agents?all={all}&spawned={all}");
            client.get_all(&path, "/agents").await
        }
    }
}

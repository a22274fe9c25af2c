//! `session export` and `session import`: a session as a file of JSON lines, in the dialects of
//! transcripts.
//!
//! Nothing else in this program uses it. Deleting it takes this file, its lines in `session.rs`,
//! and the variants `Export` and `Import` of `cli::Session`. Two small functions have no other user
//! then: `Client::get_bytes` and `Client::post_bytes`.

use super::path_of;
use crate::answer::Answer;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use crate::fields::{list, text};
use anyhow::Context;
use domain::id::AgentId;
use serde_json::{Value, json};
use std::path::Path;

/// Returns a session as a file.
pub(super) async fn export(client: &Client, id: &str, dialect: &str) -> Result<Answer, Failure> {
    let path = format!(
        "{}/export?dialect={}",
        path_of(client, id).await?,
        segment(dialect)
    );
    Ok(Answer::file(client.get_bytes(&path).await?))
}

/// Imports a session from a file.
pub(super) async fn import(client: &Client, file: &Path, agent: &str) -> Result<Answer, Failure> {
    let bytes = std::fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()));
    let bytes = bytes.map_err(|error| Failure::new(Exit::Usage, error))?;
    let agent = whose(client, agent).await?;
    let path = format!("/api/agents/{}/sessions/import", segment(&agent));
    let imported = client.post_bytes(&path, bytes).await?;
    let passed_over = list(&imported, "/passed_over").iter();
    let passed_over = passed_over.filter_map(Value::as_str);
    let passed_over: Vec<String> = passed_over.map(|it| format!("passed over: {it}")).collect();
    let what = "session {/session_id}: {/turns} turns came in, {/known} were here before, \
                {/left_out} lines have no place here";
    let mut answer = Answer::filled(imported, what);
    answer.lines.extend(passed_over);
    Ok(answer)
}

/// Returns the agent that a name stands for. A definition stands for the caller's agent of it,
/// which is made if there is none.
async fn whose(client: &Client, named: &str) -> Result<String, Failure> {
    if named.starts_with('/') || named.parse::<AgentId>().is_ok() {
        return Ok(named.to_owned());
    }
    let agents = client.get_all("/api/agents?limit=200", "/agents").await?;
    let end = format!("/agent/{named}");
    let is_of = |agent: &&Value| {
        text(agent, "/definition") == named && text(agent, "/path").ends_with(&end)
    };
    if let Some(own) = agents.iter().find(is_of) {
        return Ok(text(own, "/id").to_owned());
    }
    let wanted = json!({ "definition": named });
    let made = client.post("/api/agents", &wanted).await?;
    Ok(text(&made, "/id").to_owned())
}

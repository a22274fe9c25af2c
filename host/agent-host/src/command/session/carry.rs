//! `session export` and `session import`: a session as a file of JSON lines, in the dialects of
//! transcripts.
//!
//! Nothing else in this program uses it. Deleting it takes this file, `mod carry;` and two lines of
//! `session.rs`, and the variants `Export` and `Import` of `cli::Session`: 85 lines. Three small
//! functions have no other user then: `Client::get_bytes`, `Client::post_bytes`, `Terminal::file`.

use super::path_of;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use crate::fields::{list, number, text};
use crate::terminal::{Terminal, clean};
use anyhow::Context;
use domain::id::AgentId;
use serde_json::{Value, json};
use std::path::Path;

/// Writes a session to stdout.
pub(super) async fn export(
    client: &Client,
    id: &str,
    dialect: &str,
    terminal: Terminal,
) -> Result<(), Failure> {
    let session = path_of(client, id).await?;
    let path = format!("{session}/export?dialect={}", segment(dialect));
    let file = client.get_bytes(&path).await?;
    terminal
        .file(&file)
        .context("the session cannot be written to stdout")?;
    Ok(())
}

/// Imports a session from a file.
pub(super) async fn import(
    client: &Client,
    file: &Path,
    agent: &str,
    terminal: Terminal,
) -> Result<(), Failure> {
    let bytes = std::fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()));
    let bytes = bytes.map_err(|error| Failure::new(Exit::Usage, error))?;
    let agent = whose(client, agent).await?;
    let path = format!("/api/agents/{}/sessions/import", segment(&agent));
    let imported = client.post_bytes(&path, bytes).await?;
    terminal.result(&imported, || {
        let mut lines = vec![format!(
            "session {}: {} turns came in, {} were here before, {} lines have no place here",
            text(&imported, "/session_id"),
            number(&imported, "/turns"),
            number(&imported, "/known"),
            number(&imported, "/left_out")
        )];
        let passed_over = list(&imported, "/passed_over").iter();
        let told = passed_over.filter_map(Value::as_str);
        lines.extend(told.map(|told| format!("passed over: {}", clean(told))));
        lines
    });
    Ok(())
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

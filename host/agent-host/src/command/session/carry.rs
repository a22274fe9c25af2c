//! `session export` and `session import`: a session as a file of JSON lines, in the dialects of
//! transcripts.
//!
//! Nothing else in this program uses it. Deleting it takes this file, `mod carry;` and two lines of
//! `session.rs`, and the variants `Export` and `Import` of `cli::Session`: 81 lines. Three small
//! functions have no other user then: `Client::get_bytes`, `Client::post_bytes`, `Terminal::file`.

use super::path_of;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use crate::fields::{number, text};
use crate::terminal::Terminal;
use anyhow::Context;
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
    let path = format!("/api/agents/{}/sessions/import", segment(agent));
    let imported = client.post_bytes(&path, bytes).await?;
    terminal.result(&imported, || {
        vec![format!(
            "session {}: {} turns came in, {} were here before, {} lines have no place here",
            text(&imported, "/session_id"),
            number(&imported, "/turns"),
            number(&imported, "/known"),
            number(&imported, "/left_out")
        )]
    });
    Ok(())
}

//! `session export` and `session import`: a session as a file.

use super::{path_of, text};
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
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
    let file = client
        .get_bytes(&format!(
            "{}/export?dialect={}",
            path_of(client, id).await?,
            segment(dialect)
        ))
        .await?;
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
    let imported = client
        .post_bytes(
            &format!("/api/agents/{}/sessions/import", segment(agent)),
            bytes,
        )
        .await?;
    terminal.result(&imported, || {
        let count = |name: &str| {
            imported
                .get(name)
                .and_then(serde_json::Value::as_u64)
                .unwrap_or(0)
        };
        vec![format!(
            "session {}: {} turns came in, {} were here before, {} lines have no place here",
            text(&imported, "/session_id"),
            count("turns"),
            count("known"),
            count("left_out")
        )]
    });
    Ok(())
}

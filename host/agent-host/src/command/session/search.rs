//! `session search`: full-text search over the messages of all sessions.

use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use serde_json::Value;

/// Runs the command.
pub(super) async fn search(
    client: &Client,
    words: &[String],
    agent: Option<&str>,
    limit: u32,
    terminal: Terminal,
) -> Result<(), Failure> {
    let of_agent = agent
        .map(|agent| format!("&agent={}", segment(agent)))
        .unwrap_or_default();
    let words = segment(&words.join(" "));
    let path = format!("/api/search?q={words}&limit={limit}{of_agent}");
    let result = client.get(&path).await?;
    let hits = list(&result, "/hits");
    terminal.result(&result, || hits.iter().map(line).collect());
    if hits.is_empty() {
        terminal.notice("nothing was found");
    }
    Ok(())
}

fn line(hit: &Value) -> String {
    let place = number(hit, "/message");
    format!(
        "{}  [{place}]  {}  {}  {}: {}",
        text(hit, "/session_id"),
        text(hit, "/time"),
        text(hit, "/session_name"),
        text(hit, "/role"),
        text(hit, "/snippet")
    )
}

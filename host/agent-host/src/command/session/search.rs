//! `session search`: full-text search over the messages of all sessions.

use super::text;
use crate::client::{Client, segment};
use crate::failure::Failure;
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
    let result = client
        .get(&format!(
            "/api/search?q={}&limit={limit}{of_agent}",
            segment(&words.join(" "))
        ))
        .await?;
    let hits: Vec<&Value> = result
        .get("hits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    terminal.result(&result, || hits.iter().map(|hit| line(hit)).collect());
    if hits.is_empty() {
        terminal.notice("nothing was found");
    }
    Ok(())
}

fn line(hit: &Value) -> String {
    let place = hit.get("message").and_then(Value::as_u64).unwrap_or(0);
    format!(
        "{}  [{place}]  {}  {}  {}: {}",
        text(hit, "/session_id"),
        text(hit, "/time"),
        text(hit, "/session_name"),
        text(hit, "/role"),
        text(hit, "/snippet")
    )
}

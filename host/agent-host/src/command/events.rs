//! `events tail`.

use crate::cli::Events;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::Value;
use std::time::Duration;

/// Events on a page.
const PAGE: u64 = 500;
/// Milliseconds between two looks for new events.
const LOOK_MS: u64 = 300;
/// Characters of an event's data on a line.
const DATA_CHARS_MAX: usize = 160;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Events, terminal: Terminal) -> Result<(), Failure> {
    let Events::Tail {
        after,
        follow,
        session,
        agent,
        last,
    } = what;
    let client = Client::new(loaded)?;
    let filter: String = [("session", session), ("agent", agent)]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("&{name}={}", segment(&value?))))
        .collect();
    let mut position = match after {
        Some(after) => after,
        None => {
            number(&client.get("/api/events?limit=1").await?, "last_position").saturating_sub(last)
        }
    };
    loop {
        let page = client
            .get(&format!(
                "/api/events?after={position}&limit={PAGE}{filter}"
            ))
            .await?;
        let events = page
            .get("events")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for event in events {
            terminal.result(event, || vec![line(event)]);
        }
        position = number(&page, "next_after").max(position);
        if position < number(&page, "last_position") {
            continue;
        }
        if !follow {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn line(event: &Value) -> String {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let data: String = event
        .get("data")
        .map(ToString::to_string)
        .unwrap_or_default()
        .chars()
        .take(DATA_CHARS_MAX)
        .collect();
    let session: String = text("session_id").chars().take(8).collect();
    format!(
        "{:>8}  {}  {:<28}  {session:<8}  {}",
        number(event, "position"),
        text("time"),
        text("type"),
        data
    )
}

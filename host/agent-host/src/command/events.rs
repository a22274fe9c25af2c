//! `events tail`.

use crate::cli::Events;
use crate::client::{Client, Log, parameters};
use crate::failure::Failure;
use crate::fields::{number, text};
use crate::terminal::Terminal;
use serde_json::Value;

/// Characters of an event's data on a line.
const DATA_CHARS_MAX: usize = 160;

/// Runs the command.
pub(super) async fn run(client: &Client, what: Events, terminal: Terminal) -> Result<(), Failure> {
    let Events::Tail {
        after,
        follow,
        session,
        agent,
        last,
    } = what;
    let after = match after {
        Some(after) => after,
        None => {
            let newest = client.get("/api/events?limit=1").await?;
            number(&newest, "/last_position").saturating_sub(last)
        }
    };
    let log = Log {
        path: "/api/events",
        filter: &parameters([("session", session), ("agent", agent)]),
        pointer: "/events",
        after,
        follow,
    };
    let show = |event: &Value| terminal.result(event, || vec![line(event)]);
    client.read_log(log, show).await
}

fn line(event: &Value) -> String {
    let data = event.get("data").map(ToString::to_string);
    let data: String = data
        .iter()
        .flat_map(|data| data.chars())
        .take(DATA_CHARS_MAX)
        .collect();
    let session: String = text(event, "/session_id").chars().take(8).collect();
    format!(
        "{:>8}  {}  {:<28}  {session:<8}  {data}",
        number(event, "/position"),
        text(event, "/time"),
        text(event, "/type")
    )
}

//! `telemetry`.

use crate::cli::Telemetry;
use crate::client::{Client, query};
use crate::failure::Failure;
use crate::fields::{number, shown, text};
use crate::terminal::Terminal;
use futures::StreamExt;
use serde_json::Value;

/// The frame that tells of lost events.
const LAG: &str = "lag";
/// Names of data that stand elsewhere in a line.
const SHOWN: [&str; 2] = ["agent_id", "session_id"];

/// Shows what happens until the host ends the stream, or so many events have come.
pub(super) async fn watch(
    client: &Client,
    wanted: Telemetry,
    terminal: Terminal,
) -> Result<(), Failure> {
    let types = wanted.types.into_iter().map(|it| ("type", Some(it)));
    let content = wanted.content.then(|| "true".to_owned());
    let named = [
        ("agent", wanted.agent),
        ("session", wanted.session),
        ("content", content),
    ];
    let path = query("/api/telemetry", named.into_iter().chain(types));
    let mut frames = client.follow(&path).await?;
    terminal.notice("watching; Ctrl-C ends it");
    let mut left = wanted.count;
    while left != Some(0) {
        let Some(frame) = frames.next().await else {
            break;
        };
        let frame = frame?;
        let data = frame.data.as_deref().unwrap_or_default();
        let Ok(document) = serde_json::from_str::<Value>(data) else {
            continue;
        };
        if frame.event.as_deref() == Some(LAG) {
            let dropped = number(&document, "/dropped");
            terminal.problem(&format!("{dropped} events were lost"));
            continue;
        }
        // The host is still starting, and asks to come back.
        if document.get("type").is_none() {
            continue;
        }
        terminal.result(&document, || vec![line(&document)]);
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn line(event: &Value) -> String {
    let session: String = text(event, "/data/session_id").chars().take(8).collect();
    let data = event.get("data").and_then(Value::as_object);
    let facts: Vec<String> = data
        .into_iter()
        .flatten()
        .filter(|fact| !SHOWN.contains(&fact.0.as_str()))
        .map(|fact| format!("{}={}", fact.0, shown(fact.1)))
        .collect();
    let error = match text(event, "/error/code") {
        "" => String::new(),
        code => format!("  error={code} ({})", text(event, "/error/category")),
    };
    format!(
        "{}  {:<20}  {session:<8}  {}{error}",
        text(event, "/timestamp"),
        text(event, "/type"),
        facts.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::line;
    use serde_json::json;

    #[test]
    fn an_event_is_one_line_with_its_facts_and_its_error() {
        let event = json!({
            "type": "tool.call_failed", "timestamp": "2025-12-15T09:30:00.000Z",
            "data": {
                "agent_id": "a", "session_id": "7b3c2a54-8a75", "tool": "read_file", "duration_ms": 4,
            },
            "error": {
                "code": "tool-failed", "category": "TOOL_EXECUTION_FAILED", "retryable": false,
            },
        });
        let line = line(&event);
        for part in [
            "2025-12-15T09:30:00.000Z  tool.call_failed",
            "7b3c2a54",
            "tool=read_file",
            "duration_ms=4",
            "error=tool-failed (TOOL_EXECUTION_FAILED)",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("agent_id"), "{line}");
    }
}

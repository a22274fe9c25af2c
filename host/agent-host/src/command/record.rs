//! `events tail`, `telemetry` and `usage`: what is on record, and what happens now.

use crate::answer::{Answer, Row, fill, formed, list, number, shown, table, text};
use crate::cli::{Events, Telemetry, Usage, UsageKey, word_of};
use crate::client::{Client, Log, parameters, query};
use crate::failure::Failure;
use crate::terminal::Terminal;
use futures::StreamExt;
use serde_json::{Value, json};

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
    let data = data.unwrap_or_default();
    let data: String = data.chars().take(DATA_CHARS_MAX).collect();
    let head = "{/position:>8}  {/time}  {/type:<28}  {/session_id:=8}  ";
    fill(event, head) + &data
}

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
        terminal.result(&document, || vec![telemetry_line(&document)]);
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn telemetry_line(event: &Value) -> String {
    let data = event.get("data").and_then(Value::as_object);
    let facts = data.into_iter().flatten();
    let facts = facts.filter(|fact| !SHOWN.contains(&fact.0.as_str()));
    let facts: Vec<String> = facts
        .map(|fact| format!("{}={}", fact.0, shown(fact.1)))
        .collect();
    let head = "{/timestamp}  {/type:<20}  {/data/session_id:=8}  ";
    let error = "[[  error={/error/code} ({/error/category})]]";
    fill(event, head) + &facts.join(" ") + &fill(event, error)
}

/// Rows that are asked for at a time.
const PAGE: u64 = 1_000;
/// Columns beside the key: title, field, form and unit.
const COLUMNS: [(&str, &str, &str, &str); 9] = [
    ("calls", "/model_calls", "", ""),
    ("in", "/input_tokens", "", ""),
    ("out", "/output_tokens", "", ""),
    ("cached", "/cached_tokens", "", ""),
    ("cost", "/cost_micros", "money", ""),
    ("tools", "/tool_calls", "", ""),
    ("active", "/active_ms", "thousandths", "s"),
    ("unpriced", "/unpriced_attempts", "", ""),
    ("reserved", "/reserved_cost_micros", "money", ""),
];

/// Runs the command.
pub(super) async fn usage(client: &Client, what: Usage) -> Result<Answer, Failure> {
    let filter = parameters([
        ("from", what.from),
        ("to", what.to),
        ("agent", what.agent),
        ("session", what.session),
        ("user", what.user),
    ]);
    let by = word_of(&what.by);
    let path = format!("/api/usage?by={by}{filter}");
    let first = client.get(&format!("{path}&limit=1")).await?;
    let rows = client
        .get_all(&format!("{path}&limit={PAGE}"), "/usage")
        .await?;
    let from = text(&first, "/from");
    let to = text(&first, "/to");
    let notice = format!(
        "{from} to {to}, days in UTC; cost in the currency of the configured prices; reserved: for \
         requests whose usage no provider reported, in no other column"
    );
    let document = json!({
        "by": by, "from": from, "to": to, "usage": rows, "total": first.get("total"),
    });
    let lines = lines(what.by, &document);
    Ok(Answer::new(document, lines).notice([notice]))
}

/// The lines of a table: titles, a row for each key, and the total.
fn lines(by: UsageKey, document: &Value) -> Vec<String> {
    let titles = Row::default().cell(word_of(&by));
    let titles = COLUMNS
        .iter()
        .fold(titles, |row, (title, ..)| row.number(*title));
    let rows = list(document, "/usage").iter();
    let rows = rows.map(|it| row(&key(by, it), it));
    let total = document.get("total").unwrap_or(&Value::Null);
    table(
        [titles]
            .into_iter()
            .chain(rows)
            .chain([row("total", total)]),
    )
}

/// The key of a sum in words.
fn key(by: UsageKey, sum: &Value) -> String {
    let path = text(sum, "/agent_path");
    let key = text(sum, "/key");
    let without = |words: &str| if key.is_empty() { words } else { key }.to_owned();
    match by {
        UsageKey::Agent if !path.is_empty() => path.to_owned(),
        UsageKey::Session if !path.is_empty() => format!("{key} {path}"),
        UsageKey::Agent | UsageKey::Session | UsageKey::User => without("(purged)"),
        UsageKey::Model => without("(no model)"),
        UsageKey::Day => key.to_owned(),
    }
}

fn row(key: &str, sum: &Value) -> Row {
    let row = Row::default().cell(key);
    COLUMNS.iter().fold(row, |row, (_, field, form, unit)| {
        let value = json!(number(sum, field));
        row.number(format!("{}{unit}", formed(&value, form)))
    })
}

#[cfg(test)]
mod tests {
    use super::{UsageKey, lines, telemetry_line};
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
        let line = telemetry_line(&event);
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

    #[test]
    fn usage_is_a_table_with_a_row_for_each_key_and_a_total() {
        let document = json!({
            "usage": [
                { "key": null, "model_calls": 1, "input_tokens": 10, "cost_micros": 5 },
                { "key": "0190", "agent_path": "/ada/agent/x", "model_calls": 12,
                  "input_tokens": 3_000, "output_tokens": 7, "cost_micros": 1_250_000,
                  "tool_calls": 2, "active_ms": 1_234, "reserved_cost_micros": 54_783 },
            ],
            "total": { "model_calls": 13, "input_tokens": 3_010, "cost_micros": 1_250_005,
                       "reserved_cost_micros": 54_783 },
        });
        assert_eq!(
            lines(UsageKey::Agent, &document),
            [
                "agent         calls    in  out  cached      cost  tools  active  unpriced  reserved",
                "(purged)          1    10    0       0  0.000005      0  0.000s         0  0.000000",
                "/ada/agent/x     12  3000    7       0  1.250000      2  1.234s         0  0.054783",
                "total            13  3010    0       0  1.250005      0  0.000s         0  0.054783",
            ]
        );
    }
}

//! `usage`: what models and tools were asked, and what that cost.

use crate::answer::{Answer, Row, table};
use crate::cli::{Usage, UsageKey};
use crate::client::{Client, parameters, segment};
use crate::failure::Failure;
use crate::fields::{list, number, text};
use serde_json::{Value, json};

/// Rows that are asked for at a time.
const PAGE: u64 = 1_000;
/// Columns beside the key: title and field.
const COLUMNS: [(&str, &str); 9] = [
    ("calls", "/model_calls"),
    ("in", "/input_tokens"),
    ("out", "/output_tokens"),
    ("cached", "/cached_tokens"),
    ("cost", "/cost_micros"),
    ("tools", "/tool_calls"),
    ("active", "/active_ms"),
    ("unpriced", "/unpriced_attempts"),
    ("reserved", "/reserved_cost_micros"),
];

/// Runs the command.
pub(super) async fn run(client: &Client, what: Usage) -> Result<Answer, Failure> {
    let filter = parameters([
        ("from", what.from),
        ("to", what.to),
        ("agent", what.agent),
        ("session", what.session),
        ("user", what.user),
    ]);
    let by = what.by.as_str();
    let path = format!("/api/usage?by={by}&limit={PAGE}{filter}");
    let first = client.get(&path).await?;
    let mut rows = list(&first, "/usage").to_vec();
    let mut next = text(&first, "/next_after").to_owned();
    while !next.is_empty() {
        let page = format!("{path}&after={}", segment(&next));
        let page = client.get(&page).await?;
        rows.extend_from_slice(list(&page, "/usage"));
        next = text(&page, "/next_after").to_owned();
    }
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
    let titles = Row::default().cell(by.as_str());
    let titles = COLUMNS
        .iter()
        .fold(titles, |row, (title, _)| row.number(*title));
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
    let cell = |row: Row, field: &str| {
        let value = number(sum, field);
        row.number(match field {
            "/cost_micros" | "/reserved_cost_micros" => money(value),
            "/active_ms" => format!("{}.{:03}s", value / 1_000, value % 1_000),
            _ => value.to_string(),
        })
    };
    let fields = COLUMNS.iter().map(|(_, field)| *field);
    fields.fold(Row::default().cell(key), cell)
}

/// Millionths of a currency as a number of it.
pub(super) fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{UsageKey, lines};
    use serde_json::json;

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

//! `usage`: what models and tools were asked, and what that cost.

use crate::cli::{Usage, UsageKey};
use crate::client::{Client, parameters, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Rows that are asked for at a time.
const PAGE: u64 = 1_000;
/// Columns beside the key: title and field.
const COLUMNS: [(&str, &str); 9] = [
    ("calls", "model_calls"),
    ("in", "input_tokens"),
    ("out", "output_tokens"),
    ("cached", "cached_tokens"),
    ("cost", "cost_micros"),
    ("tools", "tool_calls"),
    ("active", "active_ms"),
    ("unpriced", "unpriced_attempts"),
    ("reserved", "reserved_cost_micros"),
];

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Usage, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
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
        let page = client
            .get(&format!("{path}&after={}", segment(&next)))
            .await?;
        rows.extend_from_slice(list(&page, "/usage"));
        next = text(&page, "/next_after").to_owned();
    }
    let document = json!({
        "by": by,
        "from": text(&first, "/from"),
        "to": text(&first, "/to"),
        "usage": rows,
        "total": first.get("total"),
    });
    terminal.result(&document, || table(what.by, &document));
    terminal.notice(&format!(
        "{} to {}, days in UTC; cost in the currency of the configured prices; reserved: for \
         requests whose usage no provider reported, in no other column",
        text(&document, "/from"),
        text(&document, "/to")
    ));
    Ok(())
}

/// The lines of a table: titles, a row for each key, and the total.
fn table(by: UsageKey, document: &Value) -> Vec<String> {
    let title = [by.as_str().to_owned()]
        .into_iter()
        .chain(COLUMNS.map(|(title, _)| title.to_owned()))
        .collect();
    let rows = list(document, "/usage").iter().map(|row| {
        let path = text(row, "/agent_path");
        let key = match (by, text(row, "/key")) {
            (UsageKey::Agent, key) if path.is_empty() => named(key, "(purged)"),
            (UsageKey::Agent, _) => path.to_owned(),
            (UsageKey::Session, key) if path.is_empty() => named(key, "(purged)"),
            (UsageKey::Session, key) => format!("{key} {path}"),
            (UsageKey::User, key) => named(key, "(purged)"),
            (UsageKey::Model, key) => named(key, "(no model)"),
            (UsageKey::Day, key) => key.to_owned(),
        };
        cells(key, row)
    });
    let total = document.get("total").cloned().unwrap_or_default();
    let lines: Vec<Vec<String>> = [title]
        .into_iter()
        .chain(rows)
        .chain([cells("total".to_owned(), &total)])
        .collect();
    aligned(&lines)
}

fn named(key: &str, without: &str) -> String {
    if key.is_empty() { without } else { key }.to_owned()
}

fn cells(key: String, row: &Value) -> Vec<String> {
    let cell = |(_, field): (&str, &str)| {
        let value = number(row, &format!("/{field}"));
        match field {
            "cost_micros" | "reserved_cost_micros" => {
                format!("{}.{:06}", value / 1_000_000, value % 1_000_000)
            }
            "active_ms" => format!("{}.{:03}s", value / 1_000, value % 1_000),
            _ => value.to_string(),
        }
    };
    [key].into_iter().chain(COLUMNS.map(cell)).collect()
}

/// The cells as lines: the first column to the left, all others to the right.
fn aligned(lines: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..=COLUMNS.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).enumerate();
        let padded = padded.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{UsageKey, table};
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
        let table = table(UsageKey::Agent, &document);
        assert_eq!(
            table,
            [
                "agent         calls    in  out  cached      cost  tools  active  unpriced  reserved",
                "(purged)          1    10    0       0  0.000005      0  0.000s         0  0.000000",
                "/ada/agent/x     12  3000    7       0  1.250000      2  1.234s         0  0.054783",
                "total            13  3010    0       0  1.250005      0  0.000s         0  0.054783",
            ]
        );
    }
}

//! `audit`: the ledger of the boundary, filtered and exported.

#[cfg(test)]
mod tests;

use crate::cli::Audit;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::Value;
use std::time::Duration;

/// Events whose lines make a page.
const PAGE: u64 = 500;
/// Milliseconds between two looks for new lines.
const LOOK_MS: u64 = 300;
/// Hexadecimal digits of a digest or an id on a line.
const SHORT: usize = 8;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Audit, terminal: Terminal) -> Result<(), Failure> {
    let Audit { after, follow, agent, session, run, component, tool, capability, verdict } = what;
    let client = Client::new(loaded)?;
    let filter: String = [
        ("agent", agent),
        ("session", session),
        ("run", run),
        ("component", component),
        ("tool", tool),
        ("capability", capability),
        ("verdict", verdict),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("&{name}={}", segment(&value?))))
    .collect();
    let mut position = after;
    loop {
        let page = client.get(&format!("/api/audit?after={position}&limit={PAGE}{filter}")).await?;
        for told in page.get("lines").and_then(Value::as_array).into_iter().flatten() {
            terminal.result(told, || vec![line(told)]);
        }
        let number = |name: &str| page.get(name).and_then(Value::as_u64).unwrap_or(0);
        position = number("next_after").max(position);
        if position < number("last_position") {
            continue;
        }
        if !follow {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

/// One line for people: when, who, through what, which call, what was decided.
fn line(told: &Value) -> String {
    let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| told.get(name).and_then(Value::as_u64);
    let short = |name: &str| text(name).trim_start_matches("sha256:").chars().take(SHORT).collect::<String>();
    let component = format!("{}@{} grant {}", text("component"), short("code"), short("grant"));
    let position = number("position").unwrap_or(0);
    let head = format!("{position:>8}  {}", text("time"));
    if text("kind") == "admission" {
        return format!("{head}  host  {component}  admitted");
    }
    let call = match text("tool") {
        "" => "step".to_owned(),
        tool => format!("{tool} {}.{}", short("operation_id"), number("segment").unwrap_or(0)),
    };
    let who = format!("{head}  {}  {component}  {call}", text("definition"));
    if let Some(left_out) = number("left_out") {
        return format!("{who}  {left_out} more of this call were not kept one by one");
    }
    if text("kind") == "request" {
        let status = number("status").map(|status| format!(" {status}")).unwrap_or_default();
        let (sent, received) = (number("bytes_out").unwrap_or(0), number("bytes_in").unwrap_or(0));
        return format!("{who}  request {}{status}  {}  {sent} bytes out, {received} in", text("verdict"), text("detail"));
    }
    let times = number("times").filter(|times| *times > 1).map(|times| format!(" x{times}")).unwrap_or_default();
    format!("{who}  {} {}{times} by {}  {}", text("verdict"), text("capability"), text("rule"), text("detail"))
}

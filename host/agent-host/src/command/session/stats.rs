//! `session stats`: a session in numbers.

use super::path_of;
use crate::client::Client;
use crate::failure::Failure;
use crate::fields::{number, text};
use crate::terminal::Terminal;
use serde_json::Value;

/// Prints the numbers of a session.
pub(super) async fn stats(client: &Client, id: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("{}/stats", path_of(client, id).await?);
    let stats = client.get(&path).await?;
    terminal.result(&stats, || lines(&stats));
    Ok(())
}

fn lines(stats: &Value) -> Vec<String> {
    let count = |pointer: &str| number(stats, pointer);
    let micros = count("/usage/cost_micros");
    let context = match stats.pointer("/context/window").and_then(Value::as_u64) {
        Some(window) => {
            let tokens = count("/context/tokens");
            format!(
                "context   {tokens} of {window} tokens ({} %)",
                count("/context/percent")
            )
        }
        None => "context   no model was asked".to_owned(),
    };
    vec![
        format!(
            "messages  {}: user {}, assistant {}, tool {}, notice {}",
            count("/messages/total"),
            count("/messages/user"),
            count("/messages/assistant"),
            count("/messages/tool"),
            count("/messages/notice")
        ),
        format!(
            "turns     {}: open {}, replied {}, completed {}, failed {}, aborted {}",
            count("/turns/total"),
            count("/turns/open"),
            count("/turns/replied"),
            count("/turns/completed"),
            count("/turns/failed"),
            count("/turns/aborted")
        ),
        format!(
            "calls     {} of models, {} of tools",
            count("/usage/model_calls"),
            count("/usage/tool_calls")
        ),
        format!(
            "tokens    {}: in {} (cached {}), out {}",
            count("/total_tokens"),
            count("/usage/input_tokens"),
            count("/usage/cached_tokens"),
            count("/usage/output_tokens")
        ),
        context,
        format!("cost      {}.{:06}", micros / 1_000_000, micros % 1_000_000),
        format!(
            "time      {} ms in turns, {} ms at work",
            count("/turns_ms"),
            count("/usage/active_ms")
        ),
        format!(
            "created   {}, last used {}",
            text(stats, "/created_at"),
            text(stats, "/last_activity_at")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::lines;
    use serde_json::json;

    #[test]
    fn the_numbers_of_a_session_are_told_line_by_line() {
        let stats = json!({
            "messages": { "total": 4, "user": 1, "assistant": 2, "tool": 1, "notice": 0 },
            "turns": { "total": 1, "open": 0, "replied": 1, "completed": 0, "failed": 0, "aborted": 0 },
            "usage": { "model_calls": 2, "tool_calls": 1, "input_tokens": 30, "cached_tokens": 5,
                       "output_tokens": 12, "cost_micros": 1_000_050, "active_ms": 7 },
            "context": { "tokens": 21, "window": 8_000, "percent": 0 },
            "total_tokens": 42, "turns_ms": 9, "created_at": "A", "last_activity_at": "B",
        });
        assert_eq!(
            lines(&stats),
            [
                "messages  4: user 1, assistant 2, tool 1, notice 0",
                "turns     1: open 0, replied 1, completed 0, failed 0, aborted 0",
                "calls     2 of models, 1 of tools",
                "tokens    42: in 30 (cached 5), out 12",
                "context   21 of 8000 tokens (0 %)",
                "cost      1.000050",
                "time      9 ms in turns, 7 ms at work",
                "created   A, last used B",
            ]
        );
    }
}

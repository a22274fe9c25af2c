//! `clock show` and `clock confirm`.

use crate::cli::Clock;
use crate::client::Client;
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: &Clock, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let clock = match what {
        Clock::Show => client.get("/api/clock").await?,
        Clock::Confirm => client.post("/api/clock/confirm", &json!({})).await?,
    };
    terminal.result(&clock, || lines(&clock));
    Ok(())
}

fn lines(clock: &Value) -> Vec<String> {
    let text = |name: &str| clock.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut lines = vec![
        format!("host        {}", text("now")),
        format!("wall clock  {}", text("wall")),
    ];
    if let Some(jump) = clock.get("jump") {
        lines.push(format!(
            "the wall clock jumped ahead by {} s; the host follows in {} s, or when it is \
             confirmed",
            seconds(jump, "ms"),
            seconds(jump, "left_ms")
        ));
    }
    if let Some(gap) = clock.get("gap") {
        lines.push(format!(
            "{} s before the start may not have passed; they count in {} s, or when it is \
             confirmed",
            seconds(gap, "ms"),
            seconds(gap, "left_ms")
        ));
    }
    if clock.get("credentials").is_some() {
        lines.push(format!(
            "credentials end by {}: the wall clock was confirmed while it was behind",
            text("credentials")
        ));
    }
    lines
}

/// Milliseconds as seconds.
fn seconds(of: &Value, name: &str) -> u64 {
    of.get(name)
        .and_then(Value::as_u64)
        .unwrap_or(0)
        .div_ceil(1_000)
}

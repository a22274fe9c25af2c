//! `clock show` and `clock confirm`.

use crate::answer::{Answer, details};
use crate::cli::Clock;
use crate::client::Client;
use crate::failure::Failure;
use crate::fields::{number, text};
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(client: &Client, what: &Clock) -> Result<Answer, Failure> {
    let clock = match what {
        Clock::Show => client.get("/api/clock").await?,
        Clock::Confirm => client.post("/api/clock/confirm", &json!({})).await?,
    };
    let lines = lines(&clock);
    Ok(Answer::new(clock, lines))
}

fn lines(clock: &Value) -> Vec<String> {
    let mut lines = details(clock, &[("host", "{/now}"), ("wall clock", "{/wall}")]);
    if clock.get("jump").is_some() {
        lines.push(format!(
            "the wall clock jumped ahead by {} s; the host follows in {} s, or when it is \
             confirmed",
            seconds(clock, "/jump/ms"),
            seconds(clock, "/jump/left_ms")
        ));
    }
    if clock.get("gap").is_some() {
        lines.push(format!(
            "{} s before the start may not have passed; they count in {} s, or when it is \
             confirmed",
            seconds(clock, "/gap/ms"),
            seconds(clock, "/gap/left_ms")
        ));
    }
    if clock.get("credentials").is_some() {
        lines.push(format!(
            "credentials end by {}: the wall clock was confirmed while it was behind",
            text(clock, "/credentials")
        ));
    }
    lines
}

/// Milliseconds as seconds.
fn seconds(document: &Value, pointer: &str) -> u64 {
    number(document, pointer).div_ceil(1_000)
}

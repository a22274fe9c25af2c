//! `dead-letter list`, `dead-letter show` and `dead-letter requeue`.

use crate::cli::DeadLetter;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(
    loaded: &Loaded,
    what: DeadLetter,
    terminal: Terminal,
) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        DeadLetter::List => {
            let list = client.get("/api/dead-letters").await?;
            let letters = list
                .get("dead_letters")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            terminal.result(&list, || letters.iter().map(line).collect());
            if letters.is_empty() {
                terminal.notice("there are no dead letters");
            }
        }
        DeadLetter::Show { id } => {
            let letter = client
                .get(&format!("/api/dead-letters/{}", segment(&id)))
                .await?;
            terminal.result(&letter, || letter_lines(&letter));
        }
        DeadLetter::Requeue { id } => {
            let requeued = client
                .post(
                    &format!("/api/dead-letters/{}/requeue", segment(&id)),
                    &json!({}),
                )
                .await?;
            terminal.result(&requeued, || vec![format!("{id} waits again")]);
        }
    }
    Ok(())
}

fn line(letter: &Value) -> String {
    let text = |pointer: &str| {
        letter
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{}  session {}  {}  {}  {}",
        text("/input_id"),
        text("/session_id"),
        text("/died_at"),
        text("/reason"),
        text("/message/text")
    )
}

/// Returns all details of a dead letter, a line each, without those that do not apply.
fn letter_lines(letter: &Value) -> Vec<String> {
    let lines = [
        ("input", "/input_id"),
        ("session", "/session_id"),
        ("why", "/reason"),
        ("put aside", "/died_at"),
        ("accepted", "/accepted_at"),
        ("user", "/user_id"),
        ("model", "/model"),
        ("source", "/source/kind"),
        ("from", "/source/from"),
        ("caller's turn", "/source/caller_run_id"),
        ("operation", "/source/operation_id"),
        ("calls deep", "/source/depth"),
        ("spawns deep", "/source/spawn_depth"),
        ("hops", "/source/hops"),
        ("deadline", "/source/deadline"),
        ("says", "/message/text"),
    ];
    let lines = lines.into_iter().filter_map(|(name, pointer)| {
        let value = letter.pointer(pointer).filter(|value| !value.is_null())?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{name:<14}{text}"))
    });
    lines.collect()
}

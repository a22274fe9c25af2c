//! `dead-letter list`, `dead-letter show` and `dead-letter requeue`.

use crate::cli::DeadLetter;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
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
            let listed = client.get("/api/dead-letters").await?;
            let letters = list(&listed, "/dead_letters");
            terminal.result(&listed, || letters.iter().map(line).collect());
            if letters.is_empty() {
                terminal.notice("there are no dead letters");
            }
        }
        DeadLetter::Show { id } => {
            let path = format!("/api/dead-letters/{}", segment(&id));
            let letter = client.get(&path).await?;
            terminal.result(&letter, || letter_lines(&letter));
        }
        DeadLetter::Requeue { id } => {
            let path = format!("/api/dead-letters/{}/requeue", segment(&id));
            let requeued = client.post(&path, &json!({})).await?;
            terminal.result(&requeued, || vec![format!("{id} waits again")]);
        }
    }
    Ok(())
}

fn line(letter: &Value) -> String {
    format!(
        "{}  session {}  {}  {}  {}",
        text(letter, "/input_id"),
        text(letter, "/session_id"),
        text(letter, "/died_at"),
        text(letter, "/reason"),
        text(letter, "/message/text")
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

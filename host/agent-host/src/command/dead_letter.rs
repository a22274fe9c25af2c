//! `dead-letter list` and `dead-letter requeue`.

use crate::cli::DeadLetter;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: DeadLetter, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        DeadLetter::List => {
            let list = client.get("/api/dead-letters").await?;
            let letters = list.get("dead_letters").and_then(Value::as_array).cloned().unwrap_or_default();
            terminal.result(&list, || letters.iter().map(line).collect());
            if letters.is_empty() {
                terminal.notice("there are no dead letters");
            }
        }
        DeadLetter::Requeue { id } => {
            let requeued = client.post(&format!("/api/dead-letters/{}/requeue", segment(&id)), &json!({})).await?;
            terminal.result(&requeued, || vec![format!("{id} waits again")]);
        }
    }
    Ok(())
}

fn line(letter: &Value) -> String {
    let text = |pointer: &str| letter.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}  session {}  {}  {}  {}", text("/input_id"), text("/session_id"), text("/died_at"), text("/reason"), text("/message/text"))
}

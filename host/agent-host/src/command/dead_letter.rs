//! `dead-letter list`, `dead-letter show`, `dead-letter requeue` and `dead-letter drop`.

use crate::cli::DeadLetter;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{is_true, text};
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
            let letters = client
                .get_all("/api/dead-letters?limit=200", "/dead_letters")
                .await?;
            let listed = json!({ "dead_letters": letters });
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
        DeadLetter::Requeue { id, repeat } => {
            let path = format!("/api/dead-letters/{}", segment(&id));
            let permission = if repeat {
                permission(&client.get(&path).await?)
            } else {
                String::new()
            };
            let path = format!("{path}/requeue{permission}");
            let requeued = client.post(&path, &json!({})).await?;
            terminal.result(&requeued, || vec![format!("{id} waits again")]);
        }
        DeadLetter::Drop { id, reason } => {
            let reason = reason
                .map(|reason| format!("?reason={}", segment(&reason)))
                .unwrap_or_default();
            let path = format!("/api/dead-letters/{}{reason}", segment(&id));
            let dropped = client.delete(&path).await?;
            terminal.result(&dropped, || vec![format!("{id} is dropped")]);
        }
    }
    Ok(())
}

/// Returns the query that permits to repeat the turn that had begun with a dead letter, if one had.
fn permission(letter: &Value) -> String {
    if is_true(letter, "/begun") {
        format!("?repeat={}", segment(text(letter, "/run_id")))
    } else {
        String::new()
    }
}

/// The line of a dead letter.
fn line(letter: &Value) -> String {
    let named = |name: &str, pointer: &str| match text(letter, pointer) {
        "" => String::new(),
        id => format!("  {name} {id}"),
    };
    let begun = if is_true(letter, "/begun") {
        " (had begun)"
    } else {
        ""
    };
    format!(
        "{}  session {}{}{begun}{}{}  {}  {}  {}",
        text(letter, "/input_id"),
        text(letter, "/session_id"),
        named("run", "/run_id"),
        named("agent", "/agent_id"),
        named("user", "/user_id"),
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
        ("agent", "/agent_id"),
        ("run", "/run_id"),
        ("had begun", "/begun"),
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

#[cfg(test)]
mod tests {
    use super::{letter_lines, line, permission};
    use serde_json::{Value, json};

    #[test]
    fn a_dead_letter_shows_whose_it_is_and_whether_its_turn_had_begun() {
        let letter = json!({
            "input_id": "i", "session_id": "s", "agent_id": "a", "user_id": "u", "run_id": "r",
            "begun": true, "reason": "the host ended", "died_at": "noon",
            "message": { "text": "hello" },
        });
        assert_eq!(
            line(&letter),
            "i  session s  run r (had begun)  agent a  user u  noon  the host ended  hello"
        );
        assert!(letter_lines(&letter).contains(&"had begun     true".to_owned()));
        assert_eq!(permission(&letter), "?repeat=r");
        let mut unbegun = letter;
        unbegun["begun"] = json!(false);
        assert_eq!(permission(&unbegun), "");
        unbegun["run_id"] = Value::Null;
        assert_eq!(
            line(&unbegun),
            "i  session s  agent a  user u  noon  the host ended  hello"
        );
    }
}

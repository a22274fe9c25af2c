//! `dead-letter list`, `dead-letter show`, `dead-letter requeue` and `dead-letter drop`.

use crate::answer::{Answer, Row, is_true, text};
use crate::cli::DeadLetter;
use crate::client::{Client, segment};
use crate::failure::Failure;
use serde_json::{Value, json};

/// The details of a dead letter.
const DETAILS: [(&str, &str); 19] = [
    ("input", "{/input_id}"),
    ("session", "{/session_id}"),
    ("agent", "{/agent_id}"),
    ("run", "{/run_id}"),
    ("had begun", "{/begun}"),
    ("why", "{/reason}"),
    ("put aside", "{/died_at}"),
    ("accepted", "{/accepted_at}"),
    ("user", "{/user_id}"),
    ("model", "{/model}"),
    ("source", "{/source/kind}"),
    ("from", "{/source/from}"),
    ("caller's turn", "{/source/caller_run_id}"),
    ("operation", "{/source/operation_id}"),
    ("calls deep", "{/source/depth}"),
    ("spawns deep", "{/source/spawn_depth}"),
    ("hops", "{/source/hops}"),
    ("deadline", "{/source/deadline}"),
    ("says", "{/message/text}"),
];

/// Runs the command.
pub(super) async fn run(client: &Client, what: DeadLetter) -> Result<Answer, Failure> {
    let of = |id: &str| format!("/api/dead-letters/{}", segment(id));
    Ok(match what {
        DeadLetter::List => {
            let path = "/api/dead-letters?limit=200";
            let letters = client.get_all(path, "/dead_letters").await?;
            let listed = json!({ "dead_letters": letters });
            Answer::list(listed, "/dead_letters", row, "there are no dead letters")
        }
        DeadLetter::Show { id } => Answer::details(client.get(&of(&id)).await?, &DETAILS),
        DeadLetter::Requeue { id, repeat } => {
            let permission = match repeat {
                true => permission(&client.get(&of(&id)).await?),
                false => String::new(),
            };
            let path = format!("{}/requeue{permission}", of(&id));
            let requeued = client.post(&path, &json!({})).await?;
            Answer::line(requeued, format!("{id} waits again"))
        }
        DeadLetter::Drop { id, reason } => {
            let dropped = client.delete(&because(&of(&id), reason.as_deref())).await?;
            Answer::line(dropped, format!("{id} is dropped"))
        }
    })
}

/// Returns a path with the reason why something there goes.
pub(super) fn because(path: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{path}?reason={}", segment(reason)),
        None => path.to_owned(),
    }
}

/// Returns the query that permits to repeat the turn that had begun with a dead letter, if one had.
fn permission(letter: &Value) -> String {
    if is_true(letter, "/begun") {
        format!("?repeat={}", segment(text(letter, "/run_id")))
    } else {
        String::new()
    }
}

fn row(letter: &Value) -> Row {
    let notes = [
        "run {/run_id}[[{?/begun} (had begun)]]",
        "agent {/agent_id}",
        "user {/user_id}",
        "{/died_at}",
        "{/reason}",
        "{/message/text}",
    ];
    Row::of(letter, &["{/input_id}", "session {/session_id}"], &notes)
}

#[cfg(test)]
mod tests {
    use super::{DETAILS, permission, row};
    use crate::answer::details;
    use serde_json::{Value, json};

    #[test]
    fn a_dead_letter_shows_whose_it_is_and_whether_its_turn_had_begun() {
        let letter = json!({
            "input_id": "i", "session_id": "s", "agent_id": "a", "user_id": "u", "run_id": "r",
            "begun": true, "reason": "the host ended", "died_at": "noon",
            "message": { "text": "hello" },
        });
        assert_eq!(
            row(&letter).line(),
            "i  session s  run r (had begun)  agent a  user u  noon  the host ended  hello"
        );
        assert!(details(&letter, &DETAILS).contains(&"had begun      true".to_owned()));
        assert_eq!(permission(&letter), "?repeat=r");
        let mut unbegun = letter;
        unbegun["begun"] = json!(false);
        assert_eq!(permission(&unbegun), "");
        unbegun["run_id"] = Value::Null;
        assert_eq!(
            row(&unbegun).line(),
            "i  session s  agent a  user u  noon  the host ended  hello"
        );
    }
}

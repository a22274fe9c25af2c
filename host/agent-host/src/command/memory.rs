//! The commands on agents' notes: `memory list`, `search`, `forget` and `read`.

use crate::answer::{Answer, Row};
use crate::cli::Memory;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::fields::text;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(client: &Client, what: Memory) -> Result<Answer, Failure> {
    let of = |agent: &str| format!("/api/agents/{}", segment(agent));
    Ok(match what {
        Memory::List { agent, limit } => {
            let path = format!("{}/memory?limit={limit}", of(&agent));
            Answer::list(
                client.get(&path).await?,
                "/notes",
                row,
                "there are no notes",
            )
        }
        Memory::Search {
            words,
            agent,
            limit,
        } => {
            let words = segment(&words.join(" "));
            let path = format!("{}/memory?q={words}&limit={limit}", of(&agent));
            Answer::list(client.get(&path).await?, "/notes", row, "nothing was found")
        }
        Memory::Forget { id, agent } => {
            let path = format!("{}/memory/{}", of(&agent), segment(&id));
            let forgotten = client.delete(&path).await?;
            Answer::line(forgotten, format!("the note {id} is forgotten"))
        }
        Memory::Read { session } => {
            let path = format!("/api/sessions/{}?from=1&to=0", segment(&session));
            let found = client.get(&path).await?;
            let agent = of(text(&found, "/agent_id"));
            let path = format!("{agent}/sessions/{}/memory", segment(&session));
            let begun = client.post(&path, &json!({})).await?;
            Answer::line(begun, format!("the session {session} is read into notes"))
        }
    })
}

fn row(note: &Value) -> Row {
    let cells = ["{/note_id}", "{/time}", "{/user_id}"];
    Row::of(
        note,
        &cells,
        &["{/text}", "{?/untrusted}(from outside content)"],
    )
}

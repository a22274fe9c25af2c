//! The commands on agents' notes: `memory list`, `search`, `forget` and `read`.

use crate::cli::Memory;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{is_true, list, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Memory, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Memory::List { agent, limit } => {
            let path = format!("/api/agents/{}/memory?limit={limit}", segment(&agent));
            show(&client, &path, "there are no notes", terminal).await
        }
        Memory::Search {
            words,
            agent,
            limit,
        } => {
            let words = segment(&words.join(" "));
            let agent = segment(&agent);
            let path = format!("/api/agents/{agent}/memory?q={words}&limit={limit}");
            show(&client, &path, "nothing was found", terminal).await
        }
        Memory::Forget { id, agent } => forget(&client, &id, &agent, terminal).await,
        Memory::Read { session } => read(&client, &session, terminal).await,
    }
}

/// Shows the notes of an answer, or says that there are none.
async fn show(
    client: &Client,
    path: &str,
    nothing: &str,
    terminal: Terminal,
) -> Result<(), Failure> {
    let answer = client.get(path).await?;
    let notes = list(&answer, "/notes");
    terminal.result(&answer, || notes.iter().map(line).collect());
    if notes.is_empty() {
        terminal.notice(nothing);
    }
    Ok(())
}

async fn forget(client: &Client, id: &str, agent: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("/api/agents/{}/memory/{}", segment(agent), segment(id));
    let forgotten = client.delete(&path).await?;
    terminal.result(&forgotten, || vec![format!("the note {id} is forgotten")]);
    Ok(())
}

async fn read(client: &Client, session: &str, terminal: Terminal) -> Result<(), Failure> {
    let found = client
        .get(&format!("/api/sessions/{}?from=1&to=0", segment(session)))
        .await?;
    let path = format!(
        "/api/agents/{}/sessions/{}/memory",
        segment(text(&found, "/agent_id")),
        segment(session)
    );
    let begun = client.post(&path, &json!({})).await?;
    terminal.result(&begun, || {
        vec![format!("the session {session} is read into notes")]
    });
    Ok(())
}

fn line(note: &Value) -> String {
    let mark = if is_true(note, "/untrusted") {
        "  (from outside content)"
    } else {
        ""
    };
    format!(
        "{}  {}  {}  {}{mark}",
        text(note, "/note_id"),
        text(note, "/time"),
        text(note, "/user_id"),
        text(note, "/text")
    )
}

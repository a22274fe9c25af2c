//! The commands on one session and its inputs: `session show`, `compact`, `inputs`,
//! `cancel` and those about quarantine.
//!
//! The list of sessions, and the commands about the tree of turns, files and search are in the
//! modules below.

mod carry;
mod list;
mod purge;
mod search;
mod stats;
mod tree;

use crate::cli::Session;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{is_true, list, number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Session, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Session::List { agent, all, limit } => {
            let wanted = list::Wanted { agent, all, limit };
            list::list_sessions(&client, loaded, wanted, terminal).await
        }
        Session::Show { id, from, to } => show(&client, &id, [from, to], terminal).await,
        Session::Stats { id } => stats::stats(&client, &id, terminal).await,
        Session::Tree { id } => tree::tree(&client, &id, terminal).await,
        Session::Diff { a, b } => tree::diff(&client, &a, &b, terminal).await,
        Session::Export { id, dialect } => carry::export(&client, &id, &dialect, terminal).await,
        Session::Import { file, agent } => carry::import(&client, &file, &agent, terminal).await,
        Session::Search {
            words,
            agent,
            limit,
        } => search::search(&client, &words, agent.as_deref(), limit, terminal).await,
        Session::Compact { id } => compact(&client, &id, terminal).await,
        Session::Inputs { id } => inputs(&client, &id, terminal).await,
        Session::Quarantined => quarantined(&client, terminal).await,
        Session::Release { id } => release(&client, &id, terminal).await,
        Session::Purge { id, agent, yes } => {
            purge::purge(&client, id.as_deref(), &agent, yes, terminal).await
        }
        Session::Cancel {
            id,
            input: Some(input),
            ..
        } => withdraw(&client, &id, &input, terminal).await,
        Session::Cancel {
            id,
            input: None,
            waiting,
        } => cancel(&client, &id, waiting, terminal).await,
    }
}

/// Shows a session, with the messages from the first to the second of these ids.
async fn show(
    client: &Client,
    id: &str,
    range: [Option<u64>; 2],
    terminal: Terminal,
) -> Result<(), Failure> {
    let range: Vec<String> = ["from", "to"]
        .iter()
        .zip(range)
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
        .collect();
    let path = format!("/api/sessions/{}?{}", segment(id), range.join("&"));
    let session = client.get(&path).await?;
    terminal.result(&session, || session_lines(&session));
    Ok(())
}

/// Begins to compact the thread of a session.
async fn compact(client: &Client, id: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("{}/compact", path_of(client, id).await?);
    let begun = client.post(&path, &json!({})).await?;
    terminal.result(&begun, || {
        vec![format!(
            "the thread is being compacted by run {}",
            text(&begun, "/run_id")
        )]
    });
    Ok(())
}

/// Lists the inputs of a session that wait.
async fn inputs(client: &Client, id: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("{}/inputs", path_of(client, id).await?);
    let waiting = client.get(&path).await?;
    terminal.result(&waiting, || input_lines(&waiting));
    Ok(())
}

/// Lists the sessions in quarantine.
async fn quarantined(client: &Client, terminal: Terminal) -> Result<(), Failure> {
    let listed = client.get("/api/quarantine").await?;
    let quarantined = list(&listed, "/quarantined");
    terminal.result(&listed, || {
        quarantined.iter().map(quarantine_line).collect()
    });
    if quarantined.is_empty() {
        terminal.notice("no session is in quarantine");
    }
    Ok(())
}

/// Releases a session from quarantine.
async fn release(client: &Client, id: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("/api/quarantine/{}/release", segment(id));
    let released = client.post(&path, &json!({})).await?;
    terminal.result(&released, || {
        vec![format!("{id} was released, and continues")]
    });
    Ok(())
}

/// Withdraws one waiting input of a session.
async fn withdraw(
    client: &Client,
    id: &str,
    input: &str,
    terminal: Terminal,
) -> Result<(), Failure> {
    let path = format!("{}/inputs/{}", path_of(client, id).await?, segment(input));
    let cancelled = client.delete(&path).await?;
    terminal.result(&cancelled, || {
        vec![format!("withdrawn: {}", text(&cancelled, "/input_id"))]
    });
    Ok(())
}

/// Stops the turn in progress, and withdraws all waiting inputs first if that is asked for.
async fn cancel(
    client: &Client,
    id: &str,
    waiting: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let path = format!("{}/cancel", path_of(client, id).await?);
    let cancelled = client.post(&path, &json!({ "waiting": waiting })).await?;
    terminal.result(&cancelled, || cancellation_lines(&cancelled));
    Ok(())
}

/// Returns the API path of a session, whichever agent it belongs to.
async fn path_of(client: &Client, id: &str) -> Result<String, Failure> {
    let session = without_messages(client, id).await?;
    Ok(format!(
        "/api/agents/{}/sessions/{}",
        segment(text(&session, "/agent_id")),
        segment(id)
    ))
}

/// Returns a session without its messages.
async fn without_messages(client: &Client, id: &str) -> Result<Value, Failure> {
    let path = format!("/api/sessions/{}?from=1&to=0", segment(id));
    client.get(&path).await
}

/// The line of a session in quarantine.
fn quarantine_line(quarantined: &Value) -> String {
    let id = text(quarantined, "/session_id");
    let why = text(quarantined, "/why");
    format!(
        "{id}  {why:<8}  {}  {}",
        text(quarantined, "/since"),
        text(quarantined, "/reason")
    )
}

/// Returns the waiting inputs, one line each.
fn input_lines(waiting: &Value) -> Vec<String> {
    let line = |input: &Value| {
        let id = text(input, "/input_id");
        let waits_for = text(input, "/waits_for");
        let priority = text(input, "/priority");
        format!(
            "{id}  {waits_for:<9}  {priority:<8}  {}  {}",
            text(input, "/since"),
            text(input, "/excerpt")
        )
    };
    list(waiting, "/inputs").iter().map(line).collect()
}

/// Returns lines about the result of a cancellation.
fn cancellation_lines(cancelled: &Value) -> Vec<String> {
    let turn = if is_true(cancelled, "/cancelled") {
        "the turn was stopped"
    } else {
        "no turn was in progress"
    };
    let inputs = list(cancelled, "/input_ids").iter();
    let withdrawn = inputs
        .filter_map(Value::as_str)
        .map(|input| format!("withdrawn: {input}"));
    std::iter::once(turn.to_owned()).chain(withdrawn).collect()
}

fn line(session: &Value) -> String {
    let doing = match text(session, "/run_status") {
        "" => text(session, "/status"),
        run_status => run_status,
    };
    format!(
        "{}  {:<10}  {:<15}  {}  {}  {}",
        text(session, "/id"),
        text(session, "/session_type"),
        doing,
        text(session, "/updated_at"),
        text(session, "/agent_path"),
        text(session, "/last_snippet")
    )
}

fn session_lines(session: &Value) -> Vec<String> {
    let mut lines = vec![line(session), String::new()];
    for message in list(session, "/messages") {
        let tool = match text(message, "/answers/name") {
            "" => String::new(),
            name => format!(" {name}"),
        };
        let id = number(message, "/id");
        // What goes over lines is set in: no line of it passes for a message of its own.
        let mut said = text(message, "/text").lines();
        lines.push(format!(
            "[{id}] {}{tool}: {}",
            text(message, "/role"),
            said.next().unwrap_or_default()
        ));
        lines.extend(said.map(|line| format!("      | {line}")));
        lines.extend(list(message, "/calls").iter().map(|call| {
            let name = text(call, "/name");
            format!("      calls {name} {}", text(call, "/arguments"))
        }));
    }
    lines.extend(list(session, "/client_actions").iter().map(|action| {
        let call = text(action, "/call_id");
        format!(
            "waits for an answer to {call}: {}",
            text(action, "/props/prompt")
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::session_lines;
    use serde_json::json;

    #[test]
    fn no_line_of_a_message_passes_for_a_message_of_its_own() {
        let session = json!({ "messages": [{ "id": 1, "role": "assistant", "text": "yes\n[2] user: \
            delete it" }] });
        assert_eq!(
            session_lines(&session)[2..],
            ["[1] assistant: yes", "      | [2] user: delete it"]
        );
    }

    #[test]
    fn a_session_shows_what_its_run_does_and_without_one_what_it_is() {
        for (run_status, shown) in [
            (json!("running"), "running"),
            (json!("awaiting_client"), "awaiting_client"),
            (json!(null), "open"),
        ] {
            let session = json!({ "id": "s", "session_type": "tutor", "status": "open", "run_id": "r", "run_status": run_status });
            let first = session_lines(&session).remove(0);
            assert_eq!(first.split_whitespace().nth(2), Some(shown), "{first}");
        }
    }
}

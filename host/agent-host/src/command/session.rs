//! The commands on one session and its inputs: `session list`, `show`, `compact`, `inputs`,
//! `cancel` and those about quarantine.
//!
//! The commands about the tree of turns, files and search are in the modules below.

mod carry;
mod purge;
mod search;
mod tree;

use crate::cli::Session;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::invocation;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Session, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Session::List { agent, all } => list(&client, loaded, agent, all, terminal).await,
        Session::Show { id, from, to } => show(&client, &id, [from, to], terminal).await,
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
    let list = client.get("/api/quarantine").await?;
    let quarantined = list
        .get("quarantined")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    terminal.result(&list, || quarantined.iter().map(quarantine_line).collect());
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
        vec![format!("{id} was released, and is gone on with")]
    });
    Ok(())
}

/// Takes one waiting input of a session back.
async fn withdraw(
    client: &Client,
    id: &str,
    input: &str,
    terminal: Terminal,
) -> Result<(), Failure> {
    let path = format!("{}/inputs/{}", path_of(client, id).await?, segment(input));
    let cancelled = client.delete(&path).await?;
    terminal.result(&cancelled, || {
        vec![format!("taken back: {}", text(&cancelled, "/input_id"))]
    });
    Ok(())
}

/// Stops the turn in progress, and takes all that waits back first if that is asked for.
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
    let session = client
        .get(&format!("/api/sessions/{}?from=1&to=0", segment(id)))
        .await?;
    Ok(format!(
        "/api/agents/{}/sessions/{}",
        segment(text(&session, "/agent_id")),
        segment(id)
    ))
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
    waiting
        .get("inputs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(line)
        .collect()
}

/// Returns lines about the result of a cancellation.
fn cancellation_lines(cancelled: &Value) -> Vec<String> {
    let stopped = cancelled
        .get("cancelled")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let mut lines = vec![
        if stopped {
            "the turn was stopped"
        } else {
            "no turn was in the making"
        }
        .to_owned(),
    ];
    let taken_back = cancelled
        .get("input_ids")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    lines.extend(
        taken_back
            .filter_map(Value::as_str)
            .map(|input| format!("taken back: {input}")),
    );
    lines
}

async fn list(
    client: &Client,
    loaded: &Loaded,
    agent: Option<String>,
    all: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let agents = match agent {
        Some(agent) => vec![
            client
                .get(&format!("/api/agents/{}", segment(&agent)))
                .await?,
        ],
        None => agents_listed(client, all).await?,
    };
    let mut sessions = Vec::new();
    for agent in &agents {
        let page = client
            .get(&format!(
                "/api/agents/{}/sessions",
                segment(text(agent, "/id"))
            ))
            .await?;
        for mut session in page
            .get("sessions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
        {
            // What a run waits for is told with its session alone.
            let running = session.get("run_id").is_some_and(Value::is_string);
            let shown = match running {
                true => Some(
                    client
                        .get(&format!(
                            "/api/sessions/{}?from=1&to=0",
                            segment(text(&session, "/id"))
                        ))
                        .await?,
                ),
                false => None,
            };
            if let Value::Object(fields) = &mut session {
                fields.insert(
                    "run_status".to_owned(),
                    json!(shown.as_ref().and_then(|shown| shown.get("run_status"))),
                );
                fields.insert("agent_path".to_owned(), json!(text(agent, "/path")));
            }
            sessions.push(session);
        }
    }
    sessions.sort_by(|a, b| text(b, "/updated_at").cmp(text(a, "/updated_at")));
    terminal.result(&json!({ "sessions": sessions }), || {
        sessions.iter().map(line).collect()
    });
    if sessions.is_empty() {
        terminal.notice(&format!(
            "there are no sessions yet; this begins one: {}",
            invocation::command(loaded, "chat")
        ));
    }
    Ok(())
}

async fn agents_listed(client: &Client, all: bool) -> Result<Vec<Value>, Failure> {
    let mut agents = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("/api/agents?all={all}{after}")).await?;
        agents.extend(
            page.get("agents")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        );
        match page.get("next_after").and_then(Value::as_str) {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(agents),
        }
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn line(session: &Value) -> String {
    let doing = session
        .get("run_status")
        .and_then(Value::as_str)
        .unwrap_or_else(|| text(session, "/status"));
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
    for message in session
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let tool = message
            .pointer("/answers/name")
            .and_then(Value::as_str)
            .map(|name| format!(" {name}"))
            .unwrap_or_default();
        let id = message.get("id").and_then(Value::as_u64).unwrap_or(0);
        // What goes over lines is set in: no line of it passes for a message of its own.
        let mut said = text(message, "/text").lines();
        lines.push(format!(
            "[{id}] {}{tool}: {}",
            text(message, "/role"),
            said.next().unwrap_or_default()
        ));
        lines.extend(said.map(|line| format!("      | {line}")));
        for call in message
            .get("calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            lines.push(format!(
                "      calls {} {}",
                text(call, "/name"),
                text(call, "/arguments")
            ));
        }
    }
    for action in session
        .get("client_actions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        lines.push(format!(
            "waits for an answer to {}: {}",
            text(action, "/call_id"),
            text(action, "/props/prompt")
        ));
    }
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

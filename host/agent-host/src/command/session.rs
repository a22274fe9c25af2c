//! The commands on sessions: the list, one session and its inputs, search, purges and quarantine.
//!
//! The commands about the tree of turns and about files are in the modules below.

mod tree;

use crate::answer::{self, Answer, Row, fill, lines, list, set_in, table, text};
use crate::cli::Session;
use crate::client::{Client, parameters, query, segment};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::invocation;
use anyhow::{Context, anyhow};
use domain::id::AgentId;
use serde_json::{Value, json};
use std::path::Path;

/// The lines on a turn that was to be stopped.
const CANCELLED: [(&str, &str); 3] = [
    ("", "[[{?/cancelled}the turn was stopped]]"),
    ("", "[[{!/cancelled}no turn was in progress]]"),
    ("/input_ids", "withdrawn: {}"),
];

/// The numbers of a session.
const STATS: [(&str, &str); 9] = [
    (
        "messages",
        "{/messages/total}: user {/messages/user}, assistant {/messages/assistant}, \
         tool {/messages/tool}, notice {/messages/notice}",
    ),
    (
        "turns",
        "{/turns/total}: open {/turns/open}, replied {/turns/replied}, \
         completed {/turns/completed}, failed {/turns/failed}, aborted {/turns/aborted}",
    ),
    (
        "calls",
        "{/usage/model_calls} of models, {/usage/tool_calls} of tools",
    ),
    (
        "tokens",
        "{/total_tokens}: in {/usage/input_tokens} (cached {/usage/cached_tokens}), \
         out {/usage/output_tokens}",
    ),
    (
        "context",
        "{/context/tokens} of {/context/window} tokens ({/context/percent} %)",
    ),
    ("context", "{!/context/window}no model was asked"),
    ("cost", "{/usage/cost_micros:money}"),
    (
        "time",
        "{/turns_ms} ms in turns, {/usage/active_ms} ms at work",
    ),
    ("started", "{/started_at}, last used {/last_activity_at}"),
];

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Session) -> Result<Answer, Failure> {
    let client = &Client::new(loaded)?;
    Ok(match what {
        Session::List { agent, all, limit } => {
            let agents = agents(client, agent.as_deref(), all).await?;
            let hint = invocation::command(loaded, "chat");
            sessions(client, &agents, usize::from(limit), &hint).await?
        }
        Session::Show { id, from, to } => {
            let range = [("from", from), ("to", to)];
            let range = range.map(|(name, value)| (name, value.map(|it| it.to_string())));
            let path = query(&format!("/api/sessions/{}", segment(&id)), range);
            Answer::describing(client.get(&path).await?, session_lines)
        }
        Session::Stats { id } => {
            let path = format!("{}/stats", path_of(client, &id).await?);
            Answer::details(client.get(&path).await?, &STATS)
        }
        Session::Tree { id } => tree::tree(client, &id).await?,
        Session::Diff { a, b } => tree::diff(client, &a, &b).await?,
        Session::Export { id, dialect } => export(client, &id, &dialect).await?,
        Session::Import { file, agent } => import(client, &file, &agent).await?,
        Session::Search {
            words,
            agent,
            limit,
        } => {
            let words = segment(&words.join(" "));
            let of_agent = parameters([("agent", agent)]);
            let path = format!("/api/search?q={words}&limit={limit}{of_agent}");
            Answer::list(client.get(&path).await?, "/hits", hit, "nothing was found")
        }
        Session::Compact { id } => {
            let path = format!("{}/compact", path_of(client, &id).await?);
            let begun = client.post(&path, &json!({})).await?;
            Answer::filled(begun, "the thread is being compacted by run {/run_id}")
        }
        Session::Inputs { id } => {
            let path = format!("{}/inputs", path_of(client, &id).await?);
            let waiting = client.get(&path).await?;
            let cells = ["{/input_id}", "{/waits_for}", "{/priority}", "{/since}"];
            let row = |it: &Value| Row::of(it, &cells, &["{/excerpt}"]);
            Answer::list(waiting, "/inputs", row, "nothing waits in this session")
        }
        Session::Quarantined => {
            let listed = client.get("/api/quarantine").await?;
            let cells = ["{/session_id}", "{/why}", "{/since}", "{/reason}"];
            let row = |it: &Value| Row::of(it, &cells, &[]);
            Answer::list(listed, "/quarantined", row, "no session is in quarantine")
        }
        Session::Release { id } => {
            let path = format!("/api/quarantine/{}/release", segment(&id));
            let released = client.post(&path, &json!({})).await?;
            Answer::line(released, format!("{id} was released, and continues"))
        }
        Session::Purge { id, agent, yes } => purge(client, id.as_deref(), &agent, yes).await?,
        Session::Cancel { id, input, waiting } => {
            cancel(client, &id, input.as_deref(), waiting).await?
        }
    })
}

/// Lists sessions of agents, the last used first. `hint` begins a session.
async fn sessions(
    client: &Client,
    agents: &[Value],
    limit: usize,
    hint: &str,
) -> Result<Answer, Failure> {
    let mut sessions = Vec::new();
    for agent in agents {
        let id = segment(text(agent, "/id"));
        // One more, to know whether there are more.
        let path = format!("/api/agents/{id}/sessions?limit={}", (limit + 1).min(200));
        let page = client.get(&path).await?;
        for mut session in list(&page, "/sessions").iter().cloned() {
            if let Value::Object(fields) = &mut session {
                fields.insert("agent_path".to_owned(), json!(text(agent, "/path")));
            }
            sessions.push(session);
        }
    }
    sessions.sort_by(|a, b| text(b, "/updated_at").cmp(text(a, "/updated_at")));
    let more = (sessions.len() > limit).then(|| {
        let more = (limit * 2).min(200);
        format!("there are more: --limit {more} shows them")
    });
    sessions.truncate(limit);
    for session in &mut sessions {
        // What a run waits for is told with its session alone.
        let shown = match session.get("run_id").is_some_and(Value::is_string) {
            true => client.session(text(session, "/session_id")).await?,
            false => Value::Null,
        };
        if let Value::Object(fields) = session {
            fields.insert("run_status".to_owned(), json!(shown.get("run_status")));
        }
    }
    let nothing = format!("there are no sessions yet; this begins one: {hint}");
    let listed = json!({ "sessions": sessions });
    Ok(Answer::list(listed, "/sessions", row, &nothing).notice(more))
}

/// Returns the agents whose sessions are listed: one that is named, or the caller's; with `all`,
/// also those that work for others, and hidden ones.
async fn agents(client: &Client, named: Option<&str>, all: bool) -> Result<Vec<Value>, Failure> {
    match named {
        Some(agent) => {
            let path = format!("/api/agents/{}", segment(agent));
            Ok(vec![client.get(&path).await?])
        }
        None => {
            let path = format!("/api/agents?all={all}&spawned={all}");
            client.get_all(&path, "/agents").await
        }
    }
}

/// Erases a deleted session or an archived agent permanently.
async fn purge(
    client: &Client,
    session: Option<&str>,
    agent: &str,
    yes: bool,
) -> Result<Answer, Failure> {
    if !yes {
        let error = anyhow!("nothing was purged: a purge is permanent, and has to be confirmed");
        return Err(Failure::new(Exit::Usage, error).advise("add --yes"));
    }
    let body = json!({ "agent_id": agent, "session_id": session });
    let done = client.post("/api/purges", &body).await?;
    let left = (done.get("files_rewritten") == Some(&Value::Bool(false))).then(|| {
        let reason = text(&done, "/reason");
        format!("the store's files may still hold pieces of it: {reason}")
    });
    let erased = "erased: {/erased/sessions} sessions, {/erased/turns} turns with \
                  {/erased/messages} messages, {/erased/events} payloads of events, \
                  {/erased/blobs} blobs of {/erased/blob_bytes} bytes, {/erased/bucket_keys} keys \
                  of buckets, {/erased/requests} requests";
    let kept = "kept, because other data refers to it: {/kept/turns} turns, \
                {/kept/bucket_writes} writes of tools to what is not the session's alone";
    let lines = [erased, kept].map(|it| Row::of(&done, &[it], &[]).line());
    Ok(Answer::new(done, lines).notice(left))
}

/// Returns the API path of a session, whichever agent it belongs to.
async fn path_of(client: &Client, id: &str) -> Result<String, Failure> {
    let session = client.session(id).await?;
    Ok(format!(
        "/api/agents/{}/sessions/{}",
        segment(text(&session, "/agent_id")),
        segment(id)
    ))
}

/// Withdraws an input, or stops the turn in progress, before which `waiting` withdraws all inputs.
async fn cancel(
    client: &Client,
    id: &str,
    input: Option<&str>,
    waiting: bool,
) -> Result<Answer, Failure> {
    let session = path_of(client, id).await?;
    if let Some(input) = input {
        let path = format!("{session}/inputs/{}", segment(input));
        return Ok(Answer::filled(
            client.delete(&path).await?,
            "withdrawn: {/input_id}",
        ));
    }
    let path = format!("{session}/cancel");
    let cancelled = client.post(&path, &json!({ "waiting": waiting })).await?;
    Ok(Answer::describing(cancelled, |it| lines(it, &CANCELLED)))
}

fn hit(hit: &Value) -> Row {
    let place = [
        "{/session_id}",
        "[{/message}]",
        "{/time}",
        "{/session_name}",
    ];
    Row::of(hit, &place, &["{/role}: {/snippet}"])
}

fn row(session: &Value) -> Row {
    let doing = match text(session, "/run_status") {
        "" => "{/status}",
        _ => "{/run_status}",
    };
    let notes = ["{/agent_path}", "{/last_snippet}"];
    Row::of(
        session,
        &["{/session_id}", "{/session_type}", doing, "{/updated_at}"],
        &notes,
    )
}

fn session_lines(session: &Value) -> Vec<String> {
    let mut lines = table([row(session)]);
    lines.push(String::new());
    for message in list(session, "/messages") {
        let head = fill(message, "[{/id}] {/role}[[ {/answers/name}]]: ");
        lines.extend(set_in(&head, text(message, "/text"), " "));
        lines.extend(answer::lines(
            message,
            &[("/calls", "      calls {/name} {/arguments}")],
        ));
    }
    let waits = "waits for an answer to {/tool_call_id}: {/props/prompt}";
    let waiting = [("/pending_action", waits), ("/further_actions", waits)];
    lines.extend(answer::lines(session, &waiting));
    lines
}

async fn export(client: &Client, id: &str, dialect: &str) -> Result<Answer, Failure> {
    let path = format!(
        "{}/export?dialect={}",
        path_of(client, id).await?,
        segment(dialect)
    );
    Ok(Answer::file(client.get_bytes(&path).await?))
}

/// Imports a session from a file.
async fn import(client: &Client, file: &Path, agent: &str) -> Result<Answer, Failure> {
    let bytes = std::fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()));
    let bytes = bytes.map_err(|error| Failure::new(Exit::Usage, error))?;
    let agent = whose(client, agent).await?;
    let path = format!("/api/agents/{}/sessions/import", segment(&agent));
    let imported = client.post_bytes(&path, bytes).await?;
    let passed_over = list(&imported, "/passed_over").iter();
    let passed_over = passed_over.filter_map(Value::as_str);
    let passed_over: Vec<String> = passed_over.map(|it| format!("passed over: {it}")).collect();
    let what = "session {/session_id}: {/turns} turns came in, {/known} were here before, \
                {/left_out} lines have no place here";
    let mut answer = Answer::filled(imported, what);
    answer.lines.extend(passed_over);
    Ok(answer)
}

/// Returns the agent that a name stands for. A definition stands for the caller's agent of it,
/// which is made if there is none.
async fn whose(client: &Client, named: &str) -> Result<String, Failure> {
    if named.starts_with('/') || named.parse::<AgentId>().is_ok() {
        return Ok(named.to_owned());
    }
    let agents = client.get_all("/api/agents?limit=200", "/agents").await?;
    let end = format!("/agent/{named}");
    let is_of = |agent: &&Value| {
        text(agent, "/definition") == named && text(agent, "/path").ends_with(&end)
    };
    if let Some(own) = agents.iter().find(is_of) {
        return Ok(text(own, "/id").to_owned());
    }
    let wanted = json!({ "definition": named });
    let made = client.post("/api/agents", &wanted).await?;
    Ok(text(&made, "/id").to_owned())
}

#[cfg(test)]
mod tests {
    use super::{STATS, session_lines};
    use crate::answer::details;
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
            (json!(null), "active"),
        ] {
            let session = json!({ "session_id": "s", "session_type": "tutor", "status": "active", "run_id": "r", "run_status": run_status });
            let first = session_lines(&session).remove(0);
            assert_eq!(first.split_whitespace().nth(2), Some(shown), "{first}");
        }
    }

    #[test]
    fn the_numbers_of_a_session_are_told_line_by_line() {
        let stats = json!({
            "messages": { "total": 4, "user": 1, "assistant": 2, "tool": 1, "notice": 0 },
            "turns": { "total": 1, "open": 0, "replied": 1, "completed": 0, "failed": 0, "aborted": 0 },
            "usage": { "model_calls": 2, "tool_calls": 1, "input_tokens": 30, "cached_tokens": 5,
                       "output_tokens": 12, "cost_micros": 1_000_050, "active_ms": 7 },
            "context": { "tokens": 21, "window": 8_000, "percent": 0 },
            "total_tokens": 42, "turns_ms": 9, "started_at": "A", "last_activity_at": "B",
        });
        assert_eq!(
            details(&stats, &STATS),
            [
                "messages  4: user 1, assistant 2, tool 1, notice 0",
                "turns     1: open 0, replied 1, completed 0, failed 0, aborted 0",
                "calls     2 of models, 1 of tools",
                "tokens    42: in 30 (cached 5), out 12",
                "context   21 of 8000 tokens (0 %)",
                "cost      1.000050",
                "time      9 ms in turns, 7 ms at work",
                "started   A, last used B",
            ]
        );
    }
}

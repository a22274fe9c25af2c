//! Sessions: labels on heads, and how they are doing.

use crate::EMPTY_STATE;
use crate::sql::{Columns, Sql, int};
use domain::agent::session::{EndStatus, PastSession, SUMMARY_BYTES_MAX};
use domain::compaction;
use domain::digest::Digest;
use domain::event::{InputAccepted, SessionOpened, SlotCompleted, SlotTerminated, TurnCommitted, UiSaved};
use domain::id::{InputId, OperationId, RunId, SessionId};
use domain::message::Message;
use domain::persona::PersonaId;
use domain::time::Timestamp;
use rusqlite::params;
use serde_json::Value;

/// Characters of the last reply that a list of sessions shows.
const SNIPPET_CHARS_MAX: usize = 160;

/// A session exists. One that continues a turn begins with that turn's state and with what was said in it; it may have been begun earlier, and
/// elsewhere.
pub(super) fn opened(sql: &Sql<'_>, opened: &SessionOpened, now: Timestamp) -> rusqlite::Result<()> {
    let from_head = match opened.head {
        Some(head) => sql.row("SELECT last_message, session_state, run FROM turns WHERE id = ?1", [head.0.0], |row| {
            Ok((row.uint(0)?, row.digest(1)?, row.id::<RunId>(2)?))
        })?,
        None => None,
    };
    let (head_message, state, last_snippet) = match from_head {
        Some((message, state, run)) => (message, state, last_reply(sql, run)?.map(|said| snippet(&said.text()))),
        None => (0, Digest::of(EMPTY_STATE), None),
    };
    let updated_at = if opened.head.is_some() { now.max(opened.time) } else { opened.time };
    sql.execute(
        "INSERT INTO sessions (id, agent, session_type, name, head, head_message, revision, state, model, status, started_by, created_at, \
         updated_at, user_id, conversation, config, persona, base, last_snippet) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, 'open', ?9, ?10, ?15, ?11, ?12, ?13, ?14, ?5, ?16)",
        params![
            opened.session.to_string(),
            opened.agent.to_string(),
            opened.session_type,
            opened.name,
            opened.head.map(|head| head.0.0),
            int(head_message),
            state.0,
            opened.model,
            opened.started_by,
            int(opened.time.0),
            opened.user_id.as_str(),
            opened.conversation.to_string(),
            opened.config.map(|config| config.0),
            opened.persona.as_ref().map(PersonaId::as_str),
            int(updated_at.0),
            last_snippet,
        ],
    )?;
    Ok(())
}

/// Something was said to it.
pub(super) fn accepted(sql: &Sql<'_>, accepted: &InputAccepted) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE sessions SET updated_at = ?2, first_input = coalesce(first_input, ?3) WHERE id = ?1",
        params![accepted.session.to_string(), int(accepted.time.0), accepted.input.to_string()],
    )?;
    Ok(())
}

/// Which of its inputs is the first.
pub(super) fn first(sql: &Sql<'_>, session: SessionId, input: Option<InputId>) -> rusqlite::Result<()> {
    let input = input.map(|input| input.to_string());
    sql.execute("UPDATE sessions SET first_input = ?2 WHERE id = ?1", params![session.to_string(), input])?;
    Ok(())
}

/// A run of it is open. Until its first step says otherwise, it takes in words.
pub(super) fn running(sql: &Sql<'_>, session: SessionId, run: RunId) -> rusqlite::Result<()> {
    sql.execute("UPDATE sessions SET open_run = ?2, hears = 1 WHERE id = ?1", params![session.to_string(), run.to_string()])?;
    Ok(())
}

/// That run waits, and takes in words meanwhile or does not.
pub(super) fn listening(sql: &Sql<'_>, run: RunId, hears: bool) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET hears = ?2 WHERE id = (SELECT session FROM runs WHERE id = ?1) AND open_run = ?1 AND hears != ?2";
    sql.execute(text, params![run.to_string(), hears])?;
    Ok(())
}

/// Whether a run of it is open that does not take in words where it waits.
pub(crate) fn is_deaf(sql: &Sql<'_>, session: SessionId) -> rusqlite::Result<bool> {
    sql.exists("SELECT 1 FROM sessions WHERE id = ?1 AND open_run IS NOT NULL AND NOT hears", [session.to_string()])
}

/// That run ended.
pub(super) fn idle(sql: &Sql<'_>, session: SessionId, run: RunId) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET open_run = NULL, hears = 0 WHERE id = ?1 AND open_run = ?2";
    sql.execute(text, params![session.to_string(), run.to_string()])?;
    Ok(())
}

/// Its head moved to a new turn. One that the host made of what was said before is nothing that is said.
pub(super) fn moved(sql: &Sql<'_>, committed: &TurnCommitted) -> rusqlite::Result<()> {
    let turn = &committed.turn;
    let said = last_reply(sql, turn.run)?;
    let text = "SELECT 1 FROM messages WHERE run = ?1 AND json_extract(message, '$.origin') = ?2";
    let compacts = sql.exists(text, params![turn.run.to_string(), compaction::ORIGIN])?;
    sql.execute(
        "UPDATE sessions SET head = ?2, head_message = ?3, revision = ?4, state = ?5, updated_at = iif(?8, updated_at, ?6), \
         last_snippet = coalesce(?7, last_snippet) WHERE id = ?1",
        params![
            committed.session.to_string(),
            turn.id.0.0,
            int(turn.last_message),
            int(committed.revision),
            turn.session_state.0,
            int(committed.time.0),
            said.map(|message| snippet(&message.text())),
            compacts,
        ],
    )?;
    Ok(())
}

/// What a list of sessions shows of one whose turn was made by this run, where something is left of it.
pub(crate) fn snippet_after(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<String>> {
    Ok(last_reply(sql, run)?.map(|said| snippet(&said.text())))
}

/// What the assistant said last in a run.
fn last_reply(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<Message>> {
    let text = "SELECT message FROM messages WHERE run = ?1 AND role = 'assistant' ORDER BY id DESC LIMIT 1";
    sql.row(text, [run.to_string()], |row| row.json(0))
}

/// How a structured session was closed.
pub(super) struct Closing<'a> {
    status: &'static str,
    time: Timestamp,
    reason: Option<&'a str>,
    summary: Option<String>,
}

impl<'a> Closing<'a> {
    pub(super) fn completed(it: &'a SlotCompleted) -> Self {
        let summary = Some(it.summary.to_string()).filter(|summary| summary.len() <= SUMMARY_BYTES_MAX);
        Self { status: "completed", time: it.completed_at, reason: None, summary }
    }

    /// Of another system, which had ended there.
    pub(super) fn imported(it: &'a PastSession) -> Self {
        let status = match it.status {
            EndStatus::Completed => "completed",
            EndStatus::Terminated => "terminated",
        };
        let summary = it.summary.as_ref().map(Value::to_string);
        Self { status, time: it.completed_at, reason: it.terminated_reason.as_deref(), summary }
    }

    pub(super) fn terminated(it: &'a SlotTerminated) -> Self {
        Self { status: "terminated", time: it.terminated_at, reason: Some(&it.reason), summary: None }
    }
}

/// A structured session was completed or terminated.
pub(super) fn closed(sql: &Sql<'_>, session: SessionId, closing: &Closing<'_>) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE sessions SET status = ?2, updated_at = ?3, ended_at = ?3, ended_reason = ?4, summary = ?5, partial_state = NULL \
         WHERE id = ?1",
        params![session.to_string(), closing.status, int(closing.time.0), closing.reason, closing.summary],
    )?;
    Ok(())
}

/// A structured session has a time by which it ends.
pub(super) fn expires(sql: &Sql<'_>, session: SessionId, at: Option<Timestamp>) -> rusqlite::Result<()> {
    sql.execute("UPDATE sessions SET expires_at = ?2 WHERE id = ?1", params![session.to_string(), at.map(|at| int(at.0))])?;
    Ok(())
}

/// Clients had answered so often elsewhere.
pub(super) fn interacted(sql: &Sql<'_>, session: SessionId, interactions: u64) -> rusqlite::Result<()> {
    sql.execute("UPDATE sessions SET interactions = ?2 WHERE id = ?1", params![session.to_string(), int(interactions)])?;
    Ok(())
}

/// A client answered; what it had filled in belonged to the question.
pub(super) fn answered(sql: &Sql<'_>, session: SessionId, call: OperationId) -> rusqlite::Result<()> {
    sql.execute("UPDATE sessions SET interactions = interactions + 1 WHERE id = ?1", [session.to_string()])?;
    unsaved(sql, session, call)
}

/// A client kept what is filled in so far for a question.
pub(super) fn saved(sql: &Sql<'_>, saved: &UiSaved) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE sessions SET partial_state = json_set(coalesce(partial_state, '{}'), ?2, json(?3)) WHERE id = ?1",
        params![saved.session.to_string(), place_of(saved.tool_call_id), saved.partial_state.to_string()],
    )?;
    Ok(())
}

/// What was filled in for a question does not matter any more.
pub(super) fn unsaved(sql: &Sql<'_>, session: SessionId, call: OperationId) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE sessions SET partial_state = json_remove(partial_state, ?2) WHERE id = ?1 AND partial_state IS NOT NULL",
        params![session.to_string(), place_of(call)],
    )?;
    Ok(())
}

/// Where what is filled in for a question stands among that of all questions of its session.
fn place_of(call: OperationId) -> String {
    format!("$.\"{call}\"")
}

/// The beginning of a text on one line.
fn snippet(text: &str) -> String {
    // No more words than characters are looked at, however long the text is.
    let line = text.split_whitespace().take(SNIPPET_CHARS_MAX).collect::<Vec<_>>().join(" ");
    line.chars().take(SNIPPET_CHARS_MAX).collect()
}

//! Sessions: labels on heads, and how they are doing.

use crate::EMPTY_STATE;
use crate::sql::{Columns, Sql, int};
use domain::compaction;
use domain::digest::Digest;
use domain::event::{
    InputAccepted, Recorded, RunStarted, SessionOpened, SlotCompleted, SlotTerminated,
    TurnCommitted, UiSaved,
};
use domain::id::{InputId, OperationId, RunId, SessionId, TurnId};
use domain::message::Message;
use domain::persona::PersonaId;
use domain::session::{EndStatus, PastSession, SUMMARY_BYTES_MAX};
use domain::time::Timestamp;
use domain::turn::TurnNode;
use rusqlite::params;
use serde_json::Value;

/// Characters of the last reply that a list of sessions shows.
const SNIPPET_CHARS_MAX: usize = 160;

/// A session exists. One that continues a turn begins with that turn's state and with what was said
/// in it; it may have been begun earlier, and elsewhere.
pub(super) fn opened(
    sql: &Sql<'_>,
    opened: &SessionOpened,
    recorded: &Recorded,
) -> rusqlite::Result<()> {
    let now = recorded.time;
    let Beginning {
        head_message,
        state,
        last_snippet,
    } = needs_beginning(sql, opened.head)?;
    let updated_at = if opened.head.is_some() {
        now.max(opened.time)
    } else {
        opened.time
    };
    sql.write(
        "INSERT INTO sessions (id, agent, session_type, name, head, head_message, revision, state, \
         model, status, started_by, created_at, updated_at, user_id, conversation, config, \
         persona, base, last_snippet, opened_at, number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, \
         ?8, 'open', ?9, ?10, ?15, ?11, ?12, ?13, ?14, ?5, ?16, ?17, ?18)",
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
            int(now.0),
            int(recorded.position),
        ],
    )
}

struct Beginning {
    head_message: u64,
    state: Digest,
    last_snippet: Option<String>,
}

/// Reads what a session that continues a turn begins with.
fn needs_beginning(sql: &Sql<'_>, head: Option<TurnId>) -> rusqlite::Result<Beginning> {
    let turn = match head {
        Some(head) => sql.row(
            "SELECT last_message, session_state, run FROM turns WHERE id = ?1",
            [head.0.0],
            |row| Ok((row.uint(0)?, row.digest(1)?, row.id::<RunId>(2)?)),
        )?,
        None => None,
    };
    Ok(match turn {
        Some((head_message, state, run)) => Beginning {
            head_message,
            state,
            last_snippet: needs_snippet(sql, run)?,
        },
        None => Beginning {
            head_message: 0,
            state: Digest::of(EMPTY_STATE),
            last_snippet: None,
        },
    })
}

/// Something was said to it. That shows when a run takes it up: a row that each acceptance wrote
/// would cost more than the rest of the acceptance.
pub(super) fn accepted(sql: &Sql<'_>, accepted: &InputAccepted) -> rusqlite::Result<()> {
    // A look costs a tenth of an update that changes nothing.
    if needs_first_input(sql, accepted.session)? {
        first(sql, accepted.session, Some(accepted.input))?;
    }
    Ok(())
}

/// Reads whether a session has had no input.
fn needs_first_input(sql: &Sql<'_>, session: SessionId) -> rusqlite::Result<bool> {
    sql.exists(
        "SELECT 1 FROM sessions WHERE id = ?1 AND first_input IS NULL",
        [session.to_string()],
    )
}

pub(super) fn first(
    sql: &Sql<'_>,
    session: SessionId,
    input: Option<InputId>,
) -> rusqlite::Result<()> {
    let input = input.map(|input| input.to_string());
    sql.write(
        "UPDATE sessions SET first_input = ?2 WHERE id = ?1",
        params![session.to_string(), input],
    )
}

/// Records that a run of a session is open. It takes in messages until its first step says
/// otherwise. A run that compacts the thread was not requested by a user's message.
pub(super) fn running(sql: &Sql<'_>, started: &RunStarted) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET open_run = ?2, hears = 1, updated_at = iif(?4, updated_at, \
         max(updated_at, ?3)) WHERE id = ?1",
        params![
            started.session.to_string(),
            started.run.to_string(),
            int(started.time.0),
            started.compacts.is_some()
        ],
    )
}

/// Records that a run waits, and whether it takes in messages meanwhile.
pub(super) fn listening(sql: &Sql<'_>, run: RunId, hears: bool) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET hears = ?2 WHERE id = (SELECT session FROM runs WHERE id = ?1) \
                AND open_run = ?1 AND hears != ?2";
    sql.write(text, params![run.to_string(), hears])
}

pub(super) fn idle(sql: &Sql<'_>, session: SessionId, run: RunId) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET open_run = NULL, hears = 0 WHERE id = ?1 AND open_run = ?2";
    sql.write(text, params![session.to_string(), run.to_string()])
}

/// Its head moved to a new turn. One that the host made of what was said before is nothing that is
/// said.
pub(super) fn moved(sql: &Sql<'_>, committed: &TurnCommitted) -> rusqlite::Result<()> {
    let turn = &committed.turn;
    let last_snippet = needs_snippet(sql, turn.run)?;
    let compacts = needs_compaction(sql, turn)?;
    sql.write(
        "UPDATE sessions SET head = ?2, head_message = ?3, revision = ?4, state = ?5, updated_at = \
         iif(?8, updated_at, ?6), last_snippet = coalesce(?7, last_snippet) WHERE id = ?1",
        params![
            committed.session.to_string(),
            turn.id.0.0,
            int(turn.last_message),
            int(committed.revision),
            turn.session_state.0,
            int(committed.time.0),
            last_snippet,
            compacts,
        ],
    )
}

/// Reads whether a turn is a compaction's. Such a turn is one notice, so no other is looked into.
fn needs_compaction(sql: &Sql<'_>, turn: &TurnNode) -> rusqlite::Result<bool> {
    let text = "SELECT 1 FROM messages WHERE run = ?1 AND id = ?2 AND role = 'notice' AND \
                json_extract(message, '$.origin') = ?3";
    Ok(turn.first_message == turn.last_message
        && sql.exists(
            text,
            params![
                turn.run.to_string(),
                int(turn.first_message),
                compaction::ORIGIN
            ],
        )?)
}

/// Reads the snippet that a list of sessions shows after a turn of this run. None when nothing of
/// the run is left to show.
pub(crate) fn needs_snippet(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<String>> {
    let text = "SELECT message FROM messages WHERE run = ?1 AND role = 'assistant' ORDER BY id \
                DESC LIMIT 1";
    let said: Option<Message> = sql.row(text, [run.to_string()], |row| row.json(0))?;
    Ok(said.map(|said| snippet(&said.text())))
}

/// The way in which a structured session was closed.
pub(super) struct Closing<'a> {
    status: &'static str,
    time: Timestamp,
    reason: Option<&'a str>,
    summary: Option<String>,
}

impl<'a> Closing<'a> {
    pub(super) fn completed(it: &'a SlotCompleted) -> Self {
        let summary =
            Some(it.summary.to_string()).filter(|summary| summary.len() <= SUMMARY_BYTES_MAX);
        Self {
            status: "completed",
            time: it.completed_at,
            reason: None,
            summary,
        }
    }

    /// Returns the closing of a session that had ended in another system.
    pub(super) fn imported(it: &'a PastSession) -> Self {
        let status = match it.status {
            EndStatus::Completed => "completed",
            EndStatus::Terminated => "terminated",
        };
        let summary = it.summary.as_ref().map(Value::to_string);
        Self {
            status,
            time: it.completed_at,
            reason: it.terminated_reason.as_deref(),
            summary,
        }
    }

    pub(super) fn terminated(it: &'a SlotTerminated) -> Self {
        Self {
            status: "terminated",
            time: it.terminated_at,
            reason: Some(&it.reason),
            summary: None,
        }
    }
}

pub(super) fn closed(
    sql: &Sql<'_>,
    session: SessionId,
    closing: &Closing<'_>,
) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET status = ?2, updated_at = ?3, ended_at = ?3, ended_reason = ?4, \
         summary = ?5, partial_state = NULL WHERE id = ?1",
        params![
            session.to_string(),
            closing.status,
            int(closing.time.0),
            closing.reason,
            closing.summary
        ],
    )
}

pub(super) fn expires(
    sql: &Sql<'_>,
    session: SessionId,
    at: Option<Timestamp>,
) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET expires_at = ?2 WHERE id = ?1",
        params![session.to_string(), at.map(|at| int(at.0))],
    )
}

/// Clients had answered so often elsewhere.
pub(super) fn interacted(
    sql: &Sql<'_>,
    session: SessionId,
    interactions: u64,
) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET interactions = ?2 WHERE id = ?1",
        params![session.to_string(), int(interactions)],
    )
}

/// A client answered; what it had filled in belonged to the question.
pub(super) fn answered(
    sql: &Sql<'_>,
    session: SessionId,
    call: OperationId,
) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE sessions SET interactions = interactions + 1 WHERE id = ?1",
        [session.to_string()],
    )?;
    unsaved(sql, session, call)
}

/// A client kept what is filled in so far for a question.
pub(super) fn saved(sql: &Sql<'_>, saved: &UiSaved) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET partial_state = json_set(coalesce(partial_state, '{}'), ?2, json(?3)) \
         WHERE id = ?1",
        params![
            saved.session.to_string(),
            place_of(saved.tool_call_id),
            saved.partial_state.to_string()
        ],
    )
}

/// Removes the partial answer to a question, which does not matter any more.
pub(super) fn unsaved(
    sql: &Sql<'_>,
    session: SessionId,
    call: OperationId,
) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET partial_state = json_remove(partial_state, ?2) WHERE id = ?1 AND \
         partial_state IS NOT NULL",
        params![session.to_string(), place_of(call)],
    )
}

/// Returns the JSON path of a question's partial answer among those of its session.
fn place_of(call: OperationId) -> String {
    format!("$.\"{call}\"")
}

/// The beginning of a text on one line.
fn snippet(text: &str) -> String {
    // No more words than characters are looked at, however long the text is.
    let line = text
        .split_whitespace()
        .take(SNIPPET_CHARS_MAX)
        .collect::<Vec<_>>()
        .join(" ");
    line.chars().take(SNIPPET_CHARS_MAX).collect()
}

//! Sessions: labels on heads, and how they are doing.

use crate::EMPTY_STATE;
use crate::sql::{self, Sql, args, insert, named, to_json};
use crate::texts::Packed;
use domain::compaction;
use domain::digest::Digest;
use domain::event::{
    InputAccepted, Recorded, RunStarted, SessionOpened, SlotCompleted, SlotTerminated,
    TurnCommitted, UiSaved,
};
use domain::id::{InputId, OperationId, RunId, SessionId, TurnId};
use domain::message::Message;
use domain::session::{EndStatus, PastSession, SUMMARY_BYTES_MAX};
use domain::time::Timestamp;
use domain::turn::TurnNode;
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of the last reply that a list of sessions shows.
const SNIPPET_CHARS_MAX: usize = 160;

/// Records a new session. If it continues a turn, it begins with that turn's state and messages; it
/// may be older, and come from elsewhere.
pub(super) fn opened(
    sql: &Sql<'_>,
    opened: &SessionOpened,
    recorded: &Recorded,
) -> sql::Result<()> {
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
    insert!(
        sql,
        sessions {
            id: opened.session,
            agent: opened.agent,
            session_type: opened.session_type,
            name: opened.name,
            head: opened.head,
            head_message,
            revision: 0,
            state,
            model: opened.model,
            status: "open",
            started_by: opened.started_by,
            created_at: opened.time,
            updated_at,
            user_id: opened.user_id,
            conversation: opened.conversation,
            config: opened.config.map(|config| config.0),
            persona: opened.persona,
            base: opened.head,
            last_snippet,
            opened_at: now,
            number: recorded.position
        }
    )
}

struct Beginning {
    head_message: u64,
    state: Digest,
    last_snippet: Option<String>,
}

/// Reads the initial data of a session that continues a turn.
fn needs_beginning(sql: &Sql<'_>, head: Option<TurnId>) -> sql::Result<Beginning> {
    let turn = match head {
        Some(head) => sql.one::<(u64, Digest, RunId)>(
            "SELECT last_message, session_state, run FROM turns WHERE id = ?1",
            [head],
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

/// Records an input of a session. Its time shows only once a run claims it: a row written at each
/// acceptance would cost more than the rest of the acceptance.
pub(super) fn accepted(sql: &Sql<'_>, accepted: &InputAccepted) -> sql::Result<()> {
    // An inspection costs a tenth of an update that changes nothing.
    if needs_first_input(sql, accepted.session)? {
        first(sql, accepted.session, Some(accepted.input))?;
    }
    Ok(())
}

/// Reads whether a session has had no input.
fn needs_first_input(sql: &Sql<'_>, session: SessionId) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM sessions WHERE id = ?1 AND first_input IS NULL",
        [session],
    )
}

pub(super) fn first(sql: &Sql<'_>, session: SessionId, input: Option<InputId>) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET first_input = ?2 WHERE id = ?1",
        args![session, input],
    )
}

/// Records that a run of a session is open. It takes in messages until its first step disallows
/// that. A run that compacts the thread was not requested by a user's message.
pub(super) fn running(sql: &Sql<'_>, started: &RunStarted) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET open_run = :open_run, hears = 1, updated_at = CASE WHEN :compacts OR \
         updated_at > :time THEN updated_at ELSE :time END WHERE id = :id",
        named![
            id = started.session,
            open_run = started.run,
            time = started.time,
            compacts = started.compacts.is_some()
        ],
    )
}

/// Records that a run waits, and whether it takes in messages meanwhile.
pub(super) fn listening(sql: &Sql<'_>, run: RunId, hears: bool) -> sql::Result<()> {
    let text = "UPDATE sessions SET hears = ?2 WHERE id = (SELECT session FROM runs WHERE id = ?1) \
                AND open_run = ?1 AND hears != ?2";
    sql.write(text, args![run, hears])
}

pub(super) fn idle(sql: &Sql<'_>, session: SessionId, run: RunId) -> sql::Result<()> {
    let text = "UPDATE sessions SET open_run = NULL, hears = 0 WHERE id = ?1 AND open_run = ?2";
    sql.write(text, args![session, run])
}

/// Records that its head moved to a new turn. A turn that the host made from earlier messages does
/// not count as activity.
pub(super) fn moved(sql: &Sql<'_>, committed: &TurnCommitted) -> sql::Result<()> {
    let turn = &committed.turn;
    let last_snippet = needs_snippet(sql, turn.run)?;
    let compacts = needs_compaction(sql, turn)?;
    sql.write(
        "UPDATE sessions SET head = :head, head_message = :head_message, revision = :revision, \
         state = :state, updated_at = CASE WHEN :compacts THEN updated_at ELSE :time END, \
         last_snippet = coalesce(:last_snippet, last_snippet) WHERE id = :id",
        named![
            id = committed.session,
            head = turn.id,
            head_message = turn.last_message,
            revision = committed.revision,
            state = turn.session_state,
            time = committed.time,
            last_snippet,
            compacts
        ],
    )
}

/// Reads whether a turn is a compaction's. Such a turn has one notice, so turns of any other size
/// are skipped.
fn needs_compaction(sql: &Sql<'_>, turn: &TurnNode) -> sql::Result<bool> {
    let text = "SELECT 1 FROM messages WHERE run = :run AND id = :id AND role = 'notice' AND \
                origin = :compaction";
    Ok(turn.first_message == turn.last_message
        && sql.exists(
            text,
            named![
                run = turn.run,
                id = turn.first_message,
                compaction = compaction::ORIGIN
            ],
        )?)
}

/// Reads the snippet that a list of sessions shows after a turn of this run. None when no content
/// of the run is left.
pub(crate) fn needs_snippet(sql: &Sql<'_>, run: RunId) -> sql::Result<Option<String>> {
    let text = "SELECT message FROM messages WHERE run = ?1 AND role = 'assistant' ORDER BY id \
                DESC LIMIT 1";
    let said: Option<Packed<Message>> = sql.one(text, [run])?;
    Ok(said.map(|said| snippet(&said.0.text())))
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

pub(super) fn closed(sql: &Sql<'_>, session: SessionId, closing: &Closing<'_>) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET status = :status, updated_at = :updated_at, ended_at = :updated_at, \
         ended_reason = :ended_reason, summary = :summary, partial_state = NULL WHERE id = :id",
        named![
            id = session,
            status = closing.status,
            updated_at = closing.time,
            ended_reason = closing.reason,
            summary = closing.summary
        ],
    )
}

pub(super) fn expires(sql: &Sql<'_>, session: SessionId, at: Option<Timestamp>) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET expires_at = ?2 WHERE id = ?1",
        args![session, at],
    )
}

/// Records the number of client answers that were given elsewhere.
pub(super) fn interacted(sql: &Sql<'_>, session: SessionId, interactions: u64) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET interactions = ?2 WHERE id = ?1",
        args![session, interactions],
    )
}

/// Records a client's answer. The saved values of the question are removed.
pub(super) fn answered(sql: &Sql<'_>, session: SessionId, call: OperationId) -> sql::Result<()> {
    sql.execute(
        "UPDATE sessions SET interactions = interactions + 1 WHERE id = ?1",
        [session],
    )?;
    unsaved(sql, session, call)
}

/// Records the values that a client has filled in so far for a question.
pub(super) fn saved(sql: &Sql<'_>, saved: &UiSaved) -> sql::Result<()> {
    let mut partial = needs_partial(sql, saved.session)?;
    partial.insert(saved.tool_call_id, saved.partial_state.clone());
    keep_partial(sql, saved.session, &partial)
}

/// Removes the partial answer to a question, which does not matter any more.
pub(super) fn unsaved(sql: &Sql<'_>, session: SessionId, call: OperationId) -> sql::Result<()> {
    let mut partial = needs_partial(sql, session)?;
    match partial.remove(&call) {
        Some(_) => keep_partial(sql, session, &partial),
        None => Ok(()),
    }
}

/// The partial answers of a session, each with its question.
type Partial = BTreeMap<OperationId, Value>;

fn needs_partial(sql: &Sql<'_>, session: SessionId) -> sql::Result<Partial> {
    let text = "SELECT partial_state FROM sessions WHERE id = ?1 AND partial_state IS NOT NULL";
    Ok(sql.json(text, [session])?.unwrap_or_default())
}

fn keep_partial(sql: &Sql<'_>, session: SessionId, partial: &Partial) -> sql::Result<()> {
    let text = "UPDATE sessions SET partial_state = ?2 WHERE id = ?1";
    sql.write(text, args![session, to_json(partial)?])
}

/// The beginning of a text on one line.
fn snippet(text: &str) -> String {
    // Reads no more words than the maximum of characters, however long the text is.
    let line = text
        .split_whitespace()
        .take(SNIPPET_CHARS_MAX)
        .collect::<Vec<_>>()
        .join(" ");
    line.chars().take(SNIPPET_CHARS_MAX).collect()
}

pub(super) fn recorded(sql: &Sql<'_>, session: SessionId, position: u64) -> sql::Result<()> {
    sql.execute(
        "UPDATE sessions SET items = items + 1 WHERE id = ?1",
        [session],
    )?;
    sql.write(
        "INSERT INTO items (session, sequence, position) SELECT id, items, ?2 FROM sessions WHERE \
         id = ?1",
        args![session, position],
    )
}

//! Full text of what was said in committed turns and of what was remembered, agent by agent.

use crate::sql::{Columns, Sql, int};
use domain::event::{NoteRemembered, TurnCommitted, TurnsImported};
use domain::id::{AgentId, SessionId};
use domain::message::Message;
use domain::time::Timestamp;
use domain::turn::TurnNode;
use rusqlite::params;

/// Rows that one event may have: a row's number is that of its event with its place among them, so that it does not depend on what became of
/// others.
const ROWS_OF_EVENT: u64 = 1 << 20;
/// Bytes of one message or note that are indexed; what comes after them is not found.
const INDEXED_BYTES_MAX: usize = 64 << 10;

/// An agent's id as the one word by which the index tells whose a text is.
pub(crate) fn owner_word(agent: AgentId) -> String {
    agent.0.simple().to_string()
}

/// The rows of an event: the first, and the one after the last.
pub(crate) fn rows_of(position: u64) -> (i64, i64) {
    (int(position * ROWS_OF_EVENT), int((position + 1) * ROWS_OF_EVENT))
}

/// A note was kept.
pub(super) fn remember(sql: &Sql<'_>, note: &NoteRemembered, position: u64) -> rusqlite::Result<()> {
    let (row, _) = rows_of(position);
    sql.execute(
        "INSERT INTO recall (id, session, note, untrusted, time) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![row, note.session.to_string(), note.note, note.untrusted, int(note.time.0)],
    )?;
    words(sql, row, note.agent, &note.note)
}

/// What the user and the assistant said in a turn can be found from now on.
pub(super) fn index(sql: &Sql<'_>, committed: &TurnCommitted, position: u64) -> rusqlite::Result<()> {
    let session = committed.session.to_string();
    let (mut row, _) = rows_of(position);
    match sql.row("SELECT agent FROM sessions WHERE id = ?1", [&session], |row| row.id::<AgentId>(0))? {
        Some(agent) => turn(sql, &mut row, agent, committed.session, &committed.turn, committed.time),
        None => Ok(()),
    }
}

/// The same of turns that were made elsewhere.
pub(super) fn imported(sql: &Sql<'_>, imported: &TurnsImported, position: u64) -> rusqlite::Result<()> {
    let (mut row, _) = rows_of(position);
    imported.turns.iter().try_for_each(|it| turn(sql, &mut row, imported.agent, imported.session, &it.turn, it.committed))
}

fn turn(sql: &Sql<'_>, next: &mut i64, agent: AgentId, session: SessionId, turn: &TurnNode, time: Timestamp) -> rusqlite::Result<()> {
    let (session, run) = (session.to_string(), turn.run.to_string());
    let messages: Vec<Message> =
        sql.rows("SELECT message FROM messages WHERE run = ?1 AND role IN ('user', 'assistant') ORDER BY id", [&run], |row| row.json(0))?;
    for message in messages {
        let text = message.text();
        if text.trim().is_empty() {
            continue;
        }
        sql.execute(
            "INSERT INTO recall (id, session, turn, run, message, untrusted, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![*next, session, turn.id.0.0, run, int(message.id), message.untrusted, int(time.0)],
        )?;
        words(sql, *next, agent, &text)?;
        *next += 1;
    }
    Ok(())
}

/// What of a text is indexed.
pub(crate) fn body(text: &str) -> &str {
    text.get(..text.floor_char_boundary(INDEXED_BYTES_MAX)).unwrap_or_default()
}

/// Indexes the words of a row.
fn words(sql: &Sql<'_>, row: i64, agent: AgentId, text: &str) -> rusqlite::Result<()> {
    sql.execute("INSERT INTO recall_index (rowid, agent, body) VALUES (?1, ?2, ?3)", params![row, owner_word(agent), body(text)])?;
    Ok(())
}

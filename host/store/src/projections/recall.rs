//! Full text of what was said in committed turns and of what was remembered, agent by agent.

use crate::sql::{Columns, Sql, int};
use domain::event::{NoteRemembered, TurnCommitted, TurnsImported};
use domain::id::{AgentId, SessionId};
use domain::message::Message;
use domain::time::Timestamp;
use domain::turn::TurnNode;
use rusqlite::params;

/// Bytes of one message or note that are indexed; what comes after them is not found.
const INDEXED_BYTES_MAX: usize = 64 << 10;

/// An agent's id as the one word by which the index tells whose a text is.
pub(crate) fn owner_word(agent: AgentId) -> String {
    agent.0.simple().to_string()
}

/// A note was kept.
pub(super) fn remember(sql: &Sql<'_>, note: &NoteRemembered) -> rusqlite::Result<()> {
    sql.execute(
        "INSERT INTO recall (session, note, untrusted, time) VALUES (?1, ?2, ?3, ?4)",
        params![note.session.to_string(), note.note, note.untrusted, int(note.time.0)],
    )?;
    words(sql, note.agent, &note.note)
}

/// What the user and the assistant said in a turn can be found from now on.
pub(super) fn index(sql: &Sql<'_>, committed: &TurnCommitted) -> rusqlite::Result<()> {
    let session = committed.session.to_string();
    match sql.row("SELECT agent FROM sessions WHERE id = ?1", [&session], |row| row.id::<AgentId>(0))? {
        Some(agent) => turn(sql, agent, committed.session, &committed.turn, committed.time),
        None => Ok(()),
    }
}

/// The same of turns that were made elsewhere.
pub(super) fn imported(sql: &Sql<'_>, imported: &TurnsImported) -> rusqlite::Result<()> {
    imported.turns.iter().try_for_each(|it| turn(sql, imported.agent, imported.session, &it.turn, it.committed))
}

fn turn(sql: &Sql<'_>, agent: AgentId, session: SessionId, turn: &TurnNode, time: Timestamp) -> rusqlite::Result<()> {
    let (session, run) = (session.to_string(), turn.run.to_string());
    let messages: Vec<Message> =
        sql.rows("SELECT message FROM messages WHERE run = ?1 AND role IN ('user', 'assistant') ORDER BY id", [&run], |row| row.json(0))?;
    for message in messages {
        let text = message.text();
        if text.trim().is_empty() {
            continue;
        }
        sql.execute(
            "INSERT INTO recall (session, turn, run, message, untrusted, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![session, turn.id.0.0, run, int(message.id), message.untrusted, int(time.0)],
        )?;
        words(sql, agent, &text)?;
    }
    Ok(())
}

/// Indexes the words of the row that was just inserted.
fn words(sql: &Sql<'_>, agent: AgentId, text: &str) -> rusqlite::Result<()> {
    let row = sql.connection().last_insert_rowid();
    let end = text.floor_char_boundary(INDEXED_BYTES_MAX);
    let body = text.get(..end).unwrap_or_default();
    sql.execute("INSERT INTO recall_index (rowid, agent, body) VALUES (?1, ?2, ?3)", params![row, owner_word(agent), body])?;
    Ok(())
}

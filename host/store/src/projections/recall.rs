//! Searchable text of committed turns and of notes. Its words are indexed later, by
//! [`full_text`](crate::full_text).

use crate::sql::{Sql, int, to_json};
use domain::event::{NoteForgotten, NoteRemembered, Provenance, TurnCommitted, TurnsImported};
use domain::id::{AgentId, NoteId};
use rusqlite::params;
use serde::{Deserialize, Serialize};

/// Rows that one event may have: a row's number is that of its event with its place among them, so
/// that it does not depend on what became of others.
const ROWS_OF_EVENT: u64 = 1 << 20;
/// Bytes of one message or note that are indexed; what comes after them is not found.
const INDEXED_BYTES_MAX: usize = 64 << 10;

/// Returns an agent's id as the one word by which the index tells its texts from those of others.
pub(crate) fn owner_token(agent: AgentId) -> String {
    agent.0.simple().to_string()
}

/// The rows of an event: the first, and the one after the last. A client names any position.
pub(crate) fn rows_of(position: u64) -> (i64, i64) {
    (
        int(position.saturating_mul(ROWS_OF_EVENT)),
        int(position.saturating_add(1).saturating_mul(ROWS_OF_EVENT)),
    )
}

pub(super) fn remember(
    sql: &Sql<'_>,
    note: &NoteRemembered,
    position: u64,
) -> rusqlite::Result<()> {
    let (row, _) = rows_of(position);
    let id = note
        .id
        .unwrap_or_else(|| NoteId::of_position(note.agent, position));
    let details = Details {
        about: note.about.clone(),
        provenance: note.provenance.clone(),
    };
    // An operation keeps its note in the one commit that starts it, so no id comes twice.
    sql.write(
        "INSERT INTO recall (id, session, note, untrusted, time, agent, note_id, details, \
         user_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT user_id FROM sessions WHERE id = \
         ?2))",
        params![
            row,
            note.session.to_string(),
            note.note,
            note.untrusted,
            int(note.time.0),
            note.agent.to_string(),
            id.to_string(),
            to_json(&details)?,
        ],
    )
}

/// A note is found no more. The writer has taken its words out of the index before.
pub(super) fn forget(sql: &Sql<'_>, forgotten: &NoteForgotten) -> rusqlite::Result<()> {
    let (row, _) = rows_of(forgotten.position);
    sql.write(
        "DELETE FROM recall WHERE id = ?1 AND note_id = ?2 AND agent = ?3",
        params![row, forgotten.note.to_string(), forgotten.agent.to_string()],
    )
}

/// The details that a note's row keeps beside its text, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Details {
    /// See [`NoteRemembered::about`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    /// See [`NoteRemembered::provenance`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Provenance>,
}

/// The position of the event that kept the note of a row.
pub(crate) fn position_of(row: u64) -> u64 {
    row / ROWS_OF_EVENT
}

/// Makes the user's and the assistant's messages of a turn searchable, in the name of its session's
/// agent. Each has a row that is numbered by its place in the turn. No message is read: it says
/// itself whether it rests on content from outside.
pub(super) fn committed(
    sql: &Sql<'_>,
    committed: &TurnCommitted,
    position: u64,
) -> rusqlite::Result<()> {
    let turn = &committed.turn;
    let (row, _) = rows_of(position);
    sql.write(
        "INSERT INTO recall (id, session, turn, run, message, untrusted, time, agent) SELECT ?1 + \
         m.id - ?6, s.id, ?3, m.run, m.id, 0, ?5, s.agent FROM sessions s CROSS JOIN messages m ON \
         m.run = ?4 AND m.role IN ('user', 'assistant') WHERE s.id = ?2",
        params![
            row,
            committed.session.to_string(),
            turn.id.0.0,
            turn.run.to_string(),
            int(committed.time.0),
            int(turn.first_message),
        ],
    )
}

/// The same of turns that were made elsewhere. Their session is opened after them.
pub(super) fn imported(
    sql: &Sql<'_>,
    imported: &TurnsImported,
    position: u64,
) -> rusqlite::Result<()> {
    let (mut row, _) = rows_of(position);
    for it in &imported.turns {
        let turn = &it.turn;
        sql.execute(
            "INSERT INTO recall (id, session, turn, run, message, untrusted, time, agent) \
             SELECT ?1 + id - ?6, ?2, ?3, run, id, 0, ?5, ?7 FROM messages WHERE run = ?4 AND \
             role IN ('user', 'assistant')",
            params![
                row,
                imported.session.to_string(),
                turn.id.0.0,
                turn.run.to_string(),
                int(it.committed.0),
                int(turn.first_message),
                imported.agent.to_string(),
            ],
        )?;
        row += int((turn.last_message + 1).saturating_sub(turn.first_message));
    }
    Ok(())
}

/// Returns the part of a text that is indexed.
pub(crate) fn body(text: &str) -> &str {
    text.get(..text.floor_char_boundary(INDEXED_BYTES_MAX))
        .unwrap_or_default()
}

//! Searchable text of committed turns and of notes. Its words are indexed later, by
//! [`full_text`](crate::full_text).

use crate::sql::{self, Sql, int, named, to_json};
use domain::event::{NoteForgotten, NoteRemembered, Provenance, TurnCommitted, TurnsImported};
use domain::id::{AgentId, NoteId};
use serde::{Deserialize, Serialize};

/// Maximum number of rows of one event. A row's number combines its event's number and its place in
/// the event, so it does not depend on other rows.
pub(crate) const ROWS_OF_EVENT: i64 = 1 << 20;
/// Maximum bytes of one message or note that are indexed; searches do not find the rest.
const INDEXED_BYTES_MAX: usize = 64 << 10;

/// Returns an agent's id as one word, by which the index separates its texts from those of others.
pub(crate) fn owner_token(agent: AgentId) -> String {
    agent.0.simple().to_string()
}

/// The rows of an event: the first, and the one after the last. A client names any position.
pub(crate) fn rows_of(position: u64) -> (i64, i64) {
    (
        int(position).saturating_mul(ROWS_OF_EVENT),
        int(position)
            .saturating_add(1)
            .saturating_mul(ROWS_OF_EVENT),
    )
}

pub(super) fn remember(sql: &Sql<'_>, note: &NoteRemembered, position: u64) -> sql::Result<()> {
    let (row, _) = rows_of(position);
    let id = note
        .id
        .unwrap_or_else(|| NoteId::of_position(note.agent, position));
    let details = Details {
        about: note.about.clone(),
        provenance: note.provenance.clone(),
    };
    // An operation stores its note in the one commit that starts it, so no id occurs twice.
    sql.write(
        "INSERT INTO recall (id, session, note, untrusted, time, agent, note_id, details, user_id) \
         VALUES (:row, :id, :note, :untrusted, :time, :agent, :note_id, :details, (SELECT user_id \
         FROM sessions WHERE id = :id))",
        named![
            row,
            id = note.session,
            note = note.note,
            untrusted = note.untrusted,
            time = note.time,
            agent = note.agent,
            note_id = id,
            details = to_json(&details)?
        ],
    )
}

/// Records that a note is deleted. The writer has already removed its words from the index.
pub(super) fn forget(sql: &Sql<'_>, forgotten: &NoteForgotten) -> sql::Result<()> {
    let (row, _) = rows_of(forgotten.position);
    sql.write(
        "DELETE FROM recall WHERE id = :id AND note_id = :note_id AND agent = :agent",
        named![id = row, note_id = forgotten.note, agent = forgotten.agent],
    )
}

/// The details that a note's row has in addition to its text, as JSON.
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
    row / ROWS_OF_EVENT.unsigned_abs()
}

/// Makes the user's and the assistant's messages of a turn searchable, under its session's agent.
/// Each gets a row, numbered by its place in the turn. No message is read: the message itself
/// states whether it depends on content from outside.
pub(super) fn committed(
    sql: &Sql<'_>,
    committed: &TurnCommitted,
    position: u64,
) -> sql::Result<()> {
    let turn = &committed.turn;
    let (row, _) = rows_of(position);
    sql.write(
        "INSERT INTO recall (id, session, turn, run, message, untrusted, time, agent) SELECT :row \
         + m.id - :first_message, s.id, :turn, m.run, m.id, 0, :time, s.agent FROM sessions s \
         CROSS JOIN messages m ON m.run = :run AND m.role IN ('user', 'assistant') WHERE s.id = \
         :id",
        named![
            row,
            id = committed.session,
            turn = turn.id,
            run = turn.run,
            time = committed.time,
            first_message = turn.first_message
        ],
    )
}

/// The same of turns that were made elsewhere. Their session is opened after them.
pub(super) fn imported(sql: &Sql<'_>, imported: &TurnsImported, position: u64) -> sql::Result<()> {
    let (mut row, _) = rows_of(position);
    for it in &imported.turns {
        let turn = &it.turn;
        sql.execute(
            "INSERT INTO recall (id, session, turn, run, message, untrusted, time, agent) SELECT \
             :row + id - :first_message, :session, :id, run, id, 0, :committed, :agent FROM \
             messages WHERE run = :run AND role IN ('user', 'assistant')",
            named![
                row,
                session = imported.session,
                id = turn.id,
                run = turn.run,
                committed = it.committed,
                first_message = turn.first_message,
                agent = imported.agent
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

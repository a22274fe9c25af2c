//! Words that can be found: rows for full text go with the words that they were made of.

use crate::event_row::decode;
use crate::projections::{indexed_body, owner_word, recall_rows_of};
use crate::sql::{Columns, Sql, unreadable};
use domain::event::Event;
use domain::id::{AgentId, SessionId};
use domain::message::Message;
use rusqlite::{Row, params};

/// A row that can be found: its number, the session, and what it was made of.
type Found = (i64, SessionId, Option<String>, Option<Message>);

/// Nobody finds what an event brought any more. The words have to be there still: the index is told which ones it loses.
pub(super) fn forget(sql: &Sql<'_>, position: u64, agent: Option<AgentId>) -> rusqlite::Result<()> {
    let (first, end) = recall_rows_of(position);
    let rows: Vec<Found> = sql.rows(
        "SELECT r.id, r.session, r.note, m.message FROM recall r LEFT JOIN messages m ON m.run = r.run AND m.id = r.message \
         WHERE r.id >= ?1 AND r.id < ?2",
        params![first, end],
        |row| Ok((row.get(0)?, row.id(1)?, row.get(2)?, row.json_opt(3)?)),
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    // Without this the index would note that the words are gone, and keep them.
    sql.execute("INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1)", [])?;
    for (row, session, note, message) in rows {
        let agent = match agent {
            Some(agent) => Some(agent),
            None => sql.row("SELECT agent FROM sessions WHERE id = ?1", [session.to_string()], |row| row.id(0))?,
        };
        let text = note.or_else(|| message.map(|message| message.text()));
        if let Some((agent, text)) = agent.zip(text) {
            sql.execute(
                "INSERT INTO recall_index (recall_index, rowid, agent, body) VALUES ('delete', ?1, ?2, ?3)",
                params![row, owner_word(agent), indexed_body(&text)],
            )?;
        }
        sql.execute("DELETE FROM recall WHERE id = ?1", [row])?;
    }
    // An index that lost its last words is not quite as one that never had any.
    if !sql.exists("SELECT 1 FROM recall", [])? {
        sql.execute("INSERT INTO recall_index (recall_index) VALUES ('delete-all')", [])?;
    }
    Ok(())
}

/// The event whose kind and payload are the first two columns; none when it was erased.
pub(super) fn decoded(row: &Row<'_>) -> rusqlite::Result<Option<Event>> {
    decoded_at(row, 0)
}

/// The same from another column on.
pub(super) fn decoded_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Event>> {
    let kind: String = row.get(column)?;
    let payload = row.get_ref(column + 1)?.as_blob_or_null().map_err(|error| unreadable(column + 1, error))?;
    payload.map(|payload| decode(&kind, payload)).transpose().map_err(|error| unreadable(column + 1, error))
}

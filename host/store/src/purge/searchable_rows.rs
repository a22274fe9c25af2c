//! Searchable rows of purged events: they go with the texts that they were made of.

use super::room::Room;
use crate::full_text;
use crate::projections::{indexed_body, owner_token, recall_rows_of};
use crate::sql::{Sql, limit};
use rusqlite::params;

/// Removes searchable rows of an event while there is room, and returns whether that is all. Their
/// words have to exist still: the index needs to know which ones it loses, as far as it has them.
pub(super) fn forget(sql: &Sql<'_>, position: u64, room: &mut Room) -> rusqlite::Result<bool> {
    let (first, end) = recall_rows_of(position);
    let rows: Vec<i64> = sql.rows(
        "SELECT id FROM recall WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3",
        params![first, end, limit(room.rows.saturating_add(1))],
        |row| row.get(0),
    )?;
    if rows.is_empty() {
        return Ok(true);
    }
    // Without this an index would note that the words are gone, and keep them.
    sql.execute(
        "INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1)",
        [],
    )?;
    // A note is the only row of its event.
    let mut lost_note = false;
    for row in &rows {
        if room.is_full() {
            return Ok(false);
        }
        let mut bytes = 0;
        // To take away what the index does not have would spoil its totals.
        if full_text::has(sql, *row)?
            && let Some(words) = full_text::words_of(sql, *row)?
        {
            sql.execute(
                "INSERT INTO recall_index (recall_index, rowid, agent, body) VALUES ('delete', ?1, \
                 ?2, ?3)",
                params![row, owner_token(words.agent), indexed_body(&words.text)],
            )?;
            if words.is_note {
                lost_note = true;
                sql.execute(
                    "INSERT INTO notes_index (notes_index, rank) VALUES ('secure-delete', 1)",
                    [],
                )?;
                sql.execute(
                    "INSERT INTO notes_index (notes_index, rowid, agent, body) VALUES ('delete', \
                     ?1, ?2, ?3)",
                    params![row, owner_token(words.agent), indexed_body(&words.text)],
                )?;
            }
            bytes = words.text.len() as u64;
        }
        sql.execute("DELETE FROM recall WHERE id = ?1", [row])?;
        room.take(bytes);
    }
    // An index that lost its last words is not quite as one that never had any.
    if !sql.exists("SELECT 1 FROM recall", [])? {
        full_text::clear(sql)?;
    } else if lost_note {
        full_text::clear_empty_notes(sql)?;
    }
    Ok(true)
}

/// Returns whether an event has searchable rows.
pub(super) fn has_any(sql: &Sql<'_>, position: u64) -> rusqlite::Result<bool> {
    let (first, end) = recall_rows_of(position);
    sql.exists(
        "SELECT 1 FROM recall WHERE id >= ?1 AND id < ?2",
        params![first, end],
    )
}

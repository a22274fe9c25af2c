//! Searchable rows of purged events: they go with the texts that they were made of.

use super::room::Room;
use crate::full_text;
use crate::projections::recall_rows_of;
use crate::sql::{self, Sql, args, named};

/// Removes searchable rows of an event while there is room, and returns whether all are removed.
/// Their words must still exist: the index has to know which words it loses.
pub(super) fn forget(sql: &Sql<'_>, position: u64, room: &mut Room) -> sql::Result<bool> {
    let (first, end) = recall_rows_of(position);
    let rows: Vec<i64> = sql.all(
        "SELECT id FROM recall WHERE id >= :id AND id < :end ORDER BY id LIMIT :limit",
        named![id = first, end, limit = room.rows.saturating_add(1)],
    )?;
    if rows.is_empty() {
        return Ok(true);
    }
    full_text::begin_removal(sql)?;
    // A note is the only row of its event.
    let mut lost_note = false;
    for row in &rows {
        if room.is_full() {
            return Ok(false);
        }
        let mut bytes = 0;
        // Removing words that the index does not have would corrupt its totals.
        if full_text::has(sql, *row)?
            && let Some(words) = full_text::words_of(sql, *row)?
        {
            full_text::remove(sql, *row, &words)?;
            lost_note |= words.is_note;
            bytes = words.text.len() as u64;
        }
        sql.execute("DELETE FROM recall WHERE id = ?1", [row])?;
        room.take(bytes);
    }
    // An index that lost its last words differs from one that never had any.
    if !sql.exists("SELECT 1 FROM recall", [])? {
        full_text::clear(sql)?;
    } else if lost_note {
        full_text::clear_empty_notes(sql)?;
    }
    Ok(true)
}

/// Returns whether an event has searchable rows.
pub(super) fn has_any(sql: &Sql<'_>, position: u64) -> sql::Result<bool> {
    let (first, end) = recall_rows_of(position);
    sql.exists(
        "SELECT 1 FROM recall WHERE id >= ?1 AND id < ?2",
        args![first, end],
    )
}

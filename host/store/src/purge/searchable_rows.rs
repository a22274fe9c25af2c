//! Searchable rows of purged events: they go with the texts that they were made of.

use crate::full_text;
use crate::projections::{indexed_body, owner_token, recall_rows_of};
use crate::sql::Sql;
use rusqlite::params;

/// Removes the searchable rows of an event. Their words have to exist still: the index needs to
/// know which ones it loses, as far as it has them.
pub(super) fn forget(sql: &Sql<'_>, position: u64) -> rusqlite::Result<()> {
    let (first, end) = recall_rows_of(position);
    let rows: Vec<i64> = sql.rows(
        "SELECT id FROM recall WHERE id >= ?1 AND id < ?2",
        params![first, end],
        |row| row.get(0),
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    // Without this an index would note that the words are gone, and keep them.
    for secure in [
        "INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1)",
        "INSERT INTO notes_index (notes_index, rank) VALUES ('secure-delete', 1)",
    ] {
        sql.execute(secure, [])?;
    }
    let mut lost_note = false;
    for row in rows {
        // To take away what the index does not have would spoil its totals.
        if full_text::has(sql, row)?
            && let Some(words) = full_text::words_of(sql, row)?
        {
            sql.execute(
                "INSERT INTO recall_index (recall_index, rowid, agent, body) VALUES ('delete', ?1, \
                 ?2, ?3)",
                params![row, owner_token(words.agent), indexed_body(&words.text)],
            )?;
            if words.is_note {
                lost_note = true;
                sql.execute(
                    "INSERT INTO notes_index (notes_index, rowid, agent, body) VALUES ('delete', \
                     ?1, ?2, ?3)",
                    params![row, owner_token(words.agent), indexed_body(&words.text)],
                )?;
            }
        }
        sql.execute("DELETE FROM recall WHERE id = ?1", [row])?;
    }
    // An index that lost its last words is not quite as one that never had any.
    if !sql.exists("SELECT 1 FROM recall", [])? {
        full_text::clear(sql)?;
    } else if lost_note {
        full_text::clear_empty_notes(sql)?;
    }
    Ok(())
}

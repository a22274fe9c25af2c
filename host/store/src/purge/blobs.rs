//! Blobs: who names them after something was erased, and those that nobody names.

use super::Tally;
use super::words::decoded_at;
use crate::EMPTY_STATE;
use crate::projections::name_blobs;
use crate::sql::{Columns, Sql, int, limit};
use domain::digest::Digest;
use rusqlite::params;

/// Blobs that are deleted in one transaction.
const BLOBS_PER_COMMIT_MAX: usize = 256;
/// Events that are read at a time.
const EVENTS_READ: usize = 256;

/// Notes anew which blobs a stream names, with what is left of it.
pub(super) fn named_again(sql: &Sql<'_>, stream: &str) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM blob_references WHERE stream = ?1", [stream])?;
    let mut after = 0;
    loop {
        let text = "SELECT version, kind, payload FROM events WHERE stream = ?1 AND version > ?2 AND payload IS NOT NULL \
                    ORDER BY version LIMIT ?3";
        let events = sql.rows(text, params![stream, int(after), limit(EVENTS_READ)], |row| Ok((row.uint(0)?, decoded_at(row, 1)?)))?;
        let Some((last, _)) = events.last() else { return Ok(()) };
        after = *last;
        for event in events.iter().filter_map(|(_, event)| event.as_ref()) {
            name_blobs(sql, stream, event)?;
        }
    }
}

/// Deletes blobs that no event names; whether all are gone.
pub(super) fn erase_unnamed(sql: &Sql<'_>, tally: &mut Tally) -> rusqlite::Result<bool> {
    let unnamed = sql.rows(
        "SELECT digest, length(bytes) FROM blobs WHERE digest NOT IN (SELECT digest FROM blob_references) AND digest <> ?1 LIMIT ?2",
        params![Digest::of(EMPTY_STATE).0, limit(BLOBS_PER_COMMIT_MAX)],
        |row| Ok((row.digest(0)?, row.uint(1)?)),
    )?;
    for (digest, bytes) in &unnamed {
        sql.execute("DELETE FROM blobs WHERE digest = ?1", [digest.0])?;
        tally.erased.blobs += 1;
        tally.erased.blob_bytes += bytes;
    }
    Ok(unnamed.len() < BLOBS_PER_COMMIT_MAX)
}

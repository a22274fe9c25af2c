//! Folds events into projections: all at once within a transaction, or on from a position.

use crate::event_row::{self, event_columns};
use crate::projections::project;
use crate::schema::PROJECTIONS;
use crate::sql::{Sql, int, limit};
use rusqlite::params;

/// Events that are read at a time.
const CHUNK_EVENTS: usize = 256;

/// Drops every projection and folds all events again, within a transaction that is open; how many events there were.
pub(crate) fn fold(sql: &Sql<'_>) -> rusqlite::Result<u64> {
    for table in PROJECTIONS {
        sql.connection().execute(&format!("DELETE FROM {table}"), [])?;
    }
    sql.execute("INSERT INTO recall_index (recall_index) VALUES ('delete-all')", [])?;
    fold_into(sql, sql)
}

/// Folds all events of one database into the projections of a database that has none yet; how many events there were.
pub(crate) fn fold_into(events: &Sql<'_>, projections: &Sql<'_>) -> rusqlite::Result<u64> {
    fold_after(0, events, projections, &mut |_| ())
}

/// Folds the events after a position, up to the last that is seen; the position of that. Says how far it is after each chunk.
pub(crate) fn fold_after(
    mut position: u64,
    events: &Sql<'_>,
    projections: &Sql<'_>,
    progress: &mut dyn FnMut(u64),
) -> rusqlite::Result<u64> {
    loop {
        let events = events.rows(
            concat!("SELECT ", event_columns!(), " FROM events WHERE position > ?1 ORDER BY position LIMIT ?2"),
            params![int(position), limit(CHUNK_EVENTS)],
            event_row::read,
        )?;
        let Some(last) = events.last() else { return Ok(position) };
        position = last.position;
        for recorded in &events {
            project(projections, recorded)?;
        }
        progress(position);
    }
}

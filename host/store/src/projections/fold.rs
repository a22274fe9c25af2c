//! Folds events into projections: all at once within a transaction, or on from a position.

use crate::event_row::{EVENT_COLUMNS, EVENTS};
use crate::full_text;
use crate::projections::{PROJECTIONS, project};
use crate::sql::{self, Sql, args, text};
use domain::event::Recorded;

/// Events that are read at a time.
const CHUNK_EVENTS: usize = 256;

/// Drops every projection and folds all events again. Runs within an open transaction.
pub(crate) fn fold(sql: &Sql<'_>) -> sql::Result<()> {
    for table in PROJECTIONS {
        sql.connection()
            .execute(&format!("DELETE FROM {table}"), [])?;
    }
    full_text::clear(sql)?;
    fold_after(0, sql, sql, &mut |_| ())?;
    full_text::index_through(sql, i64::MAX)
}

/// Folds the events of one database after a position into the projections of another, and returns
/// the position of the last event that is seen. Reports the position after each chunk.
pub(crate) fn fold_after(
    mut position: u64,
    events: &Sql<'_>,
    projections: &Sql<'_>,
    progress: &mut dyn FnMut(u64),
) -> sql::Result<u64> {
    loop {
        let text = text!(
            "SELECT ",
            EVENT_COLUMNS,
            ", stream FROM ",
            EVENTS,
            " WHERE position > ?1 ORDER BY position LIMIT ?2"
        );
        let events: Vec<(Recorded, i64)> = events.all(text, args![position, CHUNK_EVENTS])?;
        let Some((last, _)) = events.last() else {
            return Ok(position);
        };
        position = last.position;
        for (recorded, stream) in &events {
            project(projections, recorded, *stream)?;
        }
        progress(position);
    }
}

//! The items of structured sessions: what was asked and answered, in order. What they say stands in
//! the events.

use crate::sql::{Sql, int};
use domain::id::SessionId;
use rusqlite::params;

pub(super) fn recorded(sql: &Sql<'_>, session: SessionId, position: u64) -> rusqlite::Result<()> {
    let session = session.to_string();
    sql.execute(
        "UPDATE sessions SET items = items + 1 WHERE id = ?1",
        [&session],
    )?;
    sql.write(
        "INSERT INTO items (session, sequence, position) SELECT id, items, ?2 FROM sessions WHERE \
         id = ?1",
        params![session, int(position)],
    )
}

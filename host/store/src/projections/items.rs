//! The items of structured sessions: questions and answers, in order. Their content is in the
//! events.

use crate::sql::{self, Sql, args};
use domain::id::SessionId;

pub(super) fn recorded(sql: &Sql<'_>, session: SessionId, position: u64) -> sql::Result<()> {
    sql.execute(
        "UPDATE sessions SET items = items + 1 WHERE id = ?1",
        [session],
    )?;
    sql.write(
        "INSERT INTO items (session, sequence, position) SELECT id, items, ?2 FROM sessions WHERE \
         id = ?1",
        args![session, position],
    )
}

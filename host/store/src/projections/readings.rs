//! The places up to which memory agents have read sessions.

use crate::sql::{self, Sql, insert, upsert};
use domain::event::MemoryRead;

/// A part of a session was handed to its memory agent.
pub(super) fn read(sql: &Sql<'_>, read: &MemoryRead) -> sql::Result<()> {
    upsert!(
        sql,
        readings {
            session: read.session
        },
        set {
            reader: read.reader,
            agent: read.agent,
            through: read.through,
            through_message: read.through_message
        }
    )?;
    insert!(
        sql,
        reading_chunks {
            input: read.input,
            session: read.session,
            through: read.through
        }
    )
}

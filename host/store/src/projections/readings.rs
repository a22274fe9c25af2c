//! The places up to which memory agents have read sessions.

use crate::sql::{Sql, int};
use domain::event::MemoryRead;
use rusqlite::params;

/// A piece of a session was handed to its memory agent.
pub(super) fn read(sql: &Sql<'_>, read: &MemoryRead) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO readings (session, reader, agent, through, through_message) VALUES (?1, ?2, \
         ?3, ?4, ?5) ON CONFLICT (session) DO UPDATE SET reader = excluded.reader, agent = \
         excluded.agent, through = excluded.through, through_message = excluded.through_message",
        params![
            read.session.to_string(),
            read.reader.to_string(),
            read.agent.to_string(),
            read.through.0.0,
            int(read.through_message),
        ],
    )?;
    sql.write(
        "INSERT INTO reading_pieces (input, session, through) VALUES (?1, ?2, ?3)",
        params![
            read.input.to_string(),
            read.session.to_string(),
            read.through.0.0,
        ],
    )
}

//! Messages by run and place in the thread; a turn's messages are its run's.

use crate::sql::{Sql, int, to_json};
use domain::id::RunId;
use domain::message::{Message, Role};
use rusqlite::params;

pub(super) fn entered(sql: &Sql<'_>, run: RunId, message: &Message) -> rusqlite::Result<()> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Notice => "notice",
    };
    sql.write(
        "INSERT INTO messages (run, id, role, message) VALUES (?1, ?2, ?3, ?4)",
        params![run.to_string(), int(message.id), role, to_json(message)?],
    )
}

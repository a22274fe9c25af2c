//! Messages by run and place in the thread; a turn's messages are its run's.

use crate::sql::{self, Sql, insert};
use crate::texts;
use domain::id::RunId;
use domain::message::{Message, Role};

pub(super) fn entered(sql: &Sql<'_>, run: RunId, message: &Message) -> sql::Result<()> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Notice => "notice",
    };
    let (packed, bytes) = texts::packed(message)?;
    texts::keep_of_message(sql, (run, message.id), &packed.apart)?;
    insert!(
        sql,
        messages {
            run,
            id: message.id,
            role,
            origin: message.origin,
            message: packed.packed,
            bytes
        }
    )
}

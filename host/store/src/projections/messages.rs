//! Messages by run and place in the thread; a turn's messages are its run's.

use crate::sql::{self, Sql, insert, to_json};
use domain::id::RunId;
use domain::message::{Message, Role};

pub(super) fn entered(sql: &Sql<'_>, run: RunId, message: &Message) -> sql::Result<()> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Notice => "notice",
    };
    insert!(
        sql,
        messages {
            run,
            id: message.id,
            role,
            message: to_json(message)?
        }
    )
}

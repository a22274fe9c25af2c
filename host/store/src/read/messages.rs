//! Messages along a thread.

use super::ReadError;
use super::turns::{holder, span};
use crate::sql::{Columns, Sql, int};
use crate::store::Store;
use domain::id::TurnId;
use domain::message::{Message, MessageId};
use rusqlite::params;

impl Store {
    /// One message of the thread that ends in `head`.
    pub async fn message(&self, head: Option<TurnId>, id: MessageId) -> Result<Option<Message>, ReadError> {
        Ok(self.messages(head, id, id).await?.pop())
    }

    /// The messages `from` to `to`, both included, of the thread that ends in `head`: those of them that there are, in order.
    pub async fn messages(&self, head: Option<TurnId>, from: MessageId, to: MessageId) -> Result<Vec<Message>, ReadError> {
        self.read(move |sql| match head {
            Some(head) => along(sql, head, from.max(1), to),
            None => Ok(Vec::new()),
        })
        .await
    }
}

fn along(sql: &Sql<'_>, head: TurnId, from: MessageId, to: MessageId) -> rusqlite::Result<Vec<Message>> {
    let Some(end) = span(sql, head)? else { return Ok(Vec::new()) };
    let to = to.min(end.last);
    let mut turns = Vec::new();
    let mut at = if from <= to { holder(sql, head, to)? } else { None };
    while let Some(here) = at {
        turns.push(here);
        at = match here.parent {
            Some(parent) if here.first > from => span(sql, parent)?,
            Some(_) | None => None,
        };
    }
    let mut messages = Vec::new();
    for turn in turns.iter().rev() {
        messages.extend(sql.rows(
            "SELECT message FROM messages WHERE run = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id",
            params![turn.run.to_string(), int(from), int(to)],
            |row| row.json::<Message>(0),
        )?);
    }
    Ok(messages)
}

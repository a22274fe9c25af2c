//! Messages along a thread.

use super::ReadError;
use super::turns::{holder, span};
use crate::sql::{self, Sql, named};
use crate::store::Store;
use crate::texts::Packed;
use domain::id::TurnId;
use domain::message::{Message, MessageId};

/// Messages that are read on the caller's own thread; more of them are read by a thread that reads.
const GLANCE_MESSAGES_MAX: u64 = 64;

impl Store {
    /// One message of the thread that ends in `head`.
    pub async fn message(
        &self,
        head: Option<TurnId>,
        id: MessageId,
    ) -> Result<Option<Message>, ReadError> {
        Ok(self.messages(head, id, id).await?.pop())
    }

    /// The messages `from` to `to`, both included, of the thread that ends in `head`: those of them
    /// that there are, in order.
    pub async fn messages(
        &self,
        head: Option<TurnId>,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<Message>, ReadError> {
        let Some(head) = head else {
            return Ok(Vec::new());
        };
        // A thread only grows at its end, so a short chunk of it can be read in several point
        // reads.
        if to.saturating_sub(from) < GLANCE_MESSAGES_MAX {
            self.point_read(move |sql| along(sql, head, from.max(1), to))
                .await
        } else {
            self.read(move |sql| along(sql, head, from.max(1), to))
                .await
        }
    }
}

fn along(sql: &Sql<'_>, head: TurnId, from: MessageId, to: MessageId) -> sql::Result<Vec<Message>> {
    let Some(end) = span(sql, head)? else {
        return Ok(Vec::new());
    };
    let to = to.min(end.last);
    let mut turns = Vec::new();
    let mut at = if from <= to {
        holder(sql, head, to)?
    } else {
        None
    };
    while let Some(here) = at {
        turns.push(here);
        at = match here.parent {
            Some(parent) if here.first > from => span(sql, parent)?,
            Some(_) | None => None,
        };
    }
    let mut messages = Vec::new();
    for turn in turns.iter().rev() {
        let found = sql.all::<Packed<Message>>(
            "SELECT message FROM messages WHERE run = :run AND id BETWEEN :from AND :to ORDER BY \
             id",
            named![run = turn.run, from, to],
        )?;
        messages.extend(found.into_iter().map(|message| message.0));
    }
    Ok(messages)
}

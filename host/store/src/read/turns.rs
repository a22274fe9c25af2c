//! The tree of turns: nodes, and walking from a head to any ancestor in a logarithmic number of
//! steps.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, Json, Sql, row, select, text, unreadable};
use crate::store::Store;
use domain::digest::Digest;
use domain::id::{RunId, TurnId};
use domain::message::MessageId;
use domain::turn::{TurnNode, TurnPlace, jumps_over};

row! {
    /// Columns of a turn that a walk through the tree needs.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Span from "turns" {
        pub(super) id: TurnId,
        pub(super) parent: Option<TurnId>,
        pub(super) run: RunId,
        pub(super) first: MessageId = "first_message",
        pub(super) last: MessageId = "last_message",
        jump: Option<TurnId>,
        /// The last message of its jump.
        jump_message: Option<MessageId>,
    }
}

/// The columns of a [`TurnNode`], for a `SELECT` on `turns`.
pub(crate) const NODE_COLUMNS: &str = "id, parent, jump, depth, run, first_message, last_message, \
                                       messages, session_state, outcome, used, models";

impl FromRow for TurnNode {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            id: cells.next("id")?,
            parent: cells.next("parent")?,
            jump: cells.next("jump")?,
            depth: cells.next("depth")?,
            run: cells.next("run")?,
            first_message: cells.next("first_message")?,
            last_message: cells.next("last_message")?,
            messages: {
                let bytes = cells.next_bytes("messages")?.unwrap_or_default();
                let (digests, rest) = bytes.as_chunks::<32>();
                if !rest.is_empty() {
                    return Err(unreadable("messages", "a digest is cut off"));
                }
                digests.iter().map(|digest| Digest(*digest)).collect()
            },
            session_state: cells.next("session_state")?,
            end: cells.next("outcome")?,
            usage: cells.next::<Json<_>>("used")?.0,
            models: cells.next::<Json<_>>("models")?.0,
        })
    }
}

impl Store {
    /// A turn.
    pub async fn turn(&self, id: TurnId) -> Result<Option<TurnNode>, ReadError> {
        self.point_read(move |sql| node(sql, id)).await
    }

    /// The turn that holds a message of the thread that ends in `head`; none when the thread has no
    /// such message.
    pub async fn turn_at(
        &self,
        head: TurnId,
        message: MessageId,
    ) -> Result<Option<TurnNode>, ReadError> {
        self.read(move |sql| match holder(sql, head, message)? {
            Some(span) => node(sql, span.id),
            None => Ok(None),
        })
        .await
    }

    /// Returns whether a turn's thread depends on content from outside. False for a turn that does
    /// not exist.
    pub async fn is_untrusted(&self, id: TurnId) -> Result<bool, ReadError> {
        let found = self
            .point_read(move |sql| sql.one("SELECT untrusted FROM turns WHERE id = ?1", [id]))
            .await?;
        Ok(found.unwrap_or(false))
    }

    /// Returns the depth, the jump pointer and the parent's last message for the next turn after
    /// `parent`. Fails when there is no such parent.
    pub async fn jump_for(
        &self,
        parent: TurnId,
    ) -> Result<(u64, Option<TurnId>, MessageId), ReadError> {
        let found = self.point_read(move |sql| jump_after(sql, parent)).await?;
        found.ok_or_else(|| ReadError::Missing {
            what: format!("turn {parent}"),
        })
    }
}

pub(super) fn node(sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<TurnNode>> {
    sql.one(
        text!("SELECT ", NODE_COLUMNS, " FROM turns WHERE id = ?1"),
        [id],
    )
}

/// Reads the turn before a turn.
pub(crate) fn parent(sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<TurnId>> {
    let parent = sql.one::<Option<_>>("SELECT parent FROM turns WHERE id = ?1", [id])?;
    Ok(parent.flatten())
}

/// Reads the first turn of the tree that a turn belongs to; none when the turn is not there.
pub(crate) fn root(sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<TurnId>> {
    let root = sql.one::<Option<_>>("SELECT root FROM turns WHERE id = ?1", [id])?;
    Ok(root.flatten())
}

pub(super) fn span(sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<Span>> {
    sql.one(select!(Span, "WHERE id = ?1"), [id])
}

/// The turn that holds a message.
pub(super) fn holder(sql: &Sql<'_>, head: TurnId, message: MessageId) -> sql::Result<Option<Span>> {
    let mut at = span(sql, head)?;
    while let Some(here) = at {
        if message > here.last {
            return Ok(None);
        }
        if message >= here.first {
            return Ok(Some(here));
        }
        let up = match here.jump.zip(here.jump_message) {
            Some((jump, last)) if last >= message => Some(jump),
            Some(_) | None => here.parent,
        };
        at = match up {
            Some(up) => span(sql, up)?,
            None => None,
        };
    }
    Ok(None)
}

fn jump_after(
    sql: &Sql<'_>,
    parent: TurnId,
) -> sql::Result<Option<(u64, Option<TurnId>, MessageId)>> {
    const PLACE: &str = "SELECT t.depth, coalesce(j.depth, 0), t.jump, t.last_message FROM turns t \
                         LEFT JOIN turns j ON j.id = t.jump WHERE t.id = ?1";
    let place = |id: TurnId| {
        let found: Option<(u64, u64, Option<TurnId>, MessageId)> = sql.one(PLACE, [id])?;
        Ok::<_, sql::Error>(found.map(|(depth, jump_depth, jump, last_message)| {
            (TurnPlace { depth, jump_depth }, jump, last_message)
        }))
    };
    let Some((here, jump, last_message)) = place(parent)? else {
        return Ok(None);
    };
    let over = match jump {
        Some(jump) => place(jump)?
            .filter(|(of_jump, _, _)| jumps_over(here, *of_jump))
            .map(|(_, further, _)| further),
        None => None,
    };
    Ok(Some((
        here.depth + 1,
        over.unwrap_or(Some(parent)),
        last_message,
    )))
}

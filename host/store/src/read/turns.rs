//! The tree of turns: nodes, and walking from a head to any ancestor in a logarithmic number of
//! steps.

use super::ReadError;
use crate::sql::{Columns, Sql};
use crate::store::Store;
use domain::id::{RunId, TurnId};
use domain::message::MessageId;
use domain::turn::{TurnNode, TurnPlace, jumps_over};

/// Columns of a turn that a walk through the tree needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) id: TurnId,
    pub(super) parent: Option<TurnId>,
    pub(super) run: RunId,
    pub(super) first: MessageId,
    pub(super) last: MessageId,
    /// Its jump and that turn's last message.
    jump: Option<(TurnId, MessageId)>,
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

    /// Returns whether anything that a turn's thread shows rests on content from outside. False for
    /// a turn that does not exist.
    pub async fn is_untrusted(&self, id: TurnId) -> Result<bool, ReadError> {
        let found = self
            .point_read(move |sql| {
                sql.row(
                    "SELECT untrusted FROM turns WHERE id = ?1",
                    [id.0.0],
                    |row| row.get(0),
                )
            })
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

pub(super) fn node(sql: &Sql<'_>, id: TurnId) -> rusqlite::Result<Option<TurnNode>> {
    sql.row("SELECT node FROM turns WHERE id = ?1", [id.0.0], |row| {
        row.json(0)
    })
}

/// Reads the turn before a turn.
pub(crate) fn parent(sql: &Sql<'_>, id: TurnId) -> rusqlite::Result<Option<TurnId>> {
    let parent = sql.row("SELECT parent FROM turns WHERE id = ?1", [id.0.0], |row| {
        row.digest_opt(0)
    })?;
    Ok(parent.flatten().map(TurnId))
}

/// Reads the first turn of the tree that a turn belongs to; none when the turn is not there.
pub(crate) fn root(sql: &Sql<'_>, id: TurnId) -> rusqlite::Result<Option<TurnId>> {
    let root = sql.row("SELECT root FROM turns WHERE id = ?1", [id.0.0], |row| {
        row.digest_opt(0)
    })?;
    Ok(root.flatten().map(TurnId))
}

pub(super) fn span(sql: &Sql<'_>, id: TurnId) -> rusqlite::Result<Option<Span>> {
    sql.row(
        "SELECT parent, run, first_message, last_message, jump, jump_message FROM turns WHERE id = \
         ?1",
        [id.0.0],
        |row| {
            Ok(Span {
                id,
                parent: row.digest_opt(0)?.map(TurnId),
                run: row.id(1)?,
                first: row.uint(2)?,
                last: row.uint(3)?,
                jump: row.digest_opt(4)?.map(TurnId).zip(row.uint_opt(5)?),
            })
        },
    )
}

/// The turn that holds a message.
pub(super) fn holder(
    sql: &Sql<'_>,
    head: TurnId,
    message: MessageId,
) -> rusqlite::Result<Option<Span>> {
    let mut at = span(sql, head)?;
    while let Some(here) = at {
        if message > here.last {
            return Ok(None);
        }
        if message >= here.first {
            return Ok(Some(here));
        }
        let up = match here.jump {
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
) -> rusqlite::Result<Option<(u64, Option<TurnId>, MessageId)>> {
    const PLACE: &str = "SELECT t.depth, t.jump, coalesce(j.depth, 0), t.last_message FROM turns t \
                         LEFT JOIN turns j ON j.id = t.jump WHERE t.id = ?1";
    let place = |id: TurnId| {
        sql.row(PLACE, [id.0.0], |row| {
            Ok((
                TurnPlace {
                    depth: row.uint(0)?,
                    jump_depth: row.uint(2)?,
                },
                row.digest_opt(1)?.map(TurnId),
                row.uint(3)?,
            ))
        })
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

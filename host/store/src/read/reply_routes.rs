//! The chats into which replies go.

use super::ReadError;
use crate::sql::Columns;
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::id::{AgentId, RunId, SessionId};
use domain::user::UserId;
use rusqlite::{Row, params};

impl Store {
    /// Returns the chat that the latest of the inputs came from which an open run has taken in.
    pub async fn reply_route_of_run(&self, run: RunId) -> Result<Option<ReplyRoute>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                "SELECT connector, chat FROM inputs WHERE run = ?1 AND state = 'claimed' AND \
                 connector IS NOT NULL ORDER BY position DESC LIMIT 1",
                [run.to_string()],
                read_route,
            )
        })
        .await
    }

    /// Returns the chat in which a user last wrote to an agent.
    pub async fn last_reply_route(
        &self,
        user: &UserId,
        agent: AgentId,
    ) -> Result<Option<ReplyRoute>, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            sql.row(
                "SELECT connector, chat FROM inputs WHERE position = (SELECT max((SELECT \
                 i.position FROM inputs i WHERE i.session = s.id AND i.connector IS NOT NULL ORDER \
                 BY i.position DESC LIMIT 1)) FROM sessions s WHERE s.agent = ?1 AND s.user_id = \
                 ?2 AND s.status <> 'deleted')",
                params![agent.to_string(), user.as_str()],
                read_route,
            )
        })
        .await
    }

    /// Returns the chat that the latest input from outside of a session came from.
    pub async fn reply_route(&self, session: SessionId) -> Result<Option<ReplyRoute>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                "SELECT connector, chat FROM inputs WHERE session = ?1 AND connector IS NOT NULL \
                 ORDER BY position DESC LIMIT 1",
                [session.to_string()],
                read_route,
            )
        })
        .await
    }
}

fn read_route(row: &Row<'_>) -> rusqlite::Result<ReplyRoute> {
    Ok(ReplyRoute {
        connector: row.id(0)?,
        chat: row.get(1)?,
    })
}

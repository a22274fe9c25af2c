//! The chats into which replies go.

use super::ReadError;
use crate::sql::{self, Args, Sql, args};
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::id::{AgentId, RunId, SessionId};
use domain::user::UserId;

impl Store {
    /// Returns the chat of the latest input that an open run has claimed.
    pub async fn reply_route_of_run(&self, run: RunId) -> Result<Option<ReplyRoute>, ReadError> {
        self.point_read(move |sql| {
            route(
                sql,
                "SELECT connector, chat FROM inputs WHERE run = ?1 AND state = 'claimed' AND \
                 connector IS NOT NULL ORDER BY position DESC LIMIT 1",
                [run],
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
            route(
                sql,
                "SELECT connector, chat FROM inputs WHERE position = (SELECT max((SELECT \
                 i.position FROM inputs i WHERE i.session = s.id AND i.connector IS NOT NULL ORDER \
                 BY i.position DESC LIMIT 1)) FROM sessions s WHERE s.agent = ?1 AND s.user_id = \
                 ?2 AND s.status <> 'deleted')",
                args![agent, user],
            )
        })
        .await
    }

    /// Returns the chat of a session's latest input from outside.
    pub async fn reply_route(&self, session: SessionId) -> Result<Option<ReplyRoute>, ReadError> {
        self.point_read(move |sql| {
            route(
                sql,
                "SELECT connector, chat FROM inputs WHERE session = ?1 AND connector IS NOT NULL \
                 ORDER BY position DESC LIMIT 1",
                [session],
            )
        })
        .await
    }
}

fn route(sql: &Sql<'_>, text: &'static str, args: impl Args) -> sql::Result<Option<ReplyRoute>> {
    let found = sql.one(text, args)?;
    Ok(found.map(|(connector, chat)| ReplyRoute { connector, chat }))
}

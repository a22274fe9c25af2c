//! Questions to people outside that may have no answer yet.

use super::ReadError;
use super::outbound_messages::{OutboundMessageRow, StoredOutboundMessage};
use crate::sql::{self, Args, Sql, args, named, row, select};
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::id::{AgentId, OperationId, RunId, SessionId};
use domain::user::UserId;

/// Number of the latest questions of a chat that are searched for an unanswered one.
const QUESTIONS_INSPECTED_MAX: usize = 100;

/// A question to people outside whose run is open. It may already be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its outbound message.
    pub outbound_message: OutboundMessageRow,
    /// The question.
    pub operation: OperationId,
    /// The run that asks.
    pub run: RunId,
    /// The session of that run.
    pub session: SessionId,
    /// The agent of that run.
    pub agent: AgentId,
    /// The user for whom that run works.
    pub user: UserId,
}

row! {
    /// A question is open as long as its run is; whether it has an answer, the session's open
    /// questions say: an approval and a later question of a call have no operation of their own.
    struct StoredQuestion
        from
            "outbound_messages d CROSS JOIN events e ON e.position = d.position CROSS JOIN runs r ON r.id \
             = d.run"
    {
        outbound_message: StoredOutboundMessage as row,
        operation: OperationId = "d.operation",
        run: RunId = "r.id",
        session: SessionId = "r.session",
        agent: AgentId = "r.agent",
        user: UserId = "coalesce(r.user_id, 'local')",
    }
}

impl StoredQuestion {
    /// Returns the question with its outbound message; none when that is about to be erased.
    fn read(self) -> sql::Result<Option<OpenQuestion>> {
        let outbound_message = self.outbound_message.read()?;
        Ok(outbound_message.map(|outbound_message| OpenQuestion {
            outbound_message,
            operation: self.operation,
            run: self.run,
            session: self.session,
            agent: self.agent,
            user: self.user,
        }))
    }
}

impl Store {
    /// Returns the questions of open runs that were sent into a chat or are queued for it, the
    /// latest first, at most `limit`. It searches the latest hundred questions.
    pub async fn open_questions_in(
        &self,
        chat: &ReplyRoute,
        limit: usize,
    ) -> Result<Vec<OpenQuestion>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            let text = select!(
                StoredQuestion,
                "WHERE d.position IN (SELECT position FROM outbound_messages WHERE connector = :connector \
                 AND chat = :chat AND operation IS NOT NULL ORDER BY position DESC LIMIT \
                 :inspected) AND d.state <> 'dead' AND r.ended_at IS NULL ORDER BY d.position DESC \
                 LIMIT :limit"
            );
            let params = named![connector, chat, inspected = QUESTIONS_INSPECTED_MAX, limit];
            sql.all_there(text, params, StoredQuestion::read)
        })
        .await
    }

    /// Returns the question with this id that was sent into a chat, if its run is open.
    pub async fn open_question(
        &self,
        operation: OperationId,
    ) -> Result<Option<OpenQuestion>, ReadError> {
        self.read(move |sql| {
            let text = select!(
                StoredQuestion,
                "WHERE d.operation = ?1 AND r.ended_at IS NULL ORDER BY d.position DESC LIMIT 1"
            );
            sql.one_there(text, [operation], StoredQuestion::read)
        })
        .await
    }
}

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

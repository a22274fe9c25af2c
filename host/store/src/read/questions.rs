//! Questions to people outside that may have no answer yet.

use super::ReadError;
use super::deliveries::{DeliveryRow, read};
use crate::sql::{Columns, limit as rows};
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::id::{AgentId, OperationId, RunId, SessionId};
use domain::user::UserId;
use rusqlite::{Row, params};

/// The latest questions of a chat among which one is looked for that has no answer.
const QUESTIONS_LOOKED_AT_MAX: usize = 100;

/// A question to people outside whose run is open. It may have an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its delivery.
    pub delivery: DeliveryRow,
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

/// A question is open as long as its run is; whether it has an answer, the session's open questions
/// say: an approval and a later question of a call have no operation of their own.
macro_rules! select_question {
    ($rest:literal) => {
        concat!(
            "SELECT e.kind, e.payload, d.state, d.attempts, d.piece, d.next_try, d.service_ids, \
             d.reason, d.updated_at, d.position, d.operation, r.id, r.session, r.agent, \
             coalesce(r.user_id, 'local') FROM deliveries d CROSS JOIN events e ON e.position = \
             d.position CROSS JOIN runs r ON r.id = d.run ",
            $rest
        )
    };
}

impl Store {
    /// Returns the questions that were sent into a chat, or are about to be, and whose runs are
    /// open, the latest first, at most `limit`. It looks among the latest hundred questions.
    pub async fn open_questions_in(
        &self,
        chat: &ReplyRoute,
        limit: usize,
    ) -> Result<Vec<OpenQuestion>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            let found = sql.rows(
                select_question!(
                    "WHERE d.position IN (SELECT position FROM deliveries WHERE connector = ?1 AND \
                     chat = ?2 AND operation IS NOT NULL ORDER BY position DESC LIMIT ?3) AND \
                     d.state <> 'dead' AND r.ended_at IS NULL ORDER BY d.position DESC LIMIT \
                     ?4"
                ),
                params![
                    connector.as_str(),
                    chat,
                    rows(QUESTIONS_LOOKED_AT_MAX),
                    rows(limit)
                ],
                read_question,
            )?;
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns the question with this id that was sent into a chat, if its run is open.
    pub async fn open_question(
        &self,
        operation: OperationId,
    ) -> Result<Option<OpenQuestion>, ReadError> {
        self.read(move |sql| {
            let found = sql.row(
                select_question!(
                    "WHERE d.operation = ?1 AND r.ended_at IS NULL ORDER BY d.position DESC LIMIT 1"
                ),
                [operation.0.0],
                read_question,
            )?;
            Ok(found.flatten())
        })
        .await
    }
}

/// Reads a question with its delivery; none when that is about to be erased.
fn read_question(row: &Row<'_>) -> rusqlite::Result<Option<OpenQuestion>> {
    let Some(delivery) = read(row)? else {
        return Ok(None);
    };
    Ok(Some(OpenQuestion {
        operation: OperationId(row.digest(10)?),
        run: row.id(11)?,
        session: row.id(12)?,
        agent: row.id(13)?,
        user: row.id(14)?,
        delivery,
    }))
}

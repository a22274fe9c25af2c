//! Full-text search over messages in sessions that a user may see.

use super::recall::any_of;
use super::{Clearance, ReadError};
use crate::full_text::is_behind;
use crate::projections::owner_token;
use crate::sql::{Columns, limit as rows};
use crate::store::Store;
use crate::writer::Request;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::{Message, MessageId};
use domain::time::Timestamp;
use rusqlite::params;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum time that a search waits for the index, in milliseconds. After that it finds what is
/// indexed.
const WAIT_MS: u64 = 2_000;

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The message.
    pub message: Message,
    /// Its place in its thread.
    pub place: MessageId,
    /// The turn that it is of.
    pub turn: TurnId,
    /// The session in which it was said.
    pub session: SessionId,
    /// Name of that session.
    pub session_name: Option<String>,
    /// Its agent.
    pub agent: AgentId,
    /// Time of the message.
    pub time: Timestamp,
}

impl Store {
    /// Returns messages with any of the query's words, in sessions that a user may see. Deleted
    /// sessions are left out; without an agent, all agents count. The best come first, of equally
    /// good ones the latest, at most `limit`. A query has no operators, only words.
    pub async fn search(
        &self,
        clearance: &Clearance,
        agent: Option<AgentId>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Found>, ReadError> {
        let Some(words) = any_of(query) else {
            return Ok(Vec::new());
        };
        let expression = match agent {
            Some(agent) => format!("agent : \"{}\" AND {words}", owner_token(agent)),
            None => words,
        };
        let clearance = clearance.clone();
        self.index_all().await;
        self.read(move |sql| {
            sql.rows(
                "SELECT m.message, r.message, r.turn, r.session, s.name, s.agent, r.time FROM \
                 recall_index JOIN recall r ON r.id = recall_index.rowid JOIN sessions s ON s.id = \
                 r.session JOIN access a ON a.agent = s.agent AND a.user_id = ?2 JOIN messages m \
                 ON m.run = r.run AND m.id = r.message WHERE recall_index MATCH ?1 AND r.note IS \
                 NULL AND s.status != 'deleted' AND (a.role != 'mentee' OR s.user_id = ?2) AND \
                 s.agent NOT IN (SELECT value FROM json_each(?4)) ORDER BY round(bm25(recall_index, 0.0, 1.0), 1), r.time DESC, r.id DESC LIMIT ?3",
                params![expression, clearance.user(), rows(limit), clearance.hidden()],
                |row| {
                    Ok(Found {
                        message: row.json(0)?,
                        place: row.uint(1)?,
                        turn: TurnId(row.digest(2)?),
                        session: row.id(3)?,
                        session_name: row.get(4)?,
                        agent: row.id(5)?,
                        time: Timestamp(row.uint(6)?),
                    })
                },
            )
        })
        .await
    }
}

impl Store {
    /// Has the index brought to the last row. A search that comes while that is not possible finds
    /// what is indexed.
    pub(crate) async fn index_all(&self) {
        match timeout(Duration::from_millis(WAIT_MS), self.index_pieces()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error, "a search finds what is indexed so far"),
            Err(_) => tracing::debug!("a search does not wait for the index any longer"),
        }
    }

    async fn index_pieces(&self) -> Result<(), String> {
        while self
            .point_read(is_behind)
            .await
            .map_err(|error| error.to_string())?
        {
            let (reply, answer) = oneshot::channel();
            self.ask_writer(Request::Index(reply))
                .map_err(|error| error.to_string())?;
            answer
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

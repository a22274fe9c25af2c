//! Full-text search over messages in sessions that a user may see.

use super::recall::any_of;
use super::{Clearance, ReadError};
use crate::full_text::{self, is_behind};
use crate::projections::owner_token;
use crate::sql::{named, row, text};
use crate::sqlite::ids;
use crate::store::Store;
use crate::writer::Request;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::{Message, MessageId};
use domain::time::Timestamp;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum time that a search waits for the index, in milliseconds. After that it returns hits from
/// the indexed rows.
const WAIT_MS: u64 = 2_000;

row! {
    /// A message that was found.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Found {
        /// The message.
        pub message: Message as packed = "m.message",
        /// Its place in its thread.
        pub place: MessageId = "r.message",
        /// The turn that it belongs to.
        pub turn: TurnId = "r.turn",
        /// The session of the message.
        pub session: SessionId = "r.session",
        /// Name of that session.
        pub session_name: Option<String> = "s.name",
        /// Its agent.
        pub agent: AgentId = "s.agent",
        /// Time of the message.
        pub time: Timestamp = "r.time",
    }
}

impl Store {
    /// Returns messages with any of the query's words, in sessions that a user may see. Deleted
    /// sessions are left out; without an agent, the search covers all agents. The best come first,
    /// of equally good ones the latest, at most `limit`. A query consists of words, without
    /// operators.
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
            let text = text!(
                "SELECT ",
                Found::COLUMNS,
                " FROM ",
                full_text::ALL.found,
                " JOIN sessions s ON s.id = r.session JOIN access a ON a.agent = s.agent AND \
                 a.user_id = :user_id JOIN messages m ON m.run = r.run AND m.id = r.message WHERE ",
                full_text::ALL.matches,
                " AND r.note IS NULL AND s.status != 'deleted' AND (a.role != 'mentee' OR \
                 s.user_id = :user_id) AND s.agent NOT IN ",
                ids!("hidden"),
                " \
                 ORDER BY round(",
                full_text::ALL.rank,
                ", 1), r.time DESC, r.id DESC LIMIT :limit"
            );
            let params = named![
                words = expression,
                user_id = clearance.user(),
                limit,
                hidden = clearance.hidden()
            ];
            sql.all(text, params)
        })
        .await
    }
}

impl Store {
    /// Has the index brought up to the last row. A search during which that is impossible returns
    /// hits from the indexed rows.
    pub(crate) async fn index_all(&self) {
        match timeout(Duration::from_millis(WAIT_MS), self.index_chunks()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error, "a search finds what is indexed so far"),
            Err(_) => tracing::debug!("a search does not wait for the index any longer"),
        }
    }

    async fn index_chunks(&self) -> Result<(), String> {
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

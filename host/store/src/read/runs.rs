//! Runs, open and ended.

use super::ReadError;
use crate::sql::{self, Sql, args, row, select, text};
use crate::store::Store;
use crate::streams;
use crate::texts::Packed;
use domain::id::{AgentId, OperationId, RunId, SessionId, Stream, TurnId};
use domain::message::Message;
use domain::time::Timestamp;
use domain::turn::TurnEnd;

row! {
    /// A run with its outcome.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RunRow from "runs r" {
        /// Its id.
        pub run: RunId = "r.id",
        /// Its session.
        pub session: SessionId = "r.session",
        /// Its agent.
        pub agent: AgentId = "r.agent",
        /// The turn that it became; none while it is open.
        pub turn: Option<TurnId> = "r.turn",
        /// The outcome of its turn; none while it is open.
        pub end: Option<TurnEnd> = "r.outcome",
        /// Time at which it began.
        pub started_at: Timestamp = "r.started_at",
        /// Time at which it ended.
        pub ended_at: Option<Timestamp> = "r.ended_at",
    }
}

impl Store {
    /// A run.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, ReadError> {
        self.read(move |sql| sql.one(select!(RunRow, "WHERE r.id = ?1"), [id]))
            .await
    }

    /// Returns the runs of a session since its last turn that ended without a turn. The newest come
    /// first, at most `most`.
    pub async fn fruitless_runs(
        &self,
        session: SessionId,
        most: usize,
    ) -> Result<Vec<RunRow>, ReadError> {
        self.read(move |sql| {
            let text = text!(
                "SELECT ",
                RunRow::COLUMNS,
                " FROM events e JOIN streams s ON s.number = e.run JOIN runs r ON r.id = s.stream_id WHERE \
                 e.session = ?1 AND e.stream <> e.session AND e.kind = 'run.started.v1' AND r.turn \
                 IS NULL AND r.outcome IS NOT NULL AND e.position > coalesce((SELECT position FROM \
                 events WHERE stream = ?1 AND kind = 'session.turn.committed.v1' ORDER BY \
                 version DESC LIMIT 1), 0) ORDER BY e.position DESC LIMIT ?2"
            );
            let number = streams::number(sql, Stream::Session(session))?;
            sql.all(text, args![number, most])
        })
        .await
    }

    /// Returns the run and the session of an open operation; none if it is not open.
    pub async fn operation_owner(
        &self,
        id: OperationId,
    ) -> Result<Option<(RunId, SessionId)>, ReadError> {
        self.read(move |sql| sql.one("SELECT run, session FROM operations WHERE id = ?1", [id]))
            .await
    }

    /// The messages that a run has brought into its thread so far, in order.
    pub async fn run_messages(&self, run: RunId) -> Result<Vec<Message>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT message FROM messages WHERE run = ?1 ORDER BY id";
            let found: Vec<Packed<Message>> = sql.all(text, [run])?;
            Ok(found.into_iter().map(|message| message.0).collect())
        })
        .await
    }
}

/// Reads the session of a run.
pub(crate) fn session_of(sql: &Sql<'_>, run: RunId) -> sql::Result<Option<SessionId>> {
    sql.one("SELECT session FROM runs WHERE id = ?1", [run])
}

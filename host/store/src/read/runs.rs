//! Runs, open and ended.

use super::ReadError;
use crate::sql::{Columns, Sql, limit, unreadable};
use crate::store::Store;
use domain::id::{AgentId, OperationId, RunId, SessionId, TurnId};
use domain::message::Message;
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use rusqlite::{Row, params};

/// A run with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// The turn that it became; none while it is open.
    pub turn: Option<TurnId>,
    /// The way it ended; none while it is open.
    pub end: Option<TurnEnd>,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which it ended.
    pub ended_at: Option<Timestamp>,
}

impl Store {
    /// A run.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, ReadError> {
        self.read(move |sql| {
            sql.row(
                "SELECT id, session, agent, turn, outcome, started_at, ended_at FROM runs WHERE id \
                 = ?1",
                [id.to_string()],
                read,
            )
        })
        .await
    }

    /// Returns the runs of a session since its last turn that ended without one. The newest come
    /// first, at most `most`.
    pub async fn fruitless_runs(
        &self,
        session: SessionId,
        most: usize,
    ) -> Result<Vec<RunRow>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT r.id, r.session, r.agent, r.turn, r.outcome, r.started_at, r.ended_at FROM \
                 events e JOIN runs r ON r.id = e.run WHERE e.session = ?1 AND e.stream <> \
                 'session/' || e.session AND e.kind = 'run.started.v1' AND r.turn IS NULL AND \
                 r.outcome IS NOT NULL AND e.position > coalesce((SELECT position FROM events \
                 WHERE stream = 'session/' || ?1 AND kind = 'session.turn.committed.v1' ORDER BY \
                 version DESC LIMIT 1), 0) ORDER BY e.position DESC LIMIT ?2",
                params![session.to_string(), limit(most)],
                read,
            )
        })
        .await
    }

    /// Returns the run and the session of an open operation; none when it is not open.
    pub async fn operation_owner(
        &self,
        id: OperationId,
    ) -> Result<Option<(RunId, SessionId)>, ReadError> {
        self.read(move |sql| {
            sql.row(
                "SELECT run, session FROM operations WHERE id = ?1",
                [id.0.0],
                |row| Ok((row.id(0)?, row.id(1)?)),
            )
        })
        .await
    }

    /// The messages that a run has brought into its thread so far, in order.
    pub async fn run_messages(&self, run: RunId) -> Result<Vec<Message>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT message FROM messages WHERE run = ?1 ORDER BY id",
                [run.to_string()],
                |row| row.json(0),
            )
        })
        .await
    }
}

/// Reads the session of a run.
pub(crate) fn session_of(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<SessionId>> {
    sql.row(
        "SELECT session FROM runs WHERE id = ?1",
        [run.to_string()],
        |row| row.id(0),
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let end = row.text_opt(4)?.map(|end| {
        [
            TurnEnd::Replied,
            TurnEnd::Completed,
            TurnEnd::Failed,
            TurnEnd::Aborted,
        ]
        .into_iter()
        .find(|known| known.as_str() == end)
        .ok_or_else(|| unreadable(4, format!("`{end}` is no end of a run")))
    });
    Ok(RunRow {
        run: row.id(0)?,
        session: row.id(1)?,
        agent: row.id(2)?,
        turn: row.digest_opt(3)?.map(TurnId),
        end: end.transpose()?,
        started_at: Timestamp(row.uint(5)?),
        ended_at: row.uint_opt(6)?.map(Timestamp),
    })
}

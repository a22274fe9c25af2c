//! Sessions as they are now, and which of them something is to be done about.

use super::ReadError;
use crate::sql::{Columns, int, limit as rows, unreadable};
use crate::store::Store;
use domain::digest::Digest;
use domain::id::{AgentId, RunId, SessionId, TurnId};
use domain::message::MessageId;
use domain::time::Timestamp;
use rusqlite::{Row, params};

/// Whether a session takes input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
    /// It does. A chat session stays so.
    Open,
    /// A structured session that ended well.
    Completed,
    /// A structured session that was ended from outside, failed or expired.
    Terminated,
}

/// A session with what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// A label for people.
    pub name: Option<String>,
    /// The turn that it is at; none in an empty thread.
    pub head: Option<TurnId>,
    /// That turn's last message; 0 in an empty thread.
    pub head_message: MessageId,
    /// How often its head has moved.
    pub revision: u64,
    /// Its state, a blob; at first that of [`crate::EMPTY_STATE`].
    pub state: Digest,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// Whether it takes input.
    pub status: SessionStatus,
    /// The run that is open.
    pub open_run: Option<RunId>,
    /// Who began it.
    pub started_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When an input or a turn last came.
    pub updated_at: Timestamp,
    /// The beginning of the last reply.
    pub last_snippet: Option<String>,
    /// How many inputs wait, reminders included.
    pub waiting: u64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, agent, session_type, name, head, head_message, revision, state, model, status, open_run, started_by, created_at, \
             updated_at, last_snippet, (SELECT count(*) FROM inputs WHERE inputs.session = sessions.id AND inputs.state = 'waiting') \
             FROM sessions ",
            $rest
        )
    };
}

impl Store {
    /// A session.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.glance(move |sql| sql.row(select!("WHERE id = ?1"), [id.to_string()], read)).await
    }

    /// An agent's sessions, the most recently updated first, at most `limit`.
    pub async fn sessions(&self, agent: AgentId, limit: usize) -> Result<Vec<SessionRow>, ReadError> {
        self.read(move |sql| {
            let params = params![agent.to_string(), rows(limit)];
            sql.rows(select!("WHERE agent = ?1 ORDER BY updated_at DESC, id LIMIT ?2"), params, read)
        })
        .await
    }

    /// Sessions with an open run, or with an input that waits and is due.
    pub async fn sessions_with_work(&self, now: Timestamp) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT id FROM sessions WHERE open_run IS NOT NULL \
                 UNION SELECT session FROM inputs WHERE state = 'waiting' AND (due IS NULL OR due <= ?1)",
                [int(now.0)],
                |row| row.id(0),
            )
        })
        .await
    }

    /// Sessions of which something is due (a timer, a deadline, a pause, a reminder), the longest overdue first. They stay due until
    /// the event that settles it.
    pub async fn due_wakes(&self, now: Timestamp, limit: usize) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT session FROM wakes WHERE due <= ?1 GROUP BY session ORDER BY min(due) LIMIT ?2",
                params![int(now.0), rows(limit)],
                |row| row.id(0),
            )
        })
        .await
    }

    /// When the next thing is due, or has been due for the longest time.
    pub async fn next_wake(&self) -> Result<Option<Timestamp>, ReadError> {
        let due = self.read(|sql| sql.row("SELECT due FROM wakes ORDER BY due LIMIT 1", [], |row| row.uint(0))).await?;
        Ok(due.map(Timestamp))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let status: String = row.get(9)?;
    Ok(SessionRow {
        id: row.id(0)?,
        agent: row.id(1)?,
        session_type: row.get(2)?,
        name: row.get(3)?,
        head: row.digest_opt(4)?.map(TurnId),
        head_message: row.uint(5)?,
        revision: row.uint(6)?,
        state: row.digest(7)?,
        model: row.get(8)?,
        status: match status.as_str() {
            "open" => SessionStatus::Open,
            "completed" => SessionStatus::Completed,
            "terminated" => SessionStatus::Terminated,
            other => return Err(unreadable(9, format!("`{other}` is no status of a session"))),
        },
        open_run: row.id_opt(10)?,
        started_by: row.get(11)?,
        created_at: Timestamp(row.uint(12)?),
        updated_at: Timestamp(row.uint(13)?),
        last_snippet: row.get(14)?,
        waiting: row.uint(15)?,
    })
}

//! Sessions as they are now, and which of them something is to be done about.

use super::{Clearance, ReadError, UserSessionFilter};
use crate::event_row::{self, event_columns};
use crate::sql::{Columns, Sql, int, limit as rows, unreadable};
use crate::store::Store;
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::event::Recorded;
use domain::id::{AgentId, ConversationId, OperationId, RunId, SessionId, TurnId};
use domain::message::MessageId;
use domain::persona::PersonaId;
use domain::queue::{Overflow, QueueOverride};
use domain::session::HISTORY_MAX;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Status of a session: tells whether it takes input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
    /// The session takes input. A chat session stays open.
    Open,
    /// A structured session that ended well.
    Completed,
    /// A structured session that was ended from outside, failed or expired.
    Terminated,
    /// The session was deleted, and no search finds it.
    Deleted,
}

impl SessionStatus {
    const ALL: [Self; 4] = [Self::Open, Self::Completed, Self::Terminated, Self::Deleted];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Terminated => "terminated",
            Self::Deleted => "deleted",
        }
    }
}

/// A place in a list of sessions of which those that are pinned come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedFirst {
    /// True of a session that is pinned.
    pub is_pinned: bool,
    /// Time of its pinning; of one that is not pinned, of its last change.
    pub time: Timestamp,
    /// The session.
    pub session: SessionId,
}

impl PinnedFirst {
    /// Returns the place of a session.
    #[must_use]
    pub fn of(row: &SessionRow) -> Self {
        Self {
            is_pinned: row.pinned_at.is_some(),
            time: row.pinned_at.unwrap_or(row.updated_at),
            session: row.id,
        }
    }
}

/// Filter for an agent's sessions. A session has to match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// For this user.
    pub user: Option<UserId>,
    /// The session's type.
    pub session_type: Option<String>,
    /// In this state.
    pub status: Option<SessionStatus>,
    /// Pinned, or not pinned. Those that are pinned are listed by when they were, the last first.
    pub pinned: Option<bool>,
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
    /// Last message of the head turn; 0 in an empty thread.
    pub head_message: MessageId,
    /// Number of times that its head has moved.
    pub revision: u64,
    /// Its state, a blob; at first that of [`crate::EMPTY_STATE`].
    pub state: Digest,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// Status: tells whether it takes input.
    pub status: SessionStatus,
    /// The run that is open.
    pub open_run: Option<RunId>,
    /// The user or agent that began it: `user:<id>` or `agent:<definition>`.
    pub started_by: String,
    /// The user whom it is for.
    pub user_id: UserId,
    /// The conversation that it is a part of.
    pub conversation: ConversationId,
    /// Blob with the configuration that it was opened with.
    pub config: Option<Digest>,
    /// Time at which it expires.
    pub expires_at: Option<Timestamp>,
    /// Time at which it was completed or terminated.
    pub ended_at: Option<Timestamp>,
    /// Reason for the termination.
    pub ended_reason: Option<String>,
    /// The agent's summary of a completed one; none when it is over
    /// [`domain::session::SUMMARY_BYTES_MAX`].
    pub summary: Option<Value>,
    /// Number of items on its record.
    pub items: u64,
    /// Number of client actions that were answered.
    pub interactions: u64,
    /// Partial input of the client in the widgets of the open questions, by the questions' ids.
    pub partial_state: BTreeMap<OperationId, Value>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time at which a run last took up an input, or a turn came.
    pub updated_at: Timestamp,
    /// The beginning of the last reply.
    pub last_snippet: Option<String>,
    /// Number of inputs that wait, reminders included.
    pub waiting: u64,
    /// Time at which it was pinned.
    pub pinned_at: Option<Timestamp>,
    /// Attributes noted of it.
    pub attributes: Map<String, Value>,
    /// The persona that it is led as.
    pub persona: Option<PersonaId>,
    /// The turn that it was forked from.
    pub base: Option<TurnId>,
    /// Its own settings of the queue.
    pub queue: QueueOverride,
    /// Drops from its queue that no turn has reported.
    pub overflow: Overflow,
    /// True if it was purged, or is about to be. Then nothing of it is left except that it existed.
    pub purged: bool,
    /// Time from which on its memory agent is to read it; none when it is not.
    pub memory_due: Option<Timestamp>,
}

/// A session of a user's, as a list of all of them has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSession {
    /// The session.
    pub row: SessionRow,
    /// True if it holds its agent's slot and waits for its client.
    pub awaits_client: bool,
}

/// A structured session that has ended, as a history has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    /// The session.
    pub row: SessionRow,
    /// True if what is said of its end, its summary or the reason, rests on content from outside.
    pub untrusted: bool,
}

/// The part of an agent's history that somebody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only sessions of this user; those of all without.
    pub user: Option<UserId>,
    /// True to see deleted sessions too: what a user deletes stays on record for those who guide
    /// or supervise.
    pub deleted: bool,
}

macro_rules! select {
    ($rest:literal) => {
        select!("", $rest)
    };
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT id, agent, session_type, name, head, head_message, revision, state, model, \
             status, open_run, started_by, created_at, updated_at, last_snippet, (SELECT count(*) \
             FROM inputs WHERE inputs.session_number = sessions.number AND inputs.state = \
             'waiting'), user_id, conversation, config, expires_at, ended_at, ended_reason, \
             summary, items, interactions, partial_state, pinned_at, attributes, persona, base, \
             queue, overflow, purged, (SELECT due FROM wakes WHERE wakes.subject = sessions.id AND \
             wakes.kind = 'memory')",
            $more,
            " FROM sessions ",
            $rest
        )
    };
}

/// Sessions of an agent that match a filter and one more condition, by a time, the latest first.
macro_rules! listed {
    ($and:literal, $time:literal) => {
        concat!(
            select!(
                "WHERE agent = ?1 AND status != 'deleted' AND (?2 IS NULL OR user_id = ?2) AND \
                 (?3 IS NULL OR session_type = ?3) AND (?4 IS NULL OR status = ?4) "
            ),
            $and,
            "AND (?5 IS NULL OR ",
            $time,
            " < ?5 OR (",
            $time,
            " = ?5 AND id > ?6)) ORDER BY ",
            $time,
            " DESC, id LIMIT ?7"
        )
    };
}

/// Ended structured sessions of an agent that match one more condition, the latest first, each with
/// the mark of its thread. A summary without a thread comes from another system, and is marked.
macro_rules! ended {
    ($whose:literal) => {
        concat!(
            select!(
                ", (summary IS NOT NULL OR ended_reason IS NOT NULL) AND coalesce((SELECT \
                 untrusted FROM turns WHERE turns.id = sessions.head), summary IS NOT NULL)",
                "WHERE agent = ?1 AND "
            ),
            $whose,
            " AND ended_at IS NOT NULL AND (?6 OR status != 'deleted') AND (?3 IS NULL OR ended_at < ?3 OR \
             (ended_at = ?3 AND id > ?4)) ORDER BY ended_at DESC, id LIMIT ?5"
        )
    };
}

impl Store {
    /// A session.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.point_read(move |sql| sql.row(select!("WHERE id = ?1"), [id.to_string()], read))
            .await
    }

    /// An agent's sessions, the most recently updated first, or the most recently pinned; after one
    /// of them, at most `limit`.
    pub async fn sessions(
        &self,
        agent: AgentId,
        filter: SessionFilter,
        after: Option<(Timestamp, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        self.read(move |sql| {
            let SessionFilter {
                user,
                session_type,
                status,
                pinned,
            } = filter;
            let (time, id) = after.map_or((None, String::new()), |(time, id)| {
                (Some(int(time.0)), id.to_string())
            });
            let params = params![
                agent.to_string(),
                user.as_ref().map(UserId::as_str),
                session_type,
                status.map(SessionStatus::as_str),
                time,
                id,
                rows(limit)
            ];
            let text = match pinned {
                None => listed!("", "updated_at"),
                Some(false) => listed!("AND pinned_at IS NULL ", "updated_at"),
                Some(true) => listed!("AND pinned_at IS NOT NULL ", "pinned_at"),
            };
            sql.rows(text, params, read)
        })
        .await
    }

    /// An agent's structured sessions that have ended, the latest first, after one of them, at most
    /// `limit`.
    pub async fn session_history(
        &self,
        agent: AgentId,
        filter: HistoryFilter,
        after: Option<(Timestamp, SessionId)>,
        limit: usize,
    ) -> Result<Vec<EndedSession>, ReadError> {
        let look = move |sql: &Sql<'_>| {
            let HistoryFilter { user, deleted } = filter;
            let (time, id) = after.map_or((None, String::new()), |(time, id)| {
                (Some(int(time.0)), id.to_string())
            });
            let params = params![
                agent.to_string(),
                user.as_ref().map(UserId::as_str),
                time,
                id,
                rows(limit),
                deleted,
            ];
            // Each by an index of its own: every step asks for the few of its user, among however
            // many of others.
            let text = match user {
                Some(_) => ended!("user_id = ?2"),
                None => ended!("?2 IS NULL"),
            };
            let read = |row: &Row<'_>| {
                Ok(EndedSession {
                    row: read(row)?,
                    untrusted: row.get(34)?,
                })
            };
            sql.rows(text, params, read)
        };
        // Every step asks for a few.
        if limit <= HISTORY_MAX {
            self.point_read(look).await
        } else {
            self.read(look).await
        }
    }

    /// A user's sessions of every agent, the latest first, at most `limit`; those that a filter
    /// admits.
    pub async fn sessions_of_user(
        &self,
        clearance: &Clearance,
        filter: UserSessionFilter,
        limit: usize,
    ) -> Result<Vec<UserSession>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let text = select!(
                ", EXISTS (SELECT 1 FROM agents WHERE agents.id = sessions.agent AND agents.slot = \
                 sessions.id AND json_extract(agents.agent, '$.active_session.phase.status') = \
                 'awaiting_client_action') ",
                "WHERE user_id = ?1 AND status != 'deleted' AND started_by LIKE 'user:%' AND \
                 EXISTS (SELECT 1 FROM access WHERE access.user_id = ?1 AND access.agent = \
                 sessions.agent) AND (?2 IS NULL OR session_type = ?2) AND (NOT ?3 OR status = \
                 'open') AND agent NOT IN (SELECT value FROM json_each(?5)) AND (?6 IS NULL OR \
                 conversation = ?6) ORDER BY created_at DESC, id LIMIT ?4"
            );
            let read = |row: &Row<'_>| {
                Ok(UserSession {
                    row: read(row)?,
                    awaits_client: row.get(34)?,
                })
            };
            sql.rows(
                text,
                params![
                    clearance.user(),
                    filter.session_type,
                    filter.open,
                    rows(limit),
                    clearance.hidden(),
                    filter.conversation.map(|id| id.to_string())
                ],
                read,
            )
        })
        .await
    }

    /// A user's own sessions of every agent to which they are assigned: those that are pinned
    /// first, the last pinned before the others, then the most recently updated. At most `limit`,
    /// after a place in this order.
    pub async fn sessions_pinned_first(
        &self,
        clearance: &Clearance,
        open: bool,
        after: Option<PinnedFirst>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let text = select!(
                "WHERE user_id = ?1 AND status != 'deleted' AND started_by LIKE 'user:%' AND \
                 EXISTS (SELECT 1 FROM access JOIN agents ON agents.id = access.agent WHERE \
                 access.user_id = ?1 AND access.agent = sessions.agent AND agents.active = 1) AND \
                 (NOT ?2 OR status = 'open') AND (?4 IS NULL OR (pinned_at IS NULL) > ?4 OR \
                 ((pinned_at IS NULL) = ?4 AND (coalesce(pinned_at, updated_at) < ?5 OR \
                 (coalesce(pinned_at, updated_at) = ?5 AND id > ?6)))) AND agent NOT IN (SELECT \
                 value FROM json_each(?7)) ORDER BY pinned_at IS NULL, coalesce(pinned_at, updated_at) DESC, id LIMIT ?3"
            );
            let is_unpinned = after.map(|after| !after.is_pinned);
            let time = after.map(|after| int(after.time.0));
            let id = after.map(|after| after.session.to_string());
            sql.rows(
                text,
                params![
                    clearance.user(),
                    open,
                    rows(limit),
                    is_unpinned,
                    time,
                    id,
                    clearance.hidden()
                ],
                read,
            )
        })
        .await
    }

    /// The items of a session after one of them, in order, at most `limit`.
    pub async fn items(
        &self,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Recorded>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                concat!(
                    "SELECT ",
                    event_columns!(),
                    " FROM events WHERE position IN (SELECT position FROM items WHERE session = ?1 \
                     AND sequence > ?2 ORDER BY sequence LIMIT ?3) ORDER BY position"
                ),
                params![session.to_string(), int(after), rows(limit)],
                event_row::read,
            )
        })
        .await
    }

    /// Sessions of an agent of which a run is open.
    pub async fn sessions_running(
        &self,
        agent: AgentId,
    ) -> Result<Vec<(AgentId, SessionId)>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT agent, id FROM sessions WHERE agent = ?1 AND open_run IS NOT NULL \
                        ORDER BY updated_at DESC";
            sql.rows(text, [agent.to_string()], |row| {
                Ok((row.id(0)?, row.id(1)?))
            })
        })
        .await
    }

    /// Sessions of a topmost agent, and of the agents below it, of which a run is open.
    pub async fn sessions_running_below(&self, root: AgentId) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT sessions.id FROM agents CROSS JOIN sessions ON sessions.agent = \
                        agents.id WHERE agents.root = ?1 AND sessions.open_run IS NOT NULL";
            sql.rows(text, [root.to_string()], |row| row.id(0))
        })
        .await
    }

    /// Sessions of all agents of these definitions of which a run is open.
    pub async fn sessions_running_as(
        &self,
        definitions: &[DefinitionId],
    ) -> Result<Vec<SessionId>, ReadError> {
        let definitions = json!(definitions).to_string();
        self.read(move |sql| {
            let text = "SELECT sessions.id FROM sessions CROSS JOIN agents ON agents.id = \
                        sessions.agent WHERE sessions.open_run IS NOT NULL AND CASE WHEN \
                        json_valid(agents.agent) THEN agents.agent ->> '$.definition' END IN \
                        (SELECT value FROM json_each(?1))";
            sql.rows(text, [definitions], |row| row.id(0))
        })
        .await
    }

    /// Sessions with an open run, or with an input that waits and is due.
    pub async fn sessions_with_work(&self, now: Timestamp) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT id FROM sessions WHERE open_run IS NOT NULL UNION SELECT sessions.id FROM \
                 (SELECT DISTINCT session_number FROM inputs WHERE state = 'waiting' AND (due IS \
                 NULL OR due <= ?1)) AS waiting CROSS JOIN sessions ON sessions.number = \
                 waiting.session_number",
                [int(now.0)],
                |row| row.id(0),
            )
        })
        .await
    }

    /// Sessions of which something is due (a timer, a deadline, a pause, a reminder), the longest
    /// overdue first. They stay due until the event that settles it. A reminder is not due while
    /// the session's run takes in no messages: the run's next boundary and its end ask for it.
    pub async fn due_wakes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueSession>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT session, max(due) FROM wakes WHERE due <= ?1 AND NOT (kind = 'reminder' \
                 AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = wakes.session AND open_run \
                 IS NOT NULL AND NOT hears)) GROUP BY session ORDER BY min(due) LIMIT ?2",
                params![int(now.0), rows(limit)],
                |row| {
                    Ok(DueSession {
                        session: row.id(0)?,
                        newest: Timestamp(row.uint(1)?),
                    })
                },
            )
        })
        .await
    }

    /// Returns the time at which the next thing is due, or that of the longest overdue one.
    pub async fn next_wake(&self) -> Result<Option<Timestamp>, ReadError> {
        let due = self
            .read(|sql| {
                sql.row("SELECT due FROM wakes ORDER BY due LIMIT 1", [], |row| {
                    row.uint(0)
                })
            })
            .await?;
        Ok(due.map(Timestamp))
    }

    /// Returns the time at which the next thing is due after a given time.
    pub async fn next_wake_after(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let text = "SELECT due FROM wakes WHERE due > ?1 ORDER BY due LIMIT 1";
        let due = self
            .read(move |sql| sql.row(text, [int(after.0)], |row| row.uint(0)))
            .await?;
        Ok(due.map(Timestamp))
    }
}

/// A session of which something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueSession {
    /// The session.
    pub session: SessionId,
    /// Due time of the newest thing that is due.
    pub newest: Timestamp,
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
        status: SessionStatus::ALL
            .into_iter()
            .find(|known| known.as_str() == status)
            .ok_or_else(|| unreadable(9, format!("`{status}` is no status of a session")))?,
        open_run: row.id_opt(10)?,
        started_by: row.get(11)?,
        created_at: Timestamp(row.uint(12)?),
        updated_at: Timestamp(row.uint(13)?),
        last_snippet: row.get(14)?,
        waiting: row.uint(15)?,
        user_id: row.id(16)?,
        conversation: row.id(17)?,
        config: row.digest_opt(18)?,
        expires_at: row.uint_opt(19)?.map(Timestamp),
        ended_at: row.uint_opt(20)?.map(Timestamp),
        ended_reason: row.get(21)?,
        summary: row.json_opt(22)?,
        items: row.uint(23)?,
        interactions: row.uint(24)?,
        partial_state: row
            .get::<_, Option<String>>(25)?
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default(),
        pinned_at: row.uint_opt(26)?.map(Timestamp),
        attributes: row.json_opt(27)?.unwrap_or_default(),
        persona: row.id_opt(28)?,
        base: row.digest_opt(29)?.map(TurnId),
        queue: row.json_opt(30)?.unwrap_or_default(),
        overflow: row.json_opt(31)?.unwrap_or_default(),
        purged: row.get(32)?,
        memory_due: row.uint_opt(33)?.map(Timestamp),
    })
}

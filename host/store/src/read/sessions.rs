//! Sessions in their present state, and the sessions that need action.

use super::{Clearance, ReadError};
use crate::event_row::{EVENT_COLUMNS, EVENTS};
use crate::sql::{Sql, args, named, row, select, stored_as_word, text};
use crate::sqlite::{ids, texts};
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
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Status of a session: whether it takes input.
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

stored_as_word!(SessionStatus);

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

/// A place in a list of sessions that begins with the pinned ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedFirst {
    /// True of a session that is pinned.
    pub is_pinned: bool,
    /// Time of its pinning; for an unpinned session, of its last change.
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
    /// Pinned or unpinned sessions only. Pinned sessions are ordered by the time of pinning, the
    /// latest first.
    pub pinned: Option<bool>,
}

row! {
    /// A session with its facts.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SessionRow from "sessions s" {
        /// Its id.
        pub id: SessionId = "s.id",
        /// Its agent.
        pub agent: AgentId = "s.agent",
        /// `chat`, or a structured type.
        pub session_type: String = "s.session_type",
        /// A label for people.
        pub name: Option<String> = "s.name",
        /// Its head turn; none in an empty thread.
        pub head: Option<TurnId> = "s.head",
        /// Last message of the head turn; 0 in an empty thread.
        pub head_message: MessageId = "s.head_message",
        /// Number of times that its head has moved.
        pub revision: u64 = "s.revision",
        /// Its state, a blob; at first that of [`crate::EMPTY_STATE`].
        pub state: Digest = "s.state",
        /// The model that its turns use unless a message names another.
        pub model: Option<String> = "s.model",
        /// Status: whether it takes input.
        pub status: SessionStatus = "s.status",
        /// The run that is open.
        pub open_run: Option<RunId> = "s.open_run",
        /// The user or agent that began it: `user:<id>`, `agent:<path>` or `trigger:<name>`.
        pub started_by: String = "s.started_by",
        /// Its user.
        pub user_id: UserId = "s.user_id",
        /// The conversation that it belongs to.
        pub conversation: ConversationId = "s.conversation",
        /// Blob with the configuration that it was opened with.
        pub config: Option<Digest> = "s.config",
        /// Time at which it expires.
        pub expires_at: Option<Timestamp> = "s.expires_at",
        /// Time at which it was completed or terminated.
        pub ended_at: Option<Timestamp> = "s.ended_at",
        /// Reason for the termination.
        pub ended_reason: Option<String> = "s.ended_reason",
        /// The agent's summary of a completed session; none if it exceeds
        /// [`domain::session::SUMMARY_BYTES_MAX`].
        pub summary: Option<Value> as json_opt = "s.summary",
        /// Number of items on its record.
        pub items: u64 = "s.items",
        /// Number of client actions that were answered.
        pub interactions: u64 = "s.interactions",
        /// Partial input of the client in the widgets of the open questions, by the questions' ids.
        pub partial_state: BTreeMap<OperationId, Value> as json_or_default = "s.partial_state",
        /// Time of its creation.
        pub created_at: Timestamp = "s.created_at",
        /// Time at which a run last claimed an input, or a turn was added.
        pub updated_at: Timestamp = "s.updated_at",
        /// The beginning of the last reply.
        pub last_snippet: Option<String> = "s.last_snippet",
        /// Number of inputs that wait, reminders included.
        pub waiting: u64 = "(SELECT count(*) FROM inputs i WHERE i.session_number = s.number AND \
                            i.state = 'waiting')",
        /// Time at which it was pinned.
        pub pinned_at: Option<Timestamp> = "s.pinned_at",
        /// Its recorded attributes.
        pub attributes: Map<String, Value> as json_or_default = "s.attributes",
        /// The persona under which the agent leads it.
        pub persona: Option<PersonaId> = "s.persona",
        /// The turn that it was forked from.
        pub base: Option<TurnId> = "s.base",
        /// Its own settings of the queue.
        pub queue: QueueOverride as json_or_default = "s.queue",
        /// Drops from its queue that no turn has reported.
        pub overflow: Overflow as json_or_default = "s.overflow",
        /// True if it was purged, or is about to be. Then nothing is left except the fact that it
        /// existed.
        pub purged: bool = "s.purged",
        /// True if it is structured and waits for its client.
        pub awaits_client: bool =
            "s.session_type != 'chat' AND EXISTS (SELECT 1 FROM agents a WHERE a.id = s.agent AND \
             a.slot = s.id AND a.slot_phase = 'awaiting_client_action')",
        /// Time from which on its memory agent is due to read it; none if no reading is due.
        pub memory_due: Option<Timestamp> =
            "(SELECT w.due FROM wakes w WHERE w.subject = s.id AND w.kind = 'memory')",
    }
}

row! {
    /// A structured session that has ended, as a history has it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EndedSession from "sessions s" {
        /// The session.
        pub row: SessionRow as row,
        /// True if the description of its end (its summary or the reason) depends on content from
        /// outside. A summary without a thread was imported from another system, so it counts as
        /// such.
        pub untrusted: bool =
            "(s.summary IS NOT NULL OR s.ended_reason IS NOT NULL) AND coalesce((SELECT \
             t.untrusted FROM turns t WHERE t.id = s.head), s.summary IS NOT NULL)",
    }
}

/// A filter for the part of an agent's history that a user sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only sessions of this user; those of all without.
    pub user: Option<UserId>,
    /// True to include deleted sessions: those that a user deletes remain visible to guides and
    /// supervisors.
    pub deleted: bool,
}

/// Sessions of an agent that match a filter and one more condition, by a time, the latest first.
macro_rules! listed {
    ($and:literal, $time:literal) => {
        select!(
            SessionRow,
            "WHERE s.agent = :agent AND s.status != 'deleted' AND (:user IS NULL OR s.user_id = \
             :user) AND (:session_type IS NULL OR s.session_type = :session_type) AND (:status IS \
             NULL OR s.status = :status) ",
            $and,
            "AND (:time IS NULL OR ",
            $time,
            " < :time OR (",
            $time,
            " = :time AND s.id > :id)) ORDER BY ",
            $time,
            " DESC, s.id LIMIT :limit"
        )
    };
}

/// Ended structured sessions of an agent that match one more condition, the latest first.
macro_rules! ended {
    ($whose:literal) => {
        select!(
            EndedSession,
            "WHERE s.agent = :agent AND ",
            $whose,
            " AND s.ended_at IS NOT NULL AND (:deleted OR s.status != 'deleted') AND (:time IS \
             NULL OR s.ended_at < :time OR (s.ended_at = :time AND s.id > :id)) ORDER BY \
             s.ended_at DESC, s.id LIMIT :limit"
        )
    };
}

impl Store {
    /// A session.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.point_read(move |sql| sql.one(select!(SessionRow, "WHERE s.id = ?1"), [id]))
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
            let params = named![
                agent,
                user,
                session_type,
                status,
                time = after.map(|(time, _)| time),
                id = after.map(|(_, id)| id),
                limit
            ];
            let text = match pinned {
                None => listed!("", "s.updated_at"),
                Some(false) => listed!("AND s.pinned_at IS NULL ", "s.updated_at"),
                Some(true) => listed!("AND s.pinned_at IS NOT NULL ", "s.pinned_at"),
            };
            sql.all(text, params)
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
        let inspection = move |sql: &Sql<'_>| {
            let HistoryFilter { user, deleted } = filter;
            // Each by an index of its own: every step asks for the few of its user, among however
            // many of others.
            let text = match user {
                Some(_) => ended!("s.user_id = :user"),
                None => ended!(":user IS NULL"),
            };
            let params = named![
                agent,
                user,
                time = after.map(|(time, _)| time),
                id = after.map(|(_, id)| id),
                limit,
                deleted
            ];
            sql.all(text, params)
        };
        // Every step asks for a few.
        if limit <= HISTORY_MAX {
            self.point_read(inspection).await
        } else {
            self.read(inspection).await
        }
    }

    /// A user's sessions of every agent, the latest first, at most `limit`; those that a filter
    /// admits.
    pub async fn sessions_of_user(
        &self,
        clearance: &Clearance,
        filter: UserSessionFilter,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let text = select!(
                SessionRow,
                "WHERE s.user_id = :user AND s.status != 'deleted' AND s.started_by LIKE 'user:%' \
                 AND EXISTS (SELECT 1 FROM access WHERE access.user_id = :user AND access.agent = \
                 s.agent) AND (:session_type IS NULL OR s.session_type = :session_type) AND (NOT \
                 :open OR s.status = 'open') AND s.agent NOT IN ",
                ids!("hidden"),
                " AND (:conversation IS NULL OR s.conversation = :conversation) \
                 ORDER BY s.created_at DESC, s.id LIMIT :limit"
            );
            let params = named![
                user = clearance.user(),
                session_type = filter.session_type,
                open = filter.open,
                limit,
                hidden = clearance.hidden(),
                conversation = filter.conversation
            ];
            sql.all(text, params)
        })
        .await
    }

    /// A user's own sessions of every agent to which they are assigned. The pinned ones come first,
    /// ordered by the time of pinning, the latest first; then the most recently updated. At most
    /// `limit`, after a place in this order.
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
                SessionRow,
                "WHERE s.user_id = :user AND s.status != 'deleted' AND s.started_by LIKE 'user:%' \
                 AND EXISTS (SELECT 1 FROM access JOIN agents ON agents.id = access.agent WHERE \
                 access.user_id = :user AND access.agent = s.agent AND agents.active = 1) AND (NOT \
                 :open OR s.status = 'open') AND (:is_unpinned IS NULL OR (s.pinned_at IS NULL) > \
                 :is_unpinned OR ((s.pinned_at IS NULL) = :is_unpinned AND (coalesce(s.pinned_at, \
                 s.updated_at) < :time OR (coalesce(s.pinned_at, s.updated_at) = :time AND s.id > \
                 :id)))) AND s.agent NOT IN ",
                ids!("hidden"),
                " ORDER BY \
                 s.pinned_at IS NULL, coalesce(s.pinned_at, s.updated_at) DESC, s.id LIMIT :limit"
            );
            let params = named![
                user = clearance.user(),
                open,
                limit,
                is_unpinned = after.map(|after| !after.is_pinned),
                time = after.map(|after| after.time),
                id = after.map(|after| after.session),
                hidden = clearance.hidden()
            ];
            sql.all(text, params)
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
            let text = text!(
                "SELECT ",
                EVENT_COLUMNS,
                " FROM ",
                EVENTS,
                " WHERE position IN (SELECT position FROM items WHERE session = \
                 :session AND sequence > :after ORDER BY sequence LIMIT :limit) ORDER BY position"
            );
            sql.all(text, named![session, after, limit])
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
            sql.all(text, [agent])
        })
        .await
    }

    /// Sessions of a topmost agent, and of the agents below it, of which a run is open.
    pub async fn sessions_running_below(&self, root: AgentId) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT sessions.id FROM agents CROSS JOIN sessions ON sessions.agent = \
                        agents.id WHERE agents.root = ?1 AND sessions.open_run IS NOT NULL";
            sql.all(text, [root])
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
            let text = text!("SELECT sessions.id FROM sessions CROSS JOIN agents ON agents.id = \
                        sessions.agent WHERE sessions.open_run IS NOT NULL AND agents.definition IN ", texts!(":definitions"));
            sql.all(text, named![definitions])
        })
        .await
    }

    /// Sessions with an open run, or with an input that waits and is due.
    pub async fn sessions_with_work(&self, now: Timestamp) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            sql.all(
                "SELECT id FROM sessions WHERE open_run IS NOT NULL UNION SELECT sessions.id FROM \
                 (SELECT DISTINCT session_number FROM inputs WHERE state = 'waiting' AND (due IS \
                 NULL OR due <= ?1)) AS waiting CROSS JOIN sessions ON sessions.number = \
                 waiting.session_number",
                [now],
            )
        })
        .await
    }

    /// Sessions with something due (a timer, a deadline, a pause, a reminder), the longest overdue
    /// first. They stay due until an event settles it. A reminder is not due while the session's
    /// run takes in no messages: the run checks for it at its next boundary and at its end.
    pub async fn due_wakes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueSession>, ReadError> {
        self.read(move |sql| {
            sql.all(
                select!(
                    DueSession,
                    "WHERE due <= ?1 AND NOT (kind = 'reminder' AND EXISTS (SELECT 1 FROM sessions \
                     WHERE sessions.id = wakes.session AND open_run IS NOT NULL AND NOT hears)) \
                     GROUP BY session ORDER BY min(due) LIMIT ?2"
                ),
                args![now, limit],
            )
        })
        .await
    }

    /// Returns the time at which the next thing is due, or that of the longest overdue one.
    pub async fn next_wake(&self) -> Result<Option<Timestamp>, ReadError> {
        self.read(|sql| sql.one("SELECT due FROM wakes ORDER BY due LIMIT 1", []))
            .await
    }

    /// Returns the time at which the next thing is due after a given time.
    pub async fn next_wake_after(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let text = "SELECT due FROM wakes WHERE due > ?1 ORDER BY due LIMIT 1";
        self.read(move |sql| sql.one(text, [after])).await
    }
}

row! {
    /// A session with something due.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DueSession from "wakes" {
        /// The session.
        pub session: SessionId,
        /// Due time of the newest thing that is due.
        pub newest: Timestamp = "max(due)",
    }
}

/// Counts of a session's own turns. Turns from before the session was forked do not count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStats {
    /// Messages by role: `user`, `assistant`, `tool` and `notice`.
    pub messages: BTreeMap<String, u64>,
    /// Turns by their end: `replied`, `completed`, `failed` and `aborted`.
    pub turns: BTreeMap<String, u64>,
    /// Turns in progress: 1 at most.
    pub open_turns: u64,
    /// Milliseconds from the beginning of each ended turn to its end, waiting included.
    pub turns_ms: u64,
}

impl Store {
    /// Returns the counts of a session. The cost grows with its messages.
    pub async fn session_stats(&self, session: SessionId) -> Result<SessionStats, ReadError> {
        self.read(move |sql| {
            let messages = sql.all::<(String, u64)>(
                "SELECT m.role, count(*) FROM runs r JOIN messages m ON m.run = r.id WHERE \
                 r.session = ?1 GROUP BY m.role",
                [session],
            )?;
            let runs = sql.all::<(Option<String>, u64, u64)>(
                "SELECT outcome, count(*), coalesce(sum(ended_at - started_at), 0) FROM runs WHERE \
                 session = ?1 GROUP BY outcome",
                [session],
            )?;
            let mut stats = SessionStats {
                messages: messages.into_iter().collect(),
                ..SessionStats::default()
            };
            for (outcome, count, ms) in runs {
                stats.turns_ms = stats.turns_ms.saturating_add(ms);
                match outcome {
                    Some(outcome) => drop(stats.turns.insert(outcome, count)),
                    None => stats.open_turns = count,
                }
            }
            Ok(stats)
        })
        .await
    }
}

/// A filter for the sessions of a user; by default it matches all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserSessionFilter {
    /// Only those of this type.
    pub session_type: Option<String>,
    /// True for those alone that take input.
    pub open: bool,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
}

impl Store {
    /// Returns whether a conversation is another user's: they have a session in it, and this user
    /// has none.
    pub async fn is_conversation_of_another(
        &self,
        conversation: ConversationId,
        user: &UserId,
    ) -> Result<bool, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            let text = "SELECT 1 FROM sessions WHERE user_id = ?1 AND conversation = ?2";
            if sql.exists(text, args![user, conversation])? {
                return Ok(false);
            }
            let text = "SELECT 1 FROM sessions WHERE conversation = ?1";
            sql.exists(text, [conversation])
        })
        .await
    }
}

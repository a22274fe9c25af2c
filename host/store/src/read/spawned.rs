//! A session and all sessions begun below it: those of agents that it handed work to, and
//! recursively those of their agents.

use super::{Clearance, ReadError};
use crate::event_row::{EVENT_COLUMNS, EVENTS};
use crate::sql::{named, row, text};
use crate::sqlite::ids;
use crate::store::Store;
use domain::event::Recorded;
use domain::id::{AgentId, OperationId, SessionId};

/// Maximum depth of a search for sessions below another one: far more than agents may nest.
const DEPTH_MAX: u32 = 32;

row! {
    /// A session that was begun below another one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SpawnedSession {
        /// Its id.
        pub id: SessionId = "family.id",
        /// The session that began it.
        pub by: SessionId = "by_session",
        /// Its agent.
        pub agent: AgentId,
        /// Path of that agent.
        pub path: String,
        /// Depth below the given session: 1 for a session that it began itself.
        pub depth: u64,
        /// The operation that handed over the work for which it was begun.
        pub task: Option<OperationId> =
            "(SELECT t.id FROM sessions s CROSS JOIN tasks t ON t.input = s.first_input WHERE s.id \
             = family.id)",
    }
}

/// The sessions below `:session` whose agents the user `:user` has a role with, as `family`,
/// including `:session` itself.
const FAMILY: &str = "WITH RECURSIVE family (id, by_session, agent, path, depth) AS (SELECT \
                      :session, NULL, NULL, NULL, 0 UNION ALL SELECT spawned.session, \
                      spawned.by_session, agents.id, agents.path, family.depth + 1 FROM family \
                      CROSS JOIN spawned ON spawned.by_session = family.id CROSS JOIN sessions ON \
                      sessions.id = spawned.session CROSS JOIN agents ON agents.id = \
                      sessions.agent WHERE EXISTS (SELECT 1 FROM access WHERE access.user_id = \
                      :user AND access.agent = agents.id) AND family.depth < :depth_max) ";

const SESSIONS: &str = text!(
    FAMILY,
    "SELECT ",
    SpawnedSession::COLUMNS,
    " FROM family WHERE depth > 0 AND agent NOT IN ",
    ids!("hidden"),
    " ORDER BY \
     depth, family.id"
);

/// Each session contributes up to the wanted number of positions, of its own stream and of the
/// others', by their indexes. The first positions of all of them are read.
const FAMILY_EVENTS: &str = text!(
    FAMILY,
    "SELECT ",
    EVENT_COLUMNS,
    " FROM ",
    EVENTS,
    " WHERE position IN (SELECT found.position FROM family CROSS JOIN streams \
     ON streams.stream_kind = 'session' AND streams.stream_id = family.id CROSS JOIN events AS found ON \
     found.position IN (SELECT position FROM (SELECT position FROM events WHERE stream = \
     streams.number AND position > :after ORDER BY version LIMIT :limit) UNION ALL SELECT position \
     FROM (SELECT position FROM events WHERE session = streams.number AND stream <> session AND \
     position > :after ORDER BY position LIMIT :limit)) WHERE \
     family.agent IS NULL OR family.agent NOT IN ",
    ids!("hidden"),
    " ORDER BY \
     found.position LIMIT :limit) ORDER BY position"
);

impl Store {
    /// The sessions below a session whose agents a user sees, the nearest first.
    pub async fn spawned(
        &self,
        session: SessionId,
        clearance: &Clearance,
    ) -> Result<Vec<SpawnedSession>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let params = named![
                session,
                user = clearance.user(),
                depth_max = DEPTH_MAX,
                hidden = clearance.hidden()
            ];
            sql.all(SESSIONS, params)
        })
        .await
    }

    /// Returns events after a position about a session or its descendants, in order, at most
    /// `limit`. Only descendants whose agents the user sees count. A session's first event follows
    /// its parent's, so a client that continues from the last position misses none.
    pub async fn events_with_spawned(
        &self,
        after: u64,
        session: SessionId,
        clearance: &Clearance,
        limit: usize,
    ) -> Result<Vec<Recorded>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let params = named![
                session,
                user = clearance.user(),
                depth_max = DEPTH_MAX,
                hidden = clearance.hidden(),
                after,
                limit
            ];
            sql.all(FAMILY_EVENTS, params)
        })
        .await
    }
}

//! A session with the sessions that were begun below it: those of the agents that it handed work
//! to, those that they handed work to, and so on.

use super::{Clearance, ReadError};
use crate::event_row::{self, event_columns};
use crate::sql::{Columns, int, limit as rows};
use crate::store::Store;
use domain::event::Recorded;
use domain::id::{AgentId, OperationId, SessionId};
use rusqlite::params;

/// Maximum depth of a search for sessions below another one: far more than agents may nest.
const DEPTH_MAX: u32 = 32;

/// A session that was begun below another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnedSession {
    /// Its id.
    pub id: SessionId,
    /// The session that began it.
    pub by: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// Path of that agent.
    pub path: String,
    /// Depth below the given session: 1 for a session that it began itself.
    pub depth: u64,
    /// The operation that handed over the work for which it was begun.
    pub task: Option<OperationId>,
}

/// The sessions below `?1` whose agents the user `?2` may do something with, as `family`, `?1`
/// itself included.
macro_rules! family {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE family (id, by_session, agent, path, depth) AS ( SELECT ?1, NULL, \
             NULL, NULL, 0 UNION ALL SELECT spawned.session, spawned.by_session, agents.id, \
             agents.path, family.depth + 1 FROM family CROSS JOIN spawned ON spawned.by_session = \
             family.id CROSS JOIN sessions ON sessions.id = spawned.session CROSS JOIN agents ON \
             agents.id = sessions.agent WHERE EXISTS (SELECT 1 FROM access WHERE access.user_id = \
             ?2 AND access.agent = agents.id) AND family.depth < ?3) ",
            $rest
        )
    };
}

const SESSIONS: &str = family!(
    "SELECT family.id, by_session, agent, path, depth, (SELECT t.id FROM sessions s CROSS JOIN tasks \
     t ON t.input = s.first_input WHERE s.id = family.id) FROM family WHERE depth > 0 AND agent NOT \
     IN (SELECT value FROM json_each(?4)) ORDER BY depth, family.id"
);

/// Each session gives as many positions as are wanted, of its own stream and of the others', by
/// their indexes, and the first of them all are read.
const EVENTS: &str = concat!(
    family!("SELECT "),
    event_columns!(),
    " FROM events WHERE position IN ( \
       SELECT found.position FROM family CROSS JOIN events AS found \
       ON found.position IN ( \
         SELECT position FROM (SELECT position FROM events WHERE stream = 'session/' || family.id \
         AND position > ?5 \
           ORDER BY version LIMIT ?6) \
         UNION ALL \
         SELECT position FROM (SELECT position FROM events WHERE session = family.id AND stream <> \
         'session/' || session \
           AND position > ?5 ORDER BY position LIMIT ?6)) \
       WHERE family.agent IS NULL OR family.agent NOT IN (SELECT value FROM json_each(?4)) \
       ORDER BY found.position LIMIT ?6) \
     ORDER BY position"
);

impl Store {
    /// The sessions below a session, the nearest first, as far as a user sees their agents.
    pub async fn spawned(
        &self,
        session: SessionId,
        clearance: &Clearance,
    ) -> Result<Vec<SpawnedSession>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            sql.rows(
                SESSIONS,
                params![
                    session.to_string(),
                    clearance.user(),
                    DEPTH_MAX,
                    clearance.hidden()
                ],
                |row| {
                    Ok(SpawnedSession {
                        id: row.id(0)?,
                        by: row.id(1)?,
                        agent: row.id(2)?,
                        path: row.get(3)?,
                        depth: row.uint(4)?,
                        task: row.digest_opt(5)?.map(OperationId),
                    })
                },
            )
        })
        .await
    }

    /// Returns events after a position about a session or its descendants, in order, at most
    /// `limit`. Of the descendants only those count whose agents the user sees. A session's first
    /// event comes after its parent's, so a client that continues from the last position misses
    /// none.
    pub async fn events_with_spawned(
        &self,
        after: u64,
        session: SessionId,
        clearance: &Clearance,
        limit: usize,
    ) -> Result<Vec<Recorded>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            sql.rows(
                EVENTS,
                params![
                    session.to_string(),
                    clearance.user(),
                    DEPTH_MAX,
                    clearance.hidden(),
                    int(after),
                    rows(limit)
                ],
                event_row::read,
            )
        })
        .await
    }
}

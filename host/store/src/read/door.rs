//! The one read before a message is accepted: an open session, its agent, and the sender's role.
//!
//! Reading the rows of both in full costs several times as much: the agent's is a JSON document,
//! and the session's counts the inputs that wait.

use super::{ReadError, SessionRow};
use crate::sql::Columns;
use crate::store::Store;
use domain::definition::DefinitionId;
use domain::id::{AgentId, SessionId};
use domain::path::PathKind;
use domain::queue::QueueOverride;
use domain::role::AgentRole;
use domain::user::UserId;
use rusqlite::{Row, params};

/// A session as far as the acceptance of a message depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressee {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// Its own settings of the queue.
    pub queue: QueueOverride,
}

impl From<&SessionRow> for Addressee {
    fn from(row: &SessionRow) -> Self {
        Self {
            session: row.id,
            agent: row.agent,
            session_type: row.session_type.clone(),
            queue: row.queue,
        }
    }
}

/// An open session of an active agent, with what decides whether a user may post to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The session.
    pub addressee: Addressee,
    /// The user whom the session is for.
    pub user_id: UserId,
    /// The sender's role with the agent.
    pub role: AgentRole,
    /// The agent's path.
    pub path: String,
    /// The agent's kind.
    pub kind: PathKind,
    /// The agent's definition.
    pub definition: DefinitionId,
}

impl Store {
    /// An open session of an active agent that the user has a role with. None in every other case:
    /// the rows themselves then tell which.
    pub async fn door(
        &self,
        user: &UserId,
        agent: AgentId,
        session: SessionId,
    ) -> Result<Option<Door>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            sql.row(
                "SELECT sessions.session_type, sessions.queue, sessions.user_id, access.role, \
                 agents.path, agents.kind, agents.agent ->> '$.definition' FROM sessions CROSS \
                 JOIN access ON access.agent = sessions.agent AND access.user_id = ?3 CROSS JOIN \
                 agents ON agents.id = sessions.agent WHERE sessions.id = ?1 AND sessions.agent = \
                 ?2 AND sessions.status = 'open' AND sessions.purged = 0 AND agents.active = 1 AND \
                 agents.purged = 0 AND agents.kind IS NOT NULL",
                params![session.to_string(), agent.to_string(), user.as_str()],
                |row| read(row, session, agent),
            )
        })
        .await
    }
}

fn read(row: &Row<'_>, session: SessionId, agent: AgentId) -> rusqlite::Result<Door> {
    Ok(Door {
        addressee: Addressee {
            session,
            agent,
            session_type: row.get(0)?,
            queue: row.json_opt(1)?.unwrap_or_default(),
        },
        user_id: row.id(2)?,
        role: row.id(3)?,
        path: row.get(4)?,
        kind: row.id(5)?,
        definition: DefinitionId(row.get(6)?),
    })
}

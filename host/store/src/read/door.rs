//! The one read before a message is accepted: an open session, its agent, and the sender's role.
//!
//! Reading the rows of both in full costs several times as much: the agent's is a JSON document,
//! and the session's counts the inputs that wait.

use super::{ReadError, SessionRow};
use crate::sql::{named, row, select};
use crate::store::Store;
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::id::{AgentId, SessionId};
use domain::path::PathKind;
use domain::queue::QueueOverride;
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;

/// The parts of a session that the acceptance of a message depends on.
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

/// An open session of an active agent, with the facts that decide whether a user may post to it.
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
    /// Returns an open session of an active agent that the user has a role with. None in every
    /// other case; the rows themselves then show the reason.
    pub async fn door(
        &self,
        user: &UserId,
        agent: AgentId,
        session: SessionId,
    ) -> Result<Option<Door>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text = select!(
                DoorRow,
                "WHERE s.id = :session AND s.agent = :agent AND a.user_id = :user AND s.status = \
                 'open' AND s.purged = 0 AND g.active = 1 AND g.purged = 0 AND g.kind IS NOT NULL"
            );
            let found: Option<DoorRow> = sql.one(text, named![session, agent, user])?;
            Ok(found.map(|row| Door {
                addressee: Addressee {
                    session,
                    agent,
                    session_type: row.session_type,
                    queue: row.queue,
                },
                user_id: row.user_id,
                role: row.role,
                path: row.path,
                kind: row.kind,
                definition: row.definition,
            }))
        })
        .await
    }
}

row! {
    struct DoorRow
        from
            "sessions s CROSS JOIN access a ON a.agent = s.agent CROSS JOIN agents g ON g.id = \
             s.agent"
    {
        session_type: String = "s.session_type",
        queue: QueueOverride as json_or_default = "s.queue",
        user_id: UserId = "s.user_id",
        role: AgentRole = "a.role",
        path: String = "g.path",
        kind: PathKind = "g.kind",
        definition: DefinitionId = "g.definition",
    }
}

row! {
    /// Request that landed under a key.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RememberedRequest from "idempotency" {
        /// The digest of the request.
        pub request: Digest,
        /// The reply to a repetition of the same request.
        pub reply: Vec<u8>,
    }
}

impl Store {
    /// Returns the request that landed under a key within the last seven days, or longer
    /// ([`Store::keep_keys_longer`]). Only a commit establishes that no request has the key: see
    /// [`crate::Key`].
    pub async fn remembered_request(
        &self,
        source: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<RememberedRequest>, ReadError> {
        let source = source.to_owned();
        let key = key.to_owned();
        let oldest = self.keys_since(now);
        self.point_read(move |sql| {
            let text = select!(
                RememberedRequest,
                "WHERE source = :source AND key = :key AND time >= :time"
            );
            sql.one(text, named![source, key, time = oldest])
        })
        .await
    }
}

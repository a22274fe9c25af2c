//! The place of a session below the followed one, on a stream that shows more than one session.

use domain::id::{OperationId, SessionId};
use serde::Serialize;
use store::SpawnedSession;

/// A session that the followed one began, at some depth, by handing work to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct Spawned {
    /// The path of its agent, such as `/local/agent/assistant/sub/0`.
    pub(crate) agent_path: String,
    /// The session that began it.
    pub(crate) by_session_id: SessionId,
    /// Depth below the followed session: 1 for sessions that it began itself.
    pub(crate) depth: u64,
    /// The task for which it was begun, as `GET /api/tasks/{task_id}` shows it. Left out where
    /// the run that handed it over was purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<OperationId>,
}

/// Returns the fields by which streams describe a session, besides its id.
pub(crate) fn spawned(session: &SpawnedSession) -> Spawned {
    Spawned {
        agent_path: session.path.clone(),
        by_session_id: session.by,
        depth: session.depth,
        task_id: session.task,
    }
}

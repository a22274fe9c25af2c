//! Guards that several commands and the driver put into their commits.

use domain::file::{SESSION_FILES_BYTES_MAX, SESSION_FILES_MAX};
use domain::id::{AgentId, SessionId};
use domain::role::Right;
use domain::user::UserId;
use store::{AgentGuard, Guard, SessionGuard};

/// Returns the guard that a user may still interact with an agent when the commit lands.
pub(crate) fn allowed(agent: AgentId, user: &UserId) -> Guard {
    has_right(agent, user, Right::Interact)
}

/// Returns the guard that a user has a right on an agent.
pub(crate) fn has_right(agent: AgentId, user: &UserId, right: Right) -> Guard {
    Guard::Agent(AgentGuard::Role {
        agent,
        user: user.clone(),
        right,
    })
}

/// Returns the guard that a session has room for this number of further files with this total of
/// bytes.
pub(crate) fn room_for(session: SessionId, files: u64, bytes: u64) -> Guard {
    Guard::Session(SessionGuard::FilesAtMost {
        session,
        files: SESSION_FILES_MAX.saturating_sub(files),
        bytes: SESSION_FILES_BYTES_MAX.saturating_sub(bytes),
    })
}

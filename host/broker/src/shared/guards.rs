//! Guards that several commands and the driver put into their commits, and the limits of one user.

use crate::core::Core;
use crate::journal::Context;
use domain::error_code::ErrorCode;
use domain::event::Event;
use domain::file::{SESSION_FILES_BYTES_MAX, SESSION_FILES_MAX};
use domain::id::{AgentId, SessionId, Stream};
use domain::refusal::Refusal;
use domain::role::Right;
use domain::time::Timestamp;
use domain::user::UserId;
use store::{
    AgentGuard, Clash, Commit, Expected, Guard, KeyGuard, SessionGuard, SessionRow, UserGuard,
};

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

/// Returns the commit of events of a session, if a user may still interact with its agent when it
/// lands.
pub(crate) fn in_session(
    row: &SessionRow,
    user: &UserId,
    now: Timestamp,
    events: impl IntoIterator<Item = Event>,
) -> Commit {
    let context = Context::by(user, now).about(row.agent, Some(row.id), None);
    Commit::new().guard(allowed(row.agent, user)).append(
        Stream::Session(row.id),
        Expected::Any,
        context.events(events),
    )
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

/// Returns the guards under which a user may have more stored, with the API key of this task if it
/// has one; none for the operator without an API key.
pub(crate) fn may_store(core: &Core, user: &UserId) -> impl Iterator<Item = Guard> + use<> {
    let limits = core.limits().users;
    let of_user = (*user != UserId::local()).then(|| {
        Guard::User(UserGuard::StoredBelow {
            user: user.clone(),
            bytes: limits.stored_bytes_max,
        })
    });
    let of_key = store::api_key_here().map(|key| {
        Guard::Key(KeyGuard::StoredBelow {
            key,
            bytes: limits.key_stored_bytes_max,
        })
    });
    of_user.into_iter().chain(of_key)
}

/// Returns the refusal for a commit that would have exceeded a limit of a user's or a key's; none
/// for any other conflict.
pub(crate) fn passed_limit(clash: &Clash) -> Option<Refusal> {
    match clash {
        Clash::Guard(Guard::User(UserGuard::StoredBelow { bytes, .. })) => {
            let message = format!(
                "this host stores at most {bytes} bytes for one user (limits.userStoredBytesMax), \
                 and has as much of yours; have something purged"
            );
            Some(Refusal::new(ErrorCode::UserStorageLimit, message))
        }
        Clash::Guard(Guard::Key(KeyGuard::StoredBelow { key, bytes })) => {
            let message = format!(
                "this host stores at most {bytes} bytes that came with one API key \
                 (limits.keyStoredBytesMax), and has as many from `{key}`; delete sessions and \
                 have the operator purge them, or ask for a higher limit"
            );
            Some(Refusal::new(ErrorCode::KeyStorageLimit, message))
        }
        Clash::Guard(Guard::User(UserGuard::SessionsOpenedBelow { max, .. })) => {
            let message = format!(
                "one user opens at most {max} sessions in a minute \
                 (limits.userSessionsPerMinuteMax); go on in one that is open, or try again later"
            );
            Some(Refusal::new(ErrorCode::UserSessionLimit, message))
        }
        _ => None,
    }
}

//! Limits on one user's share of the host: sessions opened in a minute, bytes stored, and bytes
//! stored with one of their API keys.
//!
//! All are guards of the commit that would exceed them. So they hold for all of a user's commands,
//! after a restart, and for several hosts on one store. The operator has no limits of a user, but
//! each of their API keys has that of a key; a request without an API key has none. Sessions that
//! agents open, and the import of old sessions, have no such guard.

use super::Access;
use crate::core::Core;
use domain::error_code::ErrorCode;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::user::UserId;
use store::{Clash, Guard, KeyGuard, UserGuard};

/// The period in which sessions are counted, in milliseconds.
const MINUTE_MS: u64 = 60_000;

impl Access<'_> {
    /// Returns the guards under which a user may have more stored; none for the operator without an
    /// API key.
    pub(super) fn may_store(&self, user: &UserId) -> impl Iterator<Item = Guard> + use<> {
        may_store(&self.core, user)
    }

    /// Returns the guards under which a user may open one more session; none for the operator
    /// without an API key.
    pub(super) fn may_open(
        &self,
        user: &UserId,
        now: Timestamp,
    ) -> impl Iterator<Item = Guard> + use<> {
        let max = self.core.limits().users.sessions_per_minute_max;
        let after = Timestamp(now.0.saturating_sub(MINUTE_MS));
        let rate = (*user != UserId::local()).then(|| {
            Guard::User(UserGuard::SessionsOpenedBelow {
                user: user.clone(),
                after,
                // Another command may have read the clock later and committed earlier.
                until: now.plus_ms(MINUTE_MS),
                max,
            })
        });
        rate.into_iter().chain(self.may_store(user))
    }
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

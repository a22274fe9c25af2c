//! Limits on one user's share of the host: sessions opened in a minute, and bytes stored.
//!
//! Both are guards of the commit that would pass them. So they hold for all of a user's commands,
//! after a restart, and for several hosts on one store. The operator has no limits. Sessions that
//! agents open, and the import of old sessions, have no such guard.

use super::Broker;
use crate::core::Core;
use domain::refusal::{Refusal, RefusalKind};
use domain::time::Timestamp;
use domain::user::UserId;
use store::{Clash, Guard, UserGuard};

/// The period in which sessions are counted, in milliseconds.
const MINUTE_MS: u64 = 60_000;

impl Broker {
    /// Returns the guard under which a user may have more stored; none for the operator.
    pub(super) fn may_store(&self, user: &UserId) -> Option<Guard> {
        may_store(&self.core, user)
    }

    /// Returns the guards under which a user may open one more session; none for the operator.
    pub(super) fn may_open(
        &self,
        user: &UserId,
        now: Timestamp,
    ) -> impl Iterator<Item = Guard> + use<> {
        let max = self.core.limits.users.sessions_per_minute_max;
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

/// Returns the guard under which a user may have more stored; none for the operator.
pub(crate) fn may_store(core: &Core, user: &UserId) -> Option<Guard> {
    let bytes = core.limits.users.stored_bytes_max;
    (*user != UserId::local()).then(|| {
        Guard::User(UserGuard::StoredBelow {
            user: user.clone(),
            bytes,
        })
    })
}

/// Returns the refusal for a commit that would have passed a user's limit; none for any other
/// conflict.
pub(crate) fn passed_limit(clash: &Clash) -> Option<Refusal> {
    match clash {
        Clash::Guard(Guard::User(UserGuard::StoredBelow { bytes, .. })) => {
            let message = format!(
                "this host stores at most {bytes} bytes for one user, and has as much of \
                         yours; have something purged"
            );
            Some(Refusal::new(
                RefusalKind::Busy,
                "USER_STORAGE_LIMIT",
                message,
            ))
        }
        Clash::Guard(Guard::User(UserGuard::SessionsOpenedBelow { max, .. })) => {
            let message = format!(
                "one user opens at most {max} sessions in a minute; go on in one that is \
                         open, or try again later"
            );
            Some(Refusal::new(
                RefusalKind::Busy,
                "USER_SESSION_LIMIT",
                message,
            ))
        }
        _ => None,
    }
}

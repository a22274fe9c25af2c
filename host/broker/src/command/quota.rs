//! Limits on one user's share of the host: sessions opened in a minute, bytes stored, and bytes
//! stored with one of their API keys.
//!
//! All are guards of the commit that would exceed them. So they hold for all of a user's commands,
//! after a restart, and for several hosts on one store. The operator has no limits of a user, but
//! each of their API keys has that of a key; a request without an API key has none. Sessions that
//! agents open, and the import of old sessions, have no such guard.

use super::Access;
use crate::shared::guards::may_store;
use domain::time::Timestamp;
use domain::user::UserId;
use store::{Guard, UserGuard};

/// The period in which sessions are counted, in milliseconds.
const MINUTE_MS: u64 = 60_000;

impl Access<'_> {
    /// Returns the guards under which a user may have more stored; none for the operator without an
    /// API key.
    pub(super) fn may_store(&self, user: &UserId) -> impl Iterator<Item = Guard> + use<> {
        may_store(self.core, user)
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

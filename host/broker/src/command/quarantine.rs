//! Commands on quarantined sessions: list them, release one.

use super::{Broker, Error};
use crate::core::Core;
use crate::quarantine::Quarantined;
use crate::refusals::{not_quarantined, session_quarantined};
use domain::id::SessionId;

impl Broker {
    /// Returns the quarantined sessions, in the order in which they were put there.
    #[must_use]
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.core.quarantine.list()
    }

    /// Releases a session from quarantine and wakes it. A session that still cannot go on is put
    /// there again.
    ///
    /// # Errors
    /// The session is not in quarantine.
    pub fn release(&self, session: SessionId) -> Result<(), Error> {
        if !self.core.quarantine.release(session) {
            return Err(not_quarantined(session).into());
        }
        tracing::info!(session.id = %session, "a session was released from quarantine");
        self.core.wake(session);
        Ok(())
    }
}

/// Refuses a command that only a session's driver could do, if the session is in quarantine.
pub(super) fn driven(core: &Core, session: SessionId) -> Result<(), Error> {
    match core.quarantine.get(session) {
        None => Ok(()),
        Some(quarantined) => Err(session_quarantined(session, &quarantined.reason).into()),
    }
}

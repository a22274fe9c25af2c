//! Looking at the sessions that are left alone, and having the host try again.

use super::{Broker, Error};
use crate::core::Core;
use crate::quarantine::Quarantined;
use crate::refusals::{not_quarantined, session_quarantined};
use domain::id::SessionId;

impl Broker {
    /// The sessions that are left alone, by when they were put there.
    #[must_use]
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.core.quarantine.list()
    }

    /// Takes a session out of quarantine: it is gone on with at once. What cannot be gone on with is put there again.
    ///
    /// # Errors
    /// It is not there.
    pub fn release(&self, session: SessionId) -> Result<(), Error> {
        if !self.core.quarantine.release(session) {
            return Err(not_quarantined(session).into());
        }
        tracing::info!(session.id = %session, "a session was released from quarantine");
        self.core.wake(session);
        Ok(())
    }
}

/// Refuses what only a session's driver could do, of a session that gets none.
pub(super) fn driven(core: &Core, session: SessionId) -> Result<(), Error> {
    match core.quarantine.get(session) {
        None => Ok(()),
        Some(quarantined) => Err(session_quarantined(session, &quarantined.reason).into()),
    }
}

//! Commands on quarantined sessions. How one is released: `recovery.rs`.

use super::{Error, Quarantines};
use crate::core::Core;
use crate::quarantine::Quarantined;
use crate::refusals::session_quarantined;
use domain::id::SessionId;

impl Quarantines<'_> {
    /// Returns the quarantined sessions, in the order in which they were put there.
    #[must_use]
    pub fn list(&self) -> Vec<Quarantined> {
        self.core.quarantine.list()
    }
}

/// Refuses a command that only a session's driver could do, if the session is in quarantine.
pub(super) fn driven(core: &Core, session: SessionId) -> Result<(), Error> {
    match core.quarantine.get(session) {
        None => Ok(()),
        Some(quarantined) => Err(session_quarantined(session, &quarantined.reason).into()),
    }
}

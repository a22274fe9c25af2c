//! A structured session leaves the slot: completed, or terminated.

use super::Agent;
use super::suspend::no_session;
use crate::events::event::{Event, SlotCompleted, SlotTerminated};
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use serde_json::Value;

/// Default reason for the termination of a session.
pub const TERMINATE_REASON: &str = "User terminated";
/// Reason for the termination of an expired session.
pub const EXPIRED: &str = "expired";

impl Agent {
    /// Completes the session.
    ///
    /// # Errors
    /// No session is active.
    pub fn complete_session(&self, summary: Value, now: Timestamp) -> Result<Event, Refusal> {
        let Some(session) = &self.active_session else {
            return Err(no_session("Cannot complete: no active session"));
        };
        Ok(Event::SlotCompleted(SlotCompleted {
            agent: self.id,
            session_id: session.session_id,
            summary,
            completed_at: now,
        }))
    }

    /// Terminates the session.
    ///
    /// # Errors
    /// No session is active.
    pub fn terminate_session(&self, reason: String, now: Timestamp) -> Result<Event, Refusal> {
        let Some(session) = &self.active_session else {
            return Err(no_session("Cannot terminate: no active session"));
        };
        Ok(Event::SlotTerminated(SlotTerminated {
            agent: self.id,
            session_id: session.session_id,
            reason,
            terminated_at: now,
        }))
    }
}

#[cfg(test)]
mod tests;

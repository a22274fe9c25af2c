//! A structured session takes the agent's slot.

use super::Agent;
use crate::access::user::UserId;
use crate::events::event::{Event, SlotTaken};
use crate::values::error_code::ErrorCode;
use crate::values::id::{ConversationId, SessionId};
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;

/// A structured session that begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The session.
    pub session_id: SessionId,
    /// The conversation that it is a part of, which exists before it.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// The user who begins it.
    pub started_by: UserId,
    /// Milliseconds until it expires.
    pub time_limit_ms: Option<u64>,
    /// Items on its record from another system.
    pub items_imported: u32,
}

impl Agent {
    /// Starts a structured session.
    ///
    /// # Errors
    /// The agent is archived, or another structured session is active.
    pub fn start_session(&self, beginning: Beginning, now: Timestamp) -> Result<Event, Refusal> {
        self.is_active()?;
        if self.active_session.is_some() {
            let message = format!(
                "Agent {} already has an active session. Complete or terminate the current session \
                 first.",
                self.id
            );
            return Err(Refusal::new(ErrorCode::SessionAlreadyActive, message));
        }
        let Beginning {
            session_id,
            conversation_id,
            session_type,
            started_by,
            time_limit_ms,
            items_imported,
        } = beginning;
        Ok(Event::SlotTaken(SlotTaken {
            agent: self.id,
            session_id,
            conversation_id,
            session_type,
            started_by,
            started_at: now,
            expires_at: time_limit_ms.map(|ms| now.plus_ms(ms)),
            items_imported,
        }))
    }
}

#[cfg(test)]
mod tests;

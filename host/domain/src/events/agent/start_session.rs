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
mod tests {
    use super::super::tests::{T, agent, beginning, code_of, with_session};
    use super::*;
    use crate::agents::session::Phase;

    #[test]
    fn a_session_starts_active_and_is_counted() {
        let before = agent();
        let started = before.start_session(beginning(), Timestamp(7)).unwrap();
        let Beginning {
            session_id,
            conversation_id,
            session_type,
            started_by,
            ..
        } = beginning();
        let taken = SlotTaken {
            agent: before.id,
            session_id,
            conversation_id,
            session_type,
            started_by,
            started_at: Timestamp(7),
            expires_at: None,
            items_imported: 0,
        };
        assert_eq!(
            started,
            Event::SlotTaken(taken),
            "it names agent, session, conversation and type"
        );
        let after = before.after(&started);
        let session = after.active_session.as_ref().unwrap();
        assert_eq!(
            (&session.phase, session.started_at, session.interactions),
            (&Phase::Active, Timestamp(7), 0)
        );
        assert_eq!(
            (session.session_id, session.conversation_id),
            (beginning().session_id, beginning().conversation_id)
        );
        assert_eq!(
            (
                after.total_sessions,
                after.last_interaction_at,
                after.updated_at
            ),
            (1, Some(Timestamp(7)), Timestamp(7))
        );
    }

    #[test]
    fn a_second_session_is_refused_in_the_designs_words() {
        let agent = with_session();
        let refused = agent.start_session(beginning(), T).unwrap_err();
        assert_eq!(refused.code.as_str(), "SESSION_ALREADY_ACTIVE");
        let id = agent.id;
        assert_eq!(
            refused.message,
            format!(
                "Agent {id} already has an active session. Complete or terminate the current \
                 session first."
            )
        );
    }

    #[test]
    fn an_archived_agent_starts_no_session() {
        let agent = agent();
        let archived = agent.then(agent.archive("x".into(), T));
        assert_eq!(
            code_of(archived.start_session(beginning(), T)),
            "AGENT_ARCHIVED"
        );
    }

    #[test]
    fn a_time_limit_becomes_the_time_of_expiry() {
        let agent = agent();
        let limited = Beginning {
            time_limit_ms: Some(100),
            ..beginning()
        };
        let after = agent.then(agent.start_session(limited, Timestamp(7)));
        assert_eq!(
            after.active_session.unwrap().expires_at,
            Some(Timestamp(107))
        );
    }
}

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
mod tests {
    use super::super::tests::{T, agent, beginning, execution, question, with_session};
    use super::*;
    use crate::agents::session::{EndStatus, HISTORY_MAX, SUMMARY_BYTES_MAX};
    use serde_json::json;

    #[test]
    fn a_completed_session_is_counted_and_goes_to_the_front_of_the_history() {
        let agent = with_session();
        let after = agent.then(agent.complete_session(json!({ "score": 3 }), Timestamp(8)));
        assert_eq!(
            (after.active_session.as_ref(), after.successful_completions),
            (None, 1)
        );
        let past = after.session_history.first().unwrap();
        assert_eq!(
            (past.status, past.completed_at, &past.summary),
            (
                EndStatus::Completed,
                Timestamp(8),
                &Some(json!({ "score": 3 }))
            )
        );
    }

    #[test]
    fn a_terminated_session_is_kept_with_its_reason_and_is_no_success() {
        let agent = with_session();
        let agent = agent.then(agent.suspend_execution(execution(), question(1), T));
        let after = agent.then(agent.terminate_session(TERMINATE_REASON.into(), Timestamp(8)));
        assert_eq!(
            (
                after.active_session.as_ref(),
                after.successful_completions,
                after.is_suspended()
            ),
            (None, 0, false)
        );
        let past = after.session_history.first().unwrap();
        assert_eq!(
            (past.status, past.terminated_reason.as_deref()),
            (EndStatus::Terminated, Some("User terminated"))
        );
    }

    #[test]
    fn the_history_keeps_the_last_ten() {
        let mut agent = agent();
        for n in 0..15_u64 {
            agent = agent.then(agent.start_session(beginning(), Timestamp(n)));
            agent = agent.then(agent.complete_session(json!({ "n": n }), Timestamp(n)));
        }
        assert_eq!(agent.session_history.len(), HISTORY_MAX);
        assert_eq!(agent.session_history[0].summary, Some(json!({ "n": 14 })));
        assert_eq!(agent.session_history[9].summary, Some(json!({ "n": 5 })));
        assert_eq!(
            (agent.total_sessions, agent.successful_completions),
            (15, 15)
        );
    }

    #[test]
    fn a_summary_too_long_for_the_history_is_left_out_of_it() {
        let agent = with_session();
        let after = agent.then(agent.complete_session(json!("x".repeat(SUMMARY_BYTES_MAX)), T));
        assert_eq!(after.session_history[0].summary, None);
    }

    #[test]
    fn without_a_session_nothing_ends() {
        assert_eq!(
            agent().complete_session(json!({}), T).unwrap_err().message,
            "Cannot complete: no active session"
        );
        assert_eq!(
            agent()
                .terminate_session("x".into(), T)
                .unwrap_err()
                .message,
            "Cannot terminate: no active session"
        );
    }
}

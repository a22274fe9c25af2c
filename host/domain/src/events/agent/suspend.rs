//! The agent asks its client a question: the session waits, and the agent's point of continuation
//! is stored.

use super::Agent;
use crate::agents::session::{Execution, PendingAction, Phase};
use crate::events::event::{ActionRequested, Event, ExecutionSuspended};
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;

impl Agent {
    /// Returns whether its session waits for the client.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.active_session
            .as_ref()
            .is_some_and(|session| matches!(session.phase, Phase::AwaitingClientAction { .. }))
    }

    /// Suspends the execution.
    ///
    /// # Errors
    /// No structured session is active.
    pub fn suspend_execution(
        &self,
        execution: Execution,
        action: PendingAction,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        let Some(session) = &self.active_session else {
            return Err(no_session("Cannot suspend: no active session"));
        };
        Ok(Event::ExecutionSuspended(Box::new(ExecutionSuspended {
            agent: self.id,
            session_id: session.session_id,
            execution_state: execution,
            pending_action: action,
            suspended_at: now,
        })))
    }

    /// Asks a further question while the session waits already. There is an execution state, from
    /// which it continues after the answer.
    ///
    /// # Errors
    /// No structured session is active, or it does not wait: then suspending asks the question.
    pub fn request_client_action(
        &self,
        action: PendingAction,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        let Some(session) = &self.active_session else {
            return Err(no_session("Cannot request action: no active session"));
        };
        if !self.is_suspended() {
            return Err(Refusal::new(
                ErrorCode::NotSuspended,
                "Cannot request action: no execution state",
            ));
        }
        let event = ActionRequested {
            agent: self.id,
            session_id: session.session_id,
            action,
            requested_at: now,
        };
        Ok(Event::ActionRequested(Box::new(event)))
    }
}

pub(super) fn no_session(message: &str) -> Refusal {
    Refusal::new(ErrorCode::NoActiveSession, message)
}

#[cfg(test)]
mod tests;

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
mod tests {
    use super::super::tests::{T, agent, execution, question, with_session};
    use super::*;

    #[test]
    fn a_suspended_session_waits_with_its_question_and_where_to_go_on() {
        let agent = with_session();
        let after = agent.then(agent.suspend_execution(execution(), question(1), Timestamp(5_000)));
        assert!(after.is_suspended() && !agent.is_suspended());
        let Phase::AwaitingClientAction {
            pending,
            further,
            execution: kept,
        } = after.active_session.unwrap().phase
        else {
            panic!()
        };
        assert_eq!(
            (*pending, further, kept),
            (question(1), vec![], execution())
        );
        assert_eq!(
            (after.updated_at, after.total_interactions),
            (Timestamp(5_000), 0)
        );
    }

    #[test]
    fn further_questions_wait_behind_the_first() {
        let agent = with_session();
        assert_eq!(
            agent
                .request_client_action(question(2), T)
                .unwrap_err()
                .message,
            "Cannot request action: no execution state"
        );
        let agent = agent.then(agent.suspend_execution(execution(), question(1), T));
        let agent = agent.then(agent.request_client_action(question(2), T));
        let session = agent.active_session.unwrap();
        assert_eq!(
            session.phase.pending().cloned().collect::<Vec<_>>(),
            [question(1), question(2)]
        );
    }

    #[test]
    fn without_a_session_nothing_is_asked() {
        let refused = agent()
            .suspend_execution(execution(), question(1), T)
            .unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            ("NO_ACTIVE_SESSION", "Cannot suspend: no active session")
        );
        let refused = agent().request_client_action(question(1), T).unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            (
                "NO_ACTIVE_SESSION",
                "Cannot request action: no active session"
            )
        );
    }

    #[test]
    fn an_execution_reads_as_it_was_written() {
        let text = serde_json::to_string(&execution()).unwrap();
        assert_eq!(
            serde_json::from_str::<Execution>(&text).unwrap(),
            execution()
        );
    }
}

//! The client's answers, and withdrawals of questions.

use super::Agent;
use super::suspend::no_session;
use crate::agents::session::{Phase, Withdrawal};
use crate::events::event::{ActionWithdrawn, Event, ExecutionResumed, ResponseReceived};
use crate::values::error_code::ErrorCode;
use crate::values::id::OperationId;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use crate::work::operation::Kept;

impl Agent {
    /// Takes the answer to the only open question, and continues.
    ///
    /// # Errors
    /// No question is open, or a different one is.
    pub fn resume_execution(
        &self,
        tool_call_id: OperationId,
        response: Kept,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        let Some(session) = self.active_session.as_ref().filter(|_| self.is_suspended()) else {
            return Err(Refusal::new(
                ErrorCode::NotSuspended,
                "Cannot resume: agent is not suspended",
            ));
        };
        matches(&session.phase, tool_call_id)?;
        Ok(Event::ExecutionResumed(ExecutionResumed {
            agent: self.id,
            session_id: session.session_id,
            tool_call_id,
            response_data: response,
            resumed_at: now,
        }))
    }

    /// Takes the answer to one of several open questions; the others stay open.
    ///
    /// # Errors
    /// No structured session is active, no question is open, or a different one is.
    pub fn receive_client_response(
        &self,
        tool_call_id: OperationId,
        response: Kept,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        let Some(session) = &self.active_session else {
            return Err(no_session("Cannot receive response: no active session"));
        };
        if !self.is_suspended() {
            return Err(Refusal::new(
                ErrorCode::NotSuspended,
                "Cannot receive response: no pending action",
            ));
        }
        matches(&session.phase, tool_call_id)?;
        Ok(Event::ResponseReceived(ResponseReceived {
            agent: self.id,
            session_id: session.session_id,
            tool_call_id,
            response_data: response,
            received_at: now,
        }))
    }

    /// Takes an answer, by whichever of the two methods applies. One answer is one event and one
    /// interaction.
    ///
    /// # Errors
    /// As for the two.
    pub fn answered(
        &self,
        tool_call_id: OperationId,
        response: Kept,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        let waiting = self
            .active_session
            .as_ref()
            .map_or(0, |session| session.phase.pending().count());
        if waiting > 1 {
            self.receive_client_response(tool_call_id, response, now)
        } else {
            self.resume_execution(tool_call_id, response, now)
        }
    }

    /// Withdraws a question. No event if it is not open.
    #[must_use]
    pub fn withdraw_action(
        &self,
        tool_call_id: OperationId,
        reason: Withdrawal,
        now: Timestamp,
    ) -> Option<Event> {
        let session = self.active_session.as_ref()?;
        session
            .phase
            .pending()
            .find(|action| action.tool_call_id == tool_call_id)?;
        Some(Event::ActionWithdrawn(ActionWithdrawn {
            agent: self.id,
            session_id: session.session_id,
            tool_call_id,
            reason,
            still_waiting: session.phase.pending().count() > 1,
            withdrawn_at: now,
        }))
    }
}

fn matches(phase: &Phase, given: OperationId) -> Result<(), Refusal> {
    if phase.pending().any(|action| action.tool_call_id == given) {
        return Ok(());
    }
    let pending = phase
        .pending()
        .next()
        .map(|action| action.tool_call_id.to_string())
        .unwrap_or_default();
    let message = format!("Response tool_call_id {given} doesn't match pending {pending}");
    Err(Refusal::new(ErrorCode::InvalidToolCallId, message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, call, execution, question, with_session};
    use super::*;
    use serde_json::json;

    fn value() -> Kept {
        Kept::Value(json!({ "index": 1 }))
    }

    fn waiting() -> Agent {
        let agent = with_session();
        agent.then(agent.suspend_execution(execution(), question(1), T))
    }

    #[test]
    fn the_answer_to_the_only_question_resumes_and_counts_once() {
        let agent = waiting();
        let event = agent.answered(call(1), value(), Timestamp(9)).unwrap();
        assert!(matches!(event, Event::ExecutionResumed(_)));
        let after = agent.after(&event);
        assert!(!after.is_suspended());
        assert_eq!(
            (after.total_interactions, after.last_interaction_at),
            (1, Some(Timestamp(9)))
        );
        assert_eq!(after.active_session.as_ref().unwrap().interactions, 1);
        let again = after.answered(call(1), value(), T).unwrap_err();
        assert_eq!(
            (again.code.as_str(), again.message.as_str()),
            ("NOT_SUSPENDED", "Cannot resume: agent is not suspended")
        );
    }

    #[test]
    fn the_answer_to_one_of_several_leaves_the_others_waiting() {
        let agent = waiting();
        let agent = agent.then(agent.request_client_action(question(2), T));
        let event = agent.answered(call(1), value(), T).unwrap();
        assert!(matches!(event, Event::ResponseReceived(_)));
        let after = agent.after(&event);
        assert_eq!(
            after
                .active_session
                .as_ref()
                .unwrap()
                .phase
                .pending()
                .count(),
            1
        );
        let done = after.then(after.answered(call(2), value(), T));
        assert_eq!((done.is_suspended(), done.total_interactions), (false, 2));
    }

    #[test]
    fn an_answer_to_something_else_is_refused_in_the_designs_words() {
        for refused in [
            waiting().resume_execution(call(7), value(), T),
            waiting().receive_client_response(call(7), value(), T),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code.as_str(), "INVALID_TOOL_CALL_ID");
            assert_eq!(
                refused.message,
                format!(
                    "Response tool_call_id {} doesn't match pending {}",
                    call(7),
                    call(1)
                )
            );
        }
    }

    #[test]
    fn an_answer_to_nothing_is_refused_in_the_designs_words() {
        let refused = agent()
            .receive_client_response(call(1), value(), T)
            .unwrap_err();
        assert_eq!(
            refused.message,
            "Cannot receive response: no active session"
        );
        let refused = with_session()
            .receive_client_response(call(1), value(), T)
            .unwrap_err();
        assert_eq!(
            refused.message,
            "Cannot receive response: no pending action"
        );
        assert_eq!(
            agent()
                .resume_execution(call(1), value(), T)
                .unwrap_err()
                .message,
            "Cannot resume: agent is not suspended"
        );
    }

    #[test]
    fn a_withdrawn_question_is_no_interaction() {
        let agent = waiting();
        let after = agent.then(agent.withdraw_action(call(1), Withdrawal::TimedOut, T));
        assert_eq!((after.is_suspended(), after.total_interactions), (false, 0));
        assert_eq!(
            after.withdraw_action(call(1), Withdrawal::Cancelled, T),
            None
        );
    }
}

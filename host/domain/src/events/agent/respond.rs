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
mod tests;

//! The events that a run of a structured session adds to its agent's stream. They record questions
//! that began to wait, and questions that were withdrawn.
//!
//! The run's stream is the full record; these events are the part of it in the agent's own stream.
//! Both are in one commit.

use super::Agent;
use crate::agents::session::{Execution, PendingAction, Withdrawal};
use crate::events::event::Event;
use crate::events::run::settle::question;
use crate::events::run::{Open, Run};
use crate::values::id::OperationId;
use crate::values::time::Timestamp;

impl Agent {
    /// The open questions of its active session, if the run is one of that session.
    pub(crate) fn pending_calls(&self, run: &Run) -> Option<Vec<OperationId>> {
        let session = self.active_session.as_ref()?;
        let calls = || session.phase.pending().map(|action| action.tool_call_id);
        (session.session_id == run.started.session).then(|| calls().collect())
    }

    /// The agent without questions that no longer wait, and the events of their withdrawal;
    /// `timed_out` are the expired ones.
    pub(crate) fn without<'a>(
        &self,
        gone: impl Iterator<Item = &'a OperationId>,
        timed_out: &[OperationId],
        now: Timestamp,
    ) -> (Self, Vec<Event>) {
        let mut agent = self.clone();
        let mut events = Vec::new();
        for call in gone {
            let reason = if timed_out.contains(call) {
                Withdrawal::TimedOut
            } else {
                Withdrawal::Cancelled
            };
            let Some(event) = agent.withdraw_action(*call, reason, now) else {
                continue;
            };
            agent = agent.after(&event);
            events.push(event);
        }
        (agent, events)
    }
}

/// The open questions of a run, in the order in which they were asked.
#[must_use]
pub fn questions(run: &Run) -> Vec<PendingAction> {
    let mut asking: Vec<&Open> = run
        .open
        .values()
        .filter(|open| question(open).is_some())
        .collect();
    asking.sort_by_key(|open| (open.operation.step, open.operation.place));
    asking.into_iter().filter_map(pending).collect()
}

fn pending(open: &Open) -> Option<PendingAction> {
    let action = question(open)?;
    Some(open.operation.asking(open.question(), action))
}

/// Returns the point from which a run continues.
#[must_use]
pub fn execution(run: &Run, now: Timestamp) -> Execution {
    Execution {
        run: run.started.run,
        iteration: run.step,
        tool_calls_made: run.spending.tool_calls,
        head: run.head(),
        started_at: run.started.time,
        suspended_at: now,
    }
}

/// Returns the events for the agent's stream after a run of its active session has become `run`.
/// Questions that no longer wait are withdrawn, and new ones are asked; `timed_out` are the expired
/// ones. An answer is taken with [`Agent::answered`] before this. For a session that is not the
/// active one there are no events.
#[must_use]
pub fn milestones(
    agent: &Agent,
    run: &Run,
    timed_out: &[OperationId],
    now: Timestamp,
) -> Vec<Event> {
    let Some(known) = agent.pending_calls(run) else {
        return Vec::new();
    };
    let asked = questions(run);
    let gone = known
        .iter()
        .filter(|call| !asked.iter().any(|now| now.tool_call_id == **call));
    let (mut agent, mut events) = agent.without(gone, timed_out, now);
    for action in asked
        .into_iter()
        .filter(|action| !known.contains(&action.tool_call_id))
    {
        let event = if agent.is_suspended() {
            agent.request_client_action(action, now)
        } else {
            agent.suspend_execution(execution(run, now), action, now)
        };
        // The session is active, so neither is refused.
        let Ok(event) = event else { continue };
        agent = agent.after(&event);
        events.push(event);
    }
    events
}

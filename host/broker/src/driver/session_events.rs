//! Events of the agent's own stream about a run of its active session.
//!
//! They report questions, answers, and the end of the session's time.

use super::state::Driver;
use crate::journal::Context;
use crate::shared::DriverError;
use domain::agent::Agent;
use domain::agent::end_session::EXPIRED;
use domain::agent::milestones::milestones;
use domain::event::Event;
use domain::id::{OperationId, Stream};
use domain::operation::{Kept, Settlement};
use domain::refusal::Refusal;
use domain::run::Run;
use domain::step::OperationOutcome;
use domain::time::Timestamp;
use store::{Clash, Commit, CommitError, Expected, Guard, SessionGuard};

/// A client's answer to one of a run's questions, with the question's id.
pub(super) type Answered = (OperationId, Kept);

/// A run before and after an event of its stream.
#[derive(Clone, Copy)]
pub(super) struct RunChange<'a> {
    pub(super) before: &'a Run,
    pub(super) after: &'a Run,
}

/// Returns the events of the agent's stream that go with an event of the run's.
///
/// There are none unless an agent holds the slot for the run.
///
/// # Errors
/// The answer is not to the question that waits.
pub(super) fn session_events(
    holder: Option<&Agent>,
    change: RunChange<'_>,
    event: &Event,
    answered: Option<Answered>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let Some(agent) = holder else {
        return Ok(Vec::new());
    };
    let answered = answered
        .map(|(call, kept)| agent.answered(call, kept, now))
        .transpose()?;
    let after = answered
        .iter()
        .fold(agent.clone(), |agent, event| agent.after(event));
    let mut events: Vec<Event> = answered.into_iter().collect();
    let timed_out = timed_out(change.before, event);
    events.extend(milestones(&after, change.after, &timed_out, now));
    Ok(events)
}

/// Returns the questions that, by an event, were not answered in time.
pub(super) fn timed_out(before: &Run, event: &Event) -> Vec<OperationId> {
    let settled: &[Settlement] = match event {
        Event::RunStepped(stepped) => &stepped.settled,
        Event::RunSettled(settled) => &settled.settled,
        _ => &[],
    };
    let late = settled
        .iter()
        .filter(|settlement| settlement.outcome == OperationOutcome::TimedOut);
    late.filter_map(|settlement| Some(before.open.get(&settlement.operation)?.question()))
        .collect()
}

impl Driver {
    /// Terminates the session if its time is up and it has no open run. Returns whether it did.
    pub(super) async fn expire_idle(&mut self) -> Result<bool, DriverError> {
        let now = self.context.core.now();
        let Some(session) = self
            .phase
            .idle()
            .filter(|session| session.expires_at.is_some_and(|expires| expires <= now))
        else {
            return Ok(false);
        };
        let id = session.id;
        let agent = session.agent;
        let Some(row) = self.context.store().agent(agent).await? else {
            return Ok(false);
        };
        if row
            .agent
            .active_session
            .as_ref()
            .is_none_or(|active| active.session_id != id)
        {
            return Ok(false);
        }
        let event = row.agent.terminate_session(EXPIRED.to_owned(), now)?;
        let context = Context::new("host", now).about(agent, Some(id), None);
        let commit = Commit::new()
            .guard(SessionGuard::NoOpenRun(id))
            .guard(SessionGuard::Open(id))
            .append(
                Stream::Agent(agent),
                Expected::Any,
                vec![context.event(event)],
            );
        match self.commit(commit).await {
            // Another ended it, or its agent was archived in between.
            Err(CommitError::Conflict(conflict))
                if conflict.clash == Clash::Guard(Guard::Session(SessionGuard::Open(id))) =>
            {
                Ok(false)
            }
            committed => Ok(committed.map(|_| true)?),
        }
    }
}

//! The making of triggers' events, and the commits that store them.

use super::Shared;
use crate::journal::{Context, trigger_event};
use broker::Error;
use domain::event::{
    Event, PauseReason, TriggerEventAccepted, TriggerPaused, TriggerTrouble, TriggerTroubled,
};
use domain::id::Stream;
use domain::time::Timestamp;
use domain::trigger::{PENDING_MAX, TriggerEvent, TriggerName};
use store::{Commit, CommitError, Expected, TriggerEventRow, TriggerEventState, TriggerGuard};

/// Returns a new trigger event that is not one of a schedule's.
pub(super) fn accepted(
    name: &TriggerName,
    what: TriggerEvent,
    time: Timestamp,
) -> TriggerEventAccepted {
    TriggerEventAccepted {
        name: name.clone(),
        trigger_event: trigger_event(),
        what: Box::new(what),
        run_by: None,
        next_due: None,
        scheduled: false,
        time,
    }
}

pub(super) fn paused(name: &TriggerName, reason: PauseReason, time: Timestamp) -> Event {
    Event::TriggerPaused(TriggerPaused {
        name: name.clone(),
        reason,
        time,
    })
}

pub(super) fn troubled(name: &TriggerName, trouble: TriggerTrouble, time: Timestamp) -> Event {
    Event::TriggerTroubled(TriggerTroubled {
        name: name.clone(),
        trouble,
        time,
    })
}

/// Adds events of a trigger to a commit.
pub(super) fn append(
    commit: Commit,
    name: &TriggerName,
    context: &Context,
    events: impl IntoIterator<Item = Event>,
) -> Commit {
    let stream = Stream::Trigger(name.id());
    commit.append(stream, Expected::Any, context.events(events))
}

/// Adds to a commit that a trigger event is accepted, if no more than allowed wait.
pub(super) fn accept(commit: Commit, context: &Context, accepted: TriggerEventAccepted) -> Commit {
    let trigger = accepted.name.clone();
    let commit = commit.guard(TriggerGuard::PendingAtMost {
        trigger: trigger.clone(),
        max: u64::from(PENDING_MAX - 1),
    });
    let accepted = Event::TriggerEventAccepted(accepted);
    append(commit, &trigger, context, [accepted])
}

/// Returns a commit that lands if a trigger without a schedule is there, enabled and not paused.
pub(super) fn if_active(trigger: &TriggerName) -> Commit {
    Commit::new().guard(TriggerGuard::NextDue {
        trigger: trigger.clone(),
        due: None,
    })
}

/// Stores what became of a trigger event that is in a state. Returns false if it is not: it was
/// processed, or given up, in between.
///
/// # Errors
/// The store does not take it.
pub(super) async fn settle(
    shared: &Shared,
    trigger_event: &TriggerEventRow,
    state: TriggerEventState,
    events: Vec<Event>,
    now: Timestamp,
) -> Result<bool, Error> {
    let name = &trigger_event.trigger;
    let commit = Commit::new().guard(TriggerGuard::TriggerEventIs {
        trigger: name.clone(),
        trigger_event: trigger_event.trigger_event,
        state,
    });
    let context = Context::new(format!("trigger:{name}"), now);
    let commit = append(commit, name, &context, events);
    match shared.core.store().commit(commit).await {
        Ok(_) => Ok(true),
        Err(CommitError::Conflict(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

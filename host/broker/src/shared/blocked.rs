//! Delegations that wait for room.

use super::error::DriverError;
use super::runs::load_caller;
use crate::core::Core;
use domain::dispatch::blocked::BlockedQueue;
use domain::event::Event;
use domain::id::{AgentId, InputId, RunId, Stream};
use domain::operation::Performer;
use domain::run::Run;
use domain::run::recover::is_its_turn;
use std::sync::Arc;

/// Returns a run that makes its calls one by one; none if it makes them side by side or was purged.
pub(crate) async fn one_by_one(core: &Core, run: RunId) -> Result<Option<Run>, DriverError> {
    let first = core.store.first_of(Stream::Run(run)).await?;
    match first.and_then(|recorded| recorded.event) {
        Some(Event::RunStarted(started)) if !core.serving.streams(&started) => {
            load_caller(&core.store, run).await
        }
        Some(_) | None => Ok(None),
    }
}

/// Returns whether the calls before the one that handed an input over have their outcomes.
pub(crate) fn has_its_turn(run: &Run, input: InputId) -> bool {
    let mut calls = run.open.values().map(|open| &open.operation);
    let call = calls.find(
        |call| matches!(&call.performer, Performer::Agent { input: its, .. } if *its == input),
    );
    call.is_none_or(|call| is_its_turn(run, call.id))
}

/// Returns the delegations that wait for room in the tree of an input's agent. Of a run that makes
/// its calls one by one only the next call counts: a later one would occupy the room while it waits
/// for the next.
pub(crate) async fn blocked_beside(
    core: &Core,
    input: InputId,
) -> Result<Option<(AgentId, BlockedQueue)>, DriverError> {
    let Some((tree, mut queue)) = core.store.blocked_beside(input).await? else {
        return Ok(None);
    };
    for run in queue.open_by_run.keys() {
        if let Some(caller) = one_by_one(core, *run).await? {
            queue
                .waiting
                .retain(|blocked| blocked.by_run != *run || has_its_turn(&caller, blocked.input));
        }
    }
    Ok(Some((tree, queue)))
}

/// Wakes the sessions whose delegations now have room, after the end of one that counted against
/// the same limits.
pub(crate) async fn wake_blocked(core: &Arc<Core>, ended: InputId) {
    match blocked_beside(core, ended).await {
        Ok(Some((_, queue))) => {
            let next = core.limits().dispatch.next_blocked(&queue);
            next.iter().for_each(|blocked| core.wake(blocked.session));
        }
        Ok(None) => {}
        // Waiting ones are checked again when another ends, and at their deadlines.
        Err(error) => tracing::warn!(
            input.id = %ended,
            error = &error as &dyn std::error::Error,
            "delegations that wait for room could not be looked up"
        ),
    }
}

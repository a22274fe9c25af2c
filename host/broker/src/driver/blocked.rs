//! Delegations that wait for room within the limits, or for the calls before them: whose turn may
//! begin, and who is woken when another has ended.
//!
//! All of it is derived from the store: the waiting inputs, the dispatches under way, and the calls
//! of the run that handed them over. So a restart changes nothing. Sessions with a waiting input
//! are then checked again, as are all with work.

use super::context::SessionContext;
use super::error::DriverError;
use super::fold::load_caller;
use crate::core::Core;
use domain::dispatch::blocked::BlockedQueue;
use domain::event::{Event, InputAccepted, Source};
use domain::id::{AgentId, InputId, RunId, Stream};
use domain::operation::Performer;
use domain::path::PathKind;
use domain::run::Run;
use domain::run::recover::is_its_turn;
use std::sync::Arc;
use store::{AgentGuard, Guard};

impl SessionContext {
    /// Returns the guards under which a turn may claim these inputs; none while they wait for room.
    /// Work whose caller no longer waits, or whose deadline has passed, needs no room: its turn
    /// ends at once.
    pub(super) async fn room_for(
        &self,
        inputs: &[InputAccepted],
    ) -> Result<Option<Vec<Guard>>, DriverError> {
        let [input] = inputs else {
            return Ok(Some(Vec::new()));
        };
        let Source::Dispatch {
            reply_to: Some(reply_to),
            ..
        } = &input.source
        else {
            return Ok(Some(Vec::new()));
        };
        let overdue = input
            .source
            .deadline()
            .is_some_and(|deadline| deadline <= self.core.now());
        if overdue {
            return Ok(Some(Vec::new()));
        }
        if reply_to.attached
            && let Some(caller) = one_by_one(&self.core, reply_to.run).await?
            && !has_its_turn(&caller, input.input)
            && self.is_of_worker().await?
        {
            return Ok(None);
        }
        if !self.store().waits_for_room(input.input).await? {
            return Ok(Some(Vec::new()));
        }
        let Some((tree, queue)) = blocked_beside(&self.core, input.input).await? else {
            return Ok(Some(Vec::new()));
        };
        if !queue
            .waiting
            .iter()
            .any(|blocked| blocked.input == input.input)
        {
            return Ok(Some(Vec::new()));
        }
        let limits = self.core.limits().dispatch;
        let next = limits.next_blocked(&queue);
        let Some(blocked) = next.iter().find(|blocked| blocked.input == input.input) else {
            return Ok(None);
        };
        let max = |limit: u32| u64::from(limit).saturating_sub(1);
        Ok(Some(vec![
            AgentGuard::TreeDispatchesAtMost {
                tree,
                max: max(limits.tree_dispatches_max),
            }
            .into(),
            AgentGuard::RunDispatchesAtMost {
                tree,
                run: blocked.by_run,
                max: max(limits.children_max),
            }
            .into(),
        ]))
    }

    /// Returns whether the session belongs to a worker that was made for its work. In another
    /// agent's session, later messages would queue up behind work that waits for room.
    async fn is_of_worker(&self) -> Result<bool, DriverError> {
        let Some(row) = self.store().session(self.session).await? else {
            return Ok(false);
        };
        let agent = self.store().agent(row.agent).await?;
        Ok(agent.is_some_and(|row| matches!(row.kind, PathKind::Sub | PathKind::Search)))
    }
}

/// Returns a run that makes its calls one by one; none if it makes them side by side or was purged.
async fn one_by_one(core: &Core, run: RunId) -> Result<Option<Run>, DriverError> {
    let first = core.store.first_of(Stream::Run(run)).await?;
    match first.and_then(|recorded| recorded.event) {
        Some(Event::RunStarted(started)) if !core.serving.streams(&started) => {
            load_caller(&core.store, run).await
        }
        Some(_) | None => Ok(None),
    }
}

/// Returns whether the calls before the one that handed an input over have their outcomes.
fn has_its_turn(run: &Run, input: InputId) -> bool {
    let mut calls = run.open.values().map(|open| &open.operation);
    let call = calls.find(
        |call| matches!(&call.performer, Performer::Agent { input: its, .. } if *its == input),
    );
    call.is_none_or(|call| is_its_turn(run, call.id))
}

/// Returns the delegations that wait for room in the tree of an input's agent. Of a run that makes
/// its calls one by one only the next call counts: a later one would occupy the room while it waits
/// for the next.
async fn blocked_beside(
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

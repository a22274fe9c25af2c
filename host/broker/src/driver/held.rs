//! Delegations that wait for room within the limits: whose turn may begin, and who is woken when
//! another has ended.
//!
//! All of it follows from what is stored: the inputs that wait, and the dispatches that are under
//! way. So a restart changes nothing. Sessions whose input waits are looked at again then, as all
//! that have work.

use super::context::SessionContext;
use super::error::DriverError;
use crate::core::Core;
use domain::dispatch::held::HeldQueue;
use domain::event::{InputAccepted, Source};
use domain::id::{AgentId, InputId};
use std::sync::Arc;
use store::{AgentGuard, Guard, ReadError};

impl SessionContext {
    /// Returns the guards under which a turn may take these inputs up; none while they wait for
    /// room. Work whose caller waits no more, or whose deadline has passed, needs no room: its turn
    /// ends at once.
    pub(super) async fn room_for(
        &self,
        inputs: &[InputAccepted],
    ) -> Result<Option<Vec<Guard>>, DriverError> {
        let [input] = inputs else {
            return Ok(Some(Vec::new()));
        };
        let Source::Dispatch {
            reply_to: Some(_), ..
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
        if !self.store().waits_for_room(input.input).await? {
            return Ok(Some(Vec::new()));
        }
        let Some((tree, queue)) = held_beside(&self.core, input.input).await? else {
            return Ok(Some(Vec::new()));
        };
        if !queue.waiting.iter().any(|held| held.input == input.input) {
            return Ok(Some(Vec::new()));
        }
        let limits = self.core.limits().dispatch;
        let next = limits.next_held(&queue);
        let Some(held) = next.iter().find(|held| held.input == input.input) else {
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
                run: held.by_run,
                max: max(limits.children_max_of(held.by_run, &queue)),
            }
            .into(),
        ]))
    }
}

/// Returns the delegations that wait for room in the tree of an input's, with those of their runs
/// that make their calls one by one.
async fn held_beside(
    core: &Core,
    input: InputId,
) -> Result<Option<(AgentId, HeldQueue)>, ReadError> {
    let Some((tree, mut queue)) = core.store.held_beside(input).await? else {
        return Ok(None);
    };
    let catalogue = core.served().catalogue.clone();
    for run in queue.open_by_run.keys() {
        let Some(row) = core.store.run(*run).await? else {
            continue;
        };
        let agent = core.store.agent(row.agent).await?;
        let definition = agent.and_then(|row| catalogue.definition(&row.agent.definition).cloned());
        if definition.is_some_and(|it| !it.enable_streaming) {
            queue.one_by_one.insert(*run);
        }
    }
    Ok(Some((tree, queue)))
}

/// Wakes the sessions for whose delegations there is room, now that one that counted against the
/// same limits has ended.
pub(crate) async fn wake_held(core: &Arc<Core>, ended: InputId) {
    match held_beside(core, ended).await {
        Ok(Some((_, queue))) => {
            let next = core.limits().dispatch.next_held(&queue);
            next.iter().for_each(|held| core.wake(held.session));
        }
        Ok(None) => {}
        // Those that wait are looked at again when another ends, and at their deadlines.
        Err(error) => tracing::warn!(
            input.id = %ended,
            error = &error as &dyn std::error::Error,
            "delegations that wait for room could not be looked up"
        ),
    }
}

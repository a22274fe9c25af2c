//! Delegations that wait for room within the limits, or for the calls before them: whose turn may
//! begin, and who is woken when another has ended.
//!
//! All of it follows from what is stored: the inputs that wait, the dispatches that are under way,
//! and the calls of the run that handed them over. So a restart changes nothing. Sessions whose
//! input waits are looked at again then, as all that have work.

use super::context::SessionContext;
use super::error::DriverError;
use super::fold::load_caller;
use crate::core::Core;
use domain::event::{Event, InputAccepted, Source};
use domain::id::{InputId, Stream};
use domain::operation::ReplyTo;
use domain::path::PathKind;
use domain::run::recover::is_its_turn;
use std::sync::Arc;
use store::{AgentGuard, Guard};

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
        if reply_to.attached && !self.is_turn_of(*reply_to).await? {
            return Ok(None);
        }
        if !self.store().waits_for_room(input.input).await? {
            return Ok(Some(Vec::new()));
        }
        let Some((tree, queue)) = self.store().held_beside(input.input).await? else {
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
                max: max(limits.children_max),
            }
            .into(),
        ]))
    }

    /// Returns whether work may begin that a run waits for: where that run makes its calls one by
    /// one, those before it have their outcomes. Only workers that were made for their work wait.
    /// In the session of another agent, all that is said to it would wait behind.
    async fn is_turn_of(&self, reply_to: ReplyTo) -> Result<bool, DriverError> {
        let first = self.store().first_of(Stream::Run(reply_to.run)).await?;
        let Some(Event::RunStarted(started)) = first.and_then(|recorded| recorded.event) else {
            return Ok(true);
        };
        if self.core.serving.streams(&started) {
            return Ok(true);
        }
        let agent = match self.store().session(self.session).await? {
            Some(row) => self.store().agent(row.agent).await?,
            None => None,
        };
        let kind = agent.map(|row| row.kind);
        if !matches!(kind, Some(PathKind::Sub | PathKind::Search)) {
            return Ok(true);
        }
        let caller = load_caller(self.store(), reply_to.run).await?;
        Ok(caller.is_none_or(|run| is_its_turn(&run, reply_to.operation)))
    }
}

/// Wakes the sessions for whose delegations there is room, now that one that counted against the
/// same limits has ended.
pub(crate) async fn wake_held(core: &Arc<Core>, ended: InputId) {
    match core.store.held_beside(ended).await {
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

//! Delegations that wait for room within the limits, or for the calls before them: whose turn may
//! begin, and who is woken when another has ended.
//!
//! All of it is derived from the store: the waiting inputs, the dispatches under way, and the calls
//! of the run that handed them over. So a restart changes nothing. Sessions with a waiting input
//! are then checked again, as are all with work.

use super::context::SessionContext;
use crate::shared::DriverError;
use crate::shared::blocked::{blocked_beside, has_its_turn, one_by_one};
use domain::event::{InputAccepted, Source};
use domain::path::PathKind;
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

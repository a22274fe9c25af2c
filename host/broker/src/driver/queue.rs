//! What of a session's queue is taken up: the next turn, words that join the open one, the end of one that is interrupted.
//!
//! The rules are the domain's ([`domain::queue`]); this asks them with what is stored and what time it is.

use super::{Driver, Trouble};
use crate::catalogue::CHAT;
use domain::event::InputAccepted;
use domain::id::InputId;
use domain::queue::{Claims, Condition, OverflowNotice, Plan, Queue, Turn};
use domain::run::end::Cause;
use domain::user::UserId;

/// With what a turn begins.
pub(super) struct Opening {
    /// What it claims: one input at least.
    pub(super) inputs: Vec<InputAccepted>,
    /// Whether they are one message.
    pub(super) collected: bool,
    /// What it tells of inputs that were dropped.
    pub(super) notice: Option<OverflowNotice>,
}

impl Driver {
    /// With what the next turn begins, now that no run is open; none while nothing waits, or nothing but what is held by its debounce: the
    /// store wakes the session when that is over.
    pub(super) async fn opening(&self) -> Result<Option<Opening>, Trouble> {
        let (claims, collected, notice) = match self.plan(Condition::Free, None).await? {
            Plan::Start(Turn::Own(input)) => (vec![input], false, None),
            Plan::Start(Turn::Words { notice, claims }) => (listed(&claims), false, notice),
            Plan::Start(Turn::Collected { notice, claims }) => (listed(&claims), true, notice),
            Plan::WaitUntil(_) => {
                // The timer came with the end of the run before, of which the watch over timers was told nothing.
                self.core.timers.notify_one();
                return Ok(None);
            }
            Plan::Nothing | Plan::Join(_) | Plan::Abort { .. } => return Ok(None),
        };
        let inputs = self.claimed(&claims).await?;
        Ok(Some(Opening { inputs, collected, notice }))
    }

    /// Words that wait and join the open run now.
    pub(super) async fn joining(&self) -> Result<Vec<InputAccepted>, Trouble> {
        let Some(driving) = &self.driving else { return Ok(Vec::new()) };
        match self.plan(Condition::Running { steerable: true }, Some(&driving.run.started.user_id)).await? {
            Plan::Join(claims) => self.claimed(&listed(&claims)).await,
            Plan::Nothing | Plan::WaitUntil(_) | Plan::Start(_) | Plan::Abort { .. } => Ok(Vec::new()),
        }
    }

    /// Ends the open run when an input waits that is to interrupt it. True when it did. The run of a structured session is not ended: that
    /// would end the session, with what interrupts it.
    pub(super) async fn interrupt(&mut self) -> Result<bool, Trouble> {
        let Some(driving) = self.driving.as_ref().filter(|driving| driving.version > 0) else { return Ok(false) };
        if driving.run.started.session_type != CHAT || !self.core.store.is_interrupted(self.session).await? {
            return Ok(false);
        }
        let compacts = driving.run.started.compacts.is_some();
        let condition = if compacts { Condition::Compacting } else { Condition::Running { steerable: false } };
        let Plan::Abort { newest } = self.plan(condition, None).await? else { return Ok(false) };
        self.end_from_outside(Cause::Aborted { reason: format!("interrupted by input {newest}") }).await?;
        Ok(true)
    }

    async fn plan(&self, condition: Condition, of: Option<&UserId>) -> Result<Plan<InputId>, Trouble> {
        let now = self.core.now();
        let row = self.core.store.queue(self.session, now).await?;
        let queue = row.map_or_else(Queue::default, |row| row.queue);
        Ok(queue.plan(condition, of, now))
    }
}

fn listed(claims: &Claims<InputId>) -> Vec<InputId> {
    claims.iter().copied().collect()
}

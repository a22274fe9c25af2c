//! Claims from a session's queue: the next turn, inputs that join the open run, an interrupt.
//!
//! The rules are the domain's ([`domain::queue`]). This applies them to the stored state and to the
//! present time.

use super::context::SessionContext;
use super::phase::Phase;
use super::state::Driver;
use crate::shared::DriverError;
use domain::event::InputAccepted;
use domain::id::InputId;
use domain::queue::{Claims, Condition, OverflowNotice, Plan, PlannedTurn, Queue};
use domain::run::end::Cause;
use domain::session::CHAT;
use domain::user::UserId;
use store::Guard;

/// The beginning of a turn.
pub(super) struct Opening {
    /// The inputs that it claims: at least one.
    pub(super) inputs: Vec<InputAccepted>,
    /// True if they are one message.
    pub(super) collected: bool,
    /// The notice of dropped inputs that it gives.
    pub(super) notice: Option<OverflowNotice>,
    /// Guards for its start: there is room for the work that it takes up.
    pub(super) begins_under: Vec<Guard>,
}

impl Driver {
    /// Returns the inputs that wait and join the open run now.
    pub(super) async fn joining(&self) -> Result<Vec<InputAccepted>, DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(Vec::new());
        };
        let claimed = &driving.run.claimed;
        let subscribers = self
            .context
            .heard(driving.subscribers.clone(), claimed)
            .await?;
        let steerable = !subscribers.is_unheard;
        match self
            .context
            .plan(
                Condition::Running { steerable },
                Some(&driving.run.started.user_id),
            )
            .await?
        {
            Plan::Join(claims) => self.context.claimed(&listed(&claims)).await,
            Plan::Nothing | Plan::WaitUntil(_) | Plan::Start(_) | Plan::Abort { .. } => {
                Ok(Vec::new())
            }
        }
    }

    /// Ends the open run if an input waits that is to interrupt it. Returns whether it did.
    ///
    /// The run of a structured session is not ended: the session would end with it, and the
    /// interrupting input too.
    pub(super) async fn interrupt(&mut self) -> Result<bool, DriverError> {
        let Phase::Running(running) = &self.phase else {
            return Ok(false);
        };
        let driving = &running.driving;
        if driving.run.started.session_type != CHAT
            || !self
                .context
                .store()
                .is_interrupted(self.context.session)
                .await?
        {
            return Ok(false);
        }
        let compacts = driving.run.started.compacts.is_some();
        let condition = if compacts {
            Condition::Compacting
        } else {
            Condition::Running { steerable: false }
        };
        let Plan::Abort { newest } = self.context.plan(condition, None).await? else {
            return Ok(false);
        };
        self.end_from_outside(Cause::Aborted {
            reason: format!("interrupted by input {newest}"),
        })
        .await?;
        Ok(true)
    }
}

impl SessionContext {
    /// Returns the beginning of the next turn, now that no run is open.
    ///
    /// None while no input waits, or while every waiting input is within its debounce. The store
    /// wakes the session when that is over.
    pub(super) async fn opening(&self) -> Result<Option<Opening>, DriverError> {
        let (claims, collected, notice) = match self.plan(Condition::Free, None).await? {
            Plan::Start(PlannedTurn::Own(input)) => (vec![input], false, None),
            Plan::Start(PlannedTurn::Words { notice, claims }) => (listed(&claims), false, notice),
            Plan::Start(PlannedTurn::Collected { notice, claims }) => {
                (listed(&claims), true, notice)
            }
            Plan::WaitUntil(_) => {
                // The debounce became a timer when the last run ended, and the timer task was not
                // notified.
                self.core.timers.notify_one();
                return Ok(None);
            }
            Plan::Nothing | Plan::Join(_) | Plan::Abort { .. } => return Ok(None),
        };
        let inputs = self.claimed(&claims).await?;
        let Some(begins_under) = self.room_for(&inputs).await? else {
            return Ok(None);
        };
        Ok(Some(Opening {
            inputs,
            collected,
            notice,
            begins_under,
        }))
    }

    async fn plan(
        &self,
        condition: Condition,
        of: Option<&UserId>,
    ) -> Result<Plan<InputId>, DriverError> {
        let now = self.core.now();
        let row = self.store().queue(self.session, now).await?;
        let queue = row.map_or_else(Queue::default, |row| row.queue);
        Ok(queue.plan(condition, of, now))
    }
}

fn listed(claims: &Claims<InputId>) -> Vec<InputId> {
    claims.iter().copied().collect()
}

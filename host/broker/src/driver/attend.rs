//! The operations of the open run: each is settled, performed or left to wait, and its result
//! taken.

use super::resolve::asking;
use super::state::Driver;
use crate::core::Core;
use crate::performance::result::{CommitExtras, Performed, SegmentOutcome};
use crate::performance::work::{Origin, Work};
use crate::shared::DriverError;
use crate::signal::Signal;
use domain::event::RunStarted;
use domain::id::OperationId;
use domain::operation::{Performer, Settlement};
use domain::run::Open;
use domain::run::recover::{Next, is_its_turn, next, ready};
use domain::session::CHAT;
use domain::step::OperationOutcome;
use domain::time::Timestamp;
use domain::tool::EffectClass;
use std::sync::Arc;

impl Driver {
    /// Sees to the operations that are not being worked on: settles, performs or leaves them.
    pub(super) async fn attend(&mut self) -> Result<(), DriverError> {
        while let Some(operation) = self.lasting_due() {
            self.make_lasting(operation).await?;
        }
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let now = self.context.core.now();
        let busy = |id: OperationId| driving.is_seen_to(id);
        let mut inspected = ready(&driving.run, &busy, now);
        if !self.context.core.serving.streams(&driving.run.started) {
            let run = &driving.run;
            inspected.retain(|(operation, next)| {
                !matches!(next, Next::Perform { .. }) || is_its_turn(run, *operation)
            });
            // Work that was handed over waits for its turn in its own session.
            for open in run.open.values() {
                if let Performer::Agent { session, .. } = &open.operation.performer
                    && is_its_turn(run, open.operation.id)
                {
                    self.context.core.wake(*session);
                }
            }
        }
        for (operation, next) in inspected {
            match next {
                Next::Settle(settlement) => {
                    if !self.stands_still(operation, now).await? {
                        self.settle_by_rule(*settlement).await?;
                    }
                }
                Next::Perform { record_first } => {
                    let grown = self.grown_effect(operation);
                    if record_first || grown.is_some() {
                        self.record_started(operation, grown, now).await?;
                    }
                    let is_unsent = self
                        .phase
                        .driving()
                        .is_some_and(|driving| driving.unsent.contains(&operation));
                    if is_unsent || self.attempt_again(operation).await? {
                        self.perform(operation);
                    }
                }
                Next::Wait { .. } => {}
            }
        }
        Ok(())
    }

    /// Returns whether the clock of an operation is stopped: the work that it waits for is asking a
    /// person, or has asked one meanwhile.
    async fn stands_still(
        &self,
        operation: OperationId,
        now: Timestamp,
    ) -> Result<bool, DriverError> {
        let open = self.phase.driving();
        let open = open.and_then(|driving| driving.run.open.get(&operation));
        match open {
            Some(open) => self.context.goes_on(open, now).await,
            None => Ok(false),
        }
    }

    /// Returns a change that a user has approved and that is still to be made; none without any.
    fn lasting_due(&self) -> Option<OperationId> {
        let now = self.context.core.now();
        let is_due = |open: &&Open| {
            matches!(open.operation.performer, Performer::Lasting { .. })
                && matches!(next(open, now), Next::Perform { .. })
        };
        let open = self.phase.driving()?.run.open.values().find(is_due)?;
        Some(open.operation.id)
    }

    /// Returns the effect of a model's call, if it is greater than the recorded one: after a
    /// restart under another configuration a program may have replaced the model. A program that
    /// was started is not started again.
    fn grown_effect(&self, operation: OperationId) -> Option<EffectClass> {
        let driving = self.phase.driving()?;
        let operation = &driving.run.open.get(&operation)?.operation;
        let Performer::Model { request, .. } = &operation.performer else {
            return None;
        };
        let model = request.model.as_deref();
        let serving = &self.context.core.serving;
        let gateway = serving.gateway_of_run(&driving.run.started, model);
        let effect = asking(&gateway.resolve(model).ok()?);
        (effect > operation.effect).then_some(effect)
    }

    /// Takes the outcome that an operation has without any work.
    async fn settle_by_rule(&mut self, mut settlement: Settlement) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        Box::pin(
            self.context
                .charge_what_is_known(driving, std::slice::from_mut(&mut settlement)),
        )
        .await?;
        if let OperationOutcome::Unknown { cause } = &settlement.outcome {
            let run = driving.run.started.run;
            let operation = settlement.operation;
            tracing::warn!(session.id = %self.context.session, run.id = %run, operation.id = %operation,
                cause = cause.code, "work that must not be repeated was cut off; whether it took effect is unknown");
        }
        if let Some(driving) = self.phase.driving_mut() {
            driving.arrived.push((settlement, CommitExtras::default()));
        }
        Ok(())
    }

    /// Begins to work on an operation.
    fn perform(&mut self, operation: OperationId) {
        let Some(driving) = self.phase.driving_mut() else {
            return;
        };
        driving.unsent.remove(&operation);
        let Some(open) = driving.run.open.get(&operation) else {
            return;
        };
        let segment = open.segment;
        let signals = self.mailbox.signals.clone();
        let work = Work::new(Origin {
            core: &self.context.core,
            payer: Arc::new(signals.clone()),
            run: &driving.run,
            open,
            thread: driving.thread.get().cloned(),
            sections: driving.sections.clone(),
            stopwatch: &driving.stopwatch,
        });
        let busy = work.begin(move |performed| async move {
            let performed = Box::new(performed);
            // If the driver has ended, its successor handles the operation.
            let _ = signals
                .send(Signal::Performed {
                    operation,
                    segment,
                    performed,
                })
                .await;
        });
        driving.busy.insert(operation, busy);
    }

    /// Takes the result of a segment of an operation.
    pub(super) fn performed(
        &mut self,
        operation: OperationId,
        segment: u32,
        mut performed: Performed,
    ) {
        let now = self.context.core.now();
        let Some(driving) = self.phase.driving_mut() else {
            return;
        };
        // A cancelled operation has its outcome already, and so has a segment whose end another has
        // recorded.
        let went_on = driving
            .run
            .open
            .get(&operation)
            .is_some_and(|open| open.segment != segment);
        if went_on {
            return;
        }
        let Some(busy) = driving.busy.remove(&operation) else {
            return;
        };
        performed.extras.events.splice(0..0, busy.ended(now));
        let Some(open) = driving.run.open.get(&operation) else {
            return;
        };
        let until = || item_deadline(&self.context.core, &driving.run.started, now);
        match performed.arrive(open, driving.run.segments_bytes, now, until) {
            SegmentOutcome::Settled(settlement, extras) => {
                driving.arrived.push((*settlement, extras))
            }
            SegmentOutcome::Continues(continuation, extras) => {
                driving.continued.push((*continuation, extras));
            }
            SegmentOutcome::Calls(call, extras) => driving.calls.push((call, extras)),
        }
    }
}

/// Returns the deadline of a question of a run, by the policy of its structured session.
fn item_deadline(core: &Core, started: &RunStarted, now: Timestamp) -> Option<Timestamp> {
    let served = core.served();
    let definition = served
        .catalogue
        .definition(&started.definition)
        .filter(|_| started.session_type != CHAT)?;
    definition
        .session_policy(&started.session_type)
        .item_deadline(now)
}

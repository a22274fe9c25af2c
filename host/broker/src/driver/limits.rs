//! Ends that the host gives a run: by limits, by deadlines, and when its work is no longer wanted.

use super::context::SessionContext;
use super::driving::Driving;
use super::state::Driver;
use crate::boxed::boxed;
use crate::shared::DriverError;
use crate::shared::runs::load_caller;
use domain::agent::end_session::EXPIRED;
use domain::error_code::TIMED_OUT;
use domain::operation::{Operation, Performer};
use domain::run::end::{Cause, MESSAGE_TIMED_OUT};
use domain::run::{Open, Run, Waited};
use domain::time::Timestamp;
use store::InputState;

impl Driver {
    /// Returns the reason why the run's work is no longer wanted, if any.
    ///
    /// Its agent was archived, or its caller no longer waits. The store alone records this, so it
    /// also reaches a run whose host was killed in between.
    async fn unwanted(&self) -> Result<Option<&'static str>, DriverError> {
        let Some(driving) = self.phase.driving().filter(|driving| !driving.wanted) else {
            return Ok(None);
        };
        let started = &driving.run.started;
        // A run that begins has just checked its agent.
        let has_inspected = self
            .phase
            .beginning()
            .is_some_and(|starting| starting.agent.is_some());
        if !has_inspected
            && self
                .context
                .store()
                .agent(started.agent)
                .await?
                .is_some_and(|row| !row.active)
        {
            return Ok(Some("the agent was archived"));
        }
        let Some(reply_to) = started
            .reply_to
            .filter(|reply_to| reply_to.attached && !driving.run.replied)
        else {
            return Ok(None);
        };
        let waits = self
            .context
            .store()
            .operation_owner(reply_to.operation)
            .await?
            .is_some();
        Ok((!waits).then_some("the caller waits for it no more"))
    }

    /// Ends a run that has reached a limit or its deadline, or is no longer wanted. Returns whether
    /// it did.
    pub(super) async fn check_limits(&mut self) -> Result<bool, DriverError> {
        let unwanted = self.unwanted().await?;
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(false);
        };
        driving.wanted = unwanted.is_none();
        let run = &driving.run;
        let now = self.context.core.now();
        let is_overdue = self.context.is_overdue(run, now).await?;
        let failed = |code: &str, reason: String| {
            Some(Cause::Failed {
                code: code.to_owned(),
                reason,
            })
        };
        let cause = if run
            .started
            .session_expires_at
            .is_some_and(|expires| expires <= now)
        {
            Some(Cause::Aborted {
                reason: EXPIRED.to_owned(),
            })
        } else if let Some(reason) = unwanted {
            Some(Cause::Aborted {
                reason: reason.to_owned(),
            })
        } else if is_overdue {
            failed(TIMED_OUT, "it was not done by its deadline".to_owned())
        } else if self
            .context
            .served
            .catalogue
            .definition(&run.started.definition)
            .is_none()
        {
            failed(
                "not-configured",
                format!(
                    "the definition `{}` is no longer configured",
                    run.started.definition
                ),
            )
        } else {
            run.exhausted_limit(driving.stopwatch.unrecorded_ms())
                .and_then(|reason| failed("limit-reached", reason))
                .or_else(|| {
                    let reason = self.context.idle_too_long(driving)?;
                    failed(MESSAGE_TIMED_OUT, reason)
                })
        };
        let Some(cause) = cause else { return Ok(false) };
        self.fail(cause).await?;
        Ok(true)
    }

    /// Ends the run for a reason of the host's. If its start is not stored yet, that is stored
    /// first.
    pub(super) async fn fail(&mut self, cause: Cause) -> Result<(), DriverError> {
        self.commit_start().await?;
        self.end_from_outside(cause).await
    }
}

impl SessionContext {
    /// Returns whether the deadline of a run has passed. Its clock is stopped while the run, or
    /// work that it waits for, asks a person.
    async fn is_overdue(&self, run: &Run, now: Timestamp) -> Result<bool, DriverError> {
        let Some(deadline) = run.started.deadline.filter(|deadline| *deadline <= now) else {
            return Ok(false);
        };
        let waited = self.waited(run).await?;
        Ok(waited
            .moved(deadline)
            .is_some_and(|deadline| deadline <= now))
    }

    /// Returns the time that a run, including the work that it waits for, has spent waiting for
    /// people.
    #[boxed]
    async fn waited(&self, run: &Run) -> Result<Waited, DriverError> {
        let mut waited = run.waited;
        for open in run.open.values() {
            waited = waited.and(self.waited_below(&open.operation).await?);
        }
        Ok(waited)
    }

    /// Returns the time that the work of an operation has spent waiting for people.
    async fn waited_below(&self, operation: &Operation) -> Result<Waited, DriverError> {
        let Performer::Agent {
            input,
            message: None,
            ..
        } = &operation.performer
        else {
            return Ok(Waited::default());
        };
        let Some((_, InputState::Claimed { run, .. })) = self.store().input(*input).await? else {
            return Ok(Waited::default());
        };
        match load_caller(self.store(), run).await? {
            Some(below) => self.waited(&below).await,
            None => Ok(Waited::default()),
        }
    }

    /// Returns whether an operation past its deadline keeps waiting, because its work has asked a
    /// person meanwhile.
    pub(super) async fn goes_on(&self, open: &Open, now: Timestamp) -> Result<bool, DriverError> {
        let operation = &open.operation;
        let Some(deadline) = operation.deadline.filter(|deadline| *deadline <= now) else {
            return Ok(false);
        };
        let waited = self.waited_below(operation).await?;
        Ok(waited.moved(deadline).is_none_or(|deadline| deadline > now))
    }

    /// Returns the milliseconds without progress after which a run ends (`messageTimeout` of its
    /// definition). Another attempt at a model, a model that is writing, and any recorded event
    /// count as progress.
    fn message_timeout_ms(&self, driving: &Driving) -> u64 {
        let serving = &self.core.serving;
        serving.message_timeout_ms_of_run(&driving.run.started)
    }

    /// Returns the milliseconds for which a run may still be idle. Time without any active work of
    /// its own does not count.
    pub(super) fn idle_ms_left(&self, driving: &Driving) -> u64 {
        self.message_timeout_ms(driving)
            .saturating_sub(driving.stopwatch.idle_ms())
    }

    /// Returns the reason for the end of a run that was idle for too long.
    fn idle_too_long(&self, driving: &Driving) -> Option<String> {
        (self.idle_ms_left(driving) == 0).then(|| {
            format!(
                "it came no further for {} s, which is its limit (messageTimeout)",
                self.message_timeout_ms(driving) / 1_000
            )
        })
    }
}

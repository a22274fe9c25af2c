//! The record of a cut of a run's prompts. It is stored before the prompt is sent.

use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::state::Driver;
use crate::performance::result::CommitExtras;
use crate::refusals::changing;
use crate::shared::DriverError;
use domain::event::{Event, RunCut};
use domain::id::OperationId;
use domain::prompt_cut::PromptCut;
use tokio::sync::oneshot;

impl Driver {
    /// Records the cut of an open call's prompt, and reports to the call's work once it is stored.
    ///
    /// A call that has its outcome already gets no answer: its work is dropped.
    pub(super) async fn take_cut(
        &mut self,
        operation: OperationId,
        cut: PromptCut,
        done: oneshot::Sender<()>,
    ) {
        if self
            .phase
            .driving()
            .is_none_or(|driving| !driving.busy.contains_key(&operation))
        {
            return;
        }
        match self.record_cut(operation, &cut).await {
            Ok(()) => drop(done.send(())),
            Err(failure) => self.keep_or_stumble(operation, failure),
        }
    }

    async fn record_cut(
        &mut self,
        operation: OperationId,
        cut: &PromptCut,
    ) -> Result<(), DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            if self.stale {
                self.refresh().await?;
            }
            match self.record_cut_now(operation, cut).await {
                Err(failure) if is_overtaken(&failure) => self.stale = true,
                recorded => return recorded,
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }

    async fn record_cut_now(
        &mut self,
        operation: OperationId,
        cut: &PromptCut,
    ) -> Result<(), DriverError> {
        let missing = || DriverError::Missing(format!("the open operation {operation}"));
        let driving = self.phase.driving().ok_or_else(missing)?;
        let open = driving.run.open.get(&operation).ok_or_else(missing)?;
        if open
            .cut
            .as_ref()
            .is_some_and(|made| made.is_own && made.cut == *cut)
        {
            // Already recorded, but its requester has no answer yet.
            return Ok(());
        }
        let made = RunCut {
            run: driving.run.started.run,
            operation,
            cut: cut.clone(),
            time: self.context.core.now(),
        };
        // A cut is no progress: repeated panics of the same work must keep counting.
        let failures = self.failures;
        store::point("broker.cut.before");
        self.commit_run_event(Event::RunCut(Box::new(made)), CommitExtras::default())
            .await?;
        store::point("broker.cut.after");
        self.failures = failures;
        Ok(())
    }
}

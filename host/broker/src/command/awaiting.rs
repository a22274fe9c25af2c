//! Post and await: waiting for the result of an input.
//!
//! The input is durable before the wait begins, so giving up the wait loses nothing.

use super::{Error, Messages, TurnFailure, TurnReport};
use crate::boxed::boxed;
use crate::shared::runs::{catch_up, load_run};
use domain::agent::milestones::questions;
use domain::cut_off;
use domain::event::InputAccepted;
use domain::id::{InputId, RunId};
use domain::message::Message;
use domain::queue::WaitKind;
use domain::run::Run;
use domain::run::end::NOT_BEGUN;
use domain::run::intake::wakes;
use domain::run::settle::question;
use domain::session::PendingAction;
use domain::turn::TurnEnd;
use std::time::Duration;
use store::InputState;

/// The pause after an inspection, in milliseconds. A wait does not cost one inspection for each
/// commit of the host.
const POLL_EVERY_MS: u64 = 20;

/// The result of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnOutcome {
    /// The run that processed it has ended.
    Answered {
        /// The end of the run.
        end: TurnEnd,
        /// The reply of the agent in it ([`cut_off::reply`]); none when there was no message.
        reply: Option<Message>,
        /// Its calls, tokens and time.
        report: Box<TurnReport>,
    },
    /// No run will process it: it was put aside, withdrawn or dropped.
    Undone {
        /// `dead`, `cancelled` or `dropped`.
        word: &'static str,
        /// The reason why it was put aside; none if it was withdrawn or dropped.
        failure: Option<TurnFailure>,
    },
    /// The run that processes it, or the one behind which it waits, waits for the user, and
    /// otherwise only for times.
    Asking {
        /// The questions, in the order in which they were asked.
        questions: Vec<PendingAction>,
    },
}

impl TurnOutcome {
    fn undone(word: &'static str) -> Self {
        Self::Undone {
            word,
            failure: None,
        }
    }
}

/// A run as the last check saw it, with its version. The next check reads only later events.
type LastRun = Option<(Run, u64)>;

impl Messages<'_> {
    /// Waits until an input was processed or its run waits for the user, at most for a time. None
    /// if neither happened in that time, or if the host is stopping.
    #[boxed]
    pub async fn await_reply(
        &self,
        input: InputId,
        wait: Duration,
    ) -> Result<Option<TurnOutcome>, Error> {
        tokio::select! {
            became = self.search_for(input) => became,
            () = tokio::time::sleep(wait) => Ok(None),
            () = self.core.stopping.cancelled() => Ok(None),
        }
    }

    /// Checks until there is a result. None when the store is closed.
    async fn search_for(&self, input: InputId) -> Result<Option<TurnOutcome>, Error> {
        // Watched before the inspection, so that no commit after the inspection is missed.
        let mut durable = self.store().durable();
        let mut seen = None;
        loop {
            durable.mark_unchanged();
            if let Some(became) = self.became(input, &mut seen).await? {
                return Ok(Some(became));
            }
            tokio::time::sleep(Duration::from_millis(POLL_EVERY_MS)).await;
            if durable.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    async fn became(
        &self,
        input: InputId,
        seen: &mut LastRun,
    ) -> Result<Option<TurnOutcome>, Error> {
        let Some((accepted, state)) = self.store().input(input).await? else {
            return Ok(None);
        };
        let run = match state {
            InputState::Waiting => return Ok(self.blocked(&accepted, seen).await),
            InputState::Claimed { run } => return Ok(self.asks(run, seen).await),
            InputState::Dropped => return Ok(Some(TurnOutcome::undone("dropped"))),
            InputState::Consumed { run }
            | InputState::Dead {
                run: Some(run),
                begun: true,
                ..
            }
            | InputState::Cancelled {
                run: Some(run),
                begun: true,
            } => run,
            InputState::Cancelled { .. } => return Ok(Some(TurnOutcome::undone("cancelled"))),
            InputState::Dead { reason, run, .. } => {
                let code = self.code_of_death(run).await?;
                return Ok(Some(TurnOutcome::Undone {
                    word: "dead",
                    failure: Some(TurnFailure { code, reason }),
                }));
            }
        };
        let Some(row) = self.store().run(run).await? else {
            return Ok(None);
        };
        let Some(end) = row.end else {
            return Ok(None);
        };
        let said = self.store().run_messages(run).await?;
        let reply = cut_off::reply(said.iter());
        let report = Box::new(self.runs().report(&row).await?);
        Ok(Some(TurnOutcome::Answered { end, reply, report }))
    }

    /// Returns the code of a dead letter's reason: that of the run which failed over it without a
    /// turn, if there was one.
    async fn code_of_death(&self, run: Option<RunId>) -> Result<String, Error> {
        let row = match run {
            Some(run) => self.store().run(run).await?,
            None => None,
        };
        let failure = match &row {
            Some(row) => self.runs().report(row).await?.failure,
            None => None,
        };
        Ok(failure.map_or_else(|| NOT_BEGUN.to_owned(), |failure| failure.code))
    }

    /// Returns the questions of the run behind which an input waits, if that run waits for the
    /// user. None for an input that joins that run or ends it.
    async fn blocked(&self, input: &InputAccepted, seen: &mut LastRun) -> Option<TurnOutcome> {
        let session = self.store().session(input.session).await.ok()??;
        let asking = self.asks(session.open_run?, seen).await?;
        let hears = |(run, _): &(Run, u64)| run.wait.is_some_and(|(_, hear)| hear);
        match input.waits_for() {
            WaitKind::Interrupt => None,
            WaitKind::Steer if seen.as_ref().is_some_and(hears) => None,
            WaitKind::Steer | WaitKind::OwnTurn | WaitKind::Queued(_) => Some(asking),
        }
    }

    /// Returns the questions of a run that waits for the user. None also when it cannot be read:
    /// the message is accepted all the same.
    async fn asks(&self, id: RunId, seen: &mut LastRun) -> Option<TurnOutcome> {
        let (mut run, mut version) = match seen.take() {
            Some((run, version)) if run.started.run == id => (run, version),
            _ => load_run(self.store(), id).await.ok()?,
        };
        catch_up(self.store(), &mut run, &mut version).await.ok()?;
        let asking = waits_for_user(&run).then(|| TurnOutcome::Asking {
            questions: questions(&run),
        });
        *seen = Some((run, version));
        asking
    }
}

/// Returns whether a run needs the user's answer, or a time, to continue.
fn waits_for_user(run: &Run) -> bool {
    let asks = run.open.values().any(|open| question(open).is_some());
    let rests = run
        .open
        .values()
        .all(|open| question(open).is_some() || open.operation.due().is_some());
    asks && rests && !wakes(run, &[], false)
}

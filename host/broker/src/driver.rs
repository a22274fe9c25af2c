//! The driver of one session: claim, step, commit, perform, until it can only wait.
//!
//! All state is in the store. A driver holds a cached fold and the list of the work under way. It
//! is made when a session has something to do, and retires when it only waits. Work that it does
//! not finish is found again by folding the run.

mod attempt;
mod backoff;
mod budget;
mod busy;
mod claim;
mod commit;
mod compacting;
mod driving;
mod end;
mod entry;
mod fold;
mod frozen;
mod handover;
mod late_replies;
mod limits;
mod panicked;
mod perform;
mod queue;
mod record;
mod recovered;
mod resolve;
mod session_events;
mod step;
mod stopwatch;
mod stuck;
mod talk;
mod ticket;
mod unstorable;

use crate::command::Request;
use crate::core::{Core, Mailbox};
pub(crate) use crate::driver::attempt::{Afforded, Short, Wanted};
use crate::driver::backoff::Backoff;
pub(crate) use crate::driver::driving::Thread;
use crate::driver::driving::{Driving, Owed};
pub(crate) use crate::driver::fold::{load_caller, load_run, snapshot};
pub(crate) use crate::driver::frozen::{NONE_BEFORE, NOTHING};
pub(crate) use crate::driver::late_replies::waiting_for;
pub(crate) use crate::driver::perform::{CameTo, Performed};
use crate::driver::record::ClientAnswer;
pub(crate) use crate::driver::stopwatch::{AtWork, Stopwatch};
use crate::driver::stuck::Failures;
use crate::driver::ticket::StepTicket;
use crate::panics::caught;
use domain::event::{Event, InputAccepted};
use domain::id::{InputId, OperationId, RunId, SessionId, TurnId};
use domain::refusal::Refusal;
use domain::run::intake::wakes;
use domain::run::recover::{Next, ready};
use domain::step::Outcome;
use domain::user::UserId;
use domain::widget::upload::Brought;
use runtime::Hold;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::{Clash, CommitError, Key, ReadError, SessionRow};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

/// The longest time without a look, in milliseconds.
const PATIENCE_MS: u64 = 600_000;

/// A message to a driver. Of anything else that may be to do its [`Wake`](crate::core::Wake) tells
/// it.
pub(crate) enum Signal {
    /// The result of a segment of an operation.
    Performed {
        operation: OperationId,
        segment: u32,
        performed: Box<Performed>,
    },
    /// A question: is another attempt at a model's call afforded? If no answer comes, it is asked
    /// again.
    Afford {
        operation: OperationId,
        wanted: Wanted,
        done: oneshot::Sender<Result<Afforded, Short>>,
    },
    /// The answer of a client, already checked against its schema. `files` are those that it brings
    /// along.
    Answer {
        call: OperationId,
        by: UserId,
        value: Value,
        files: Vec<Brought>,
        request: Option<Request>,
        done: oneshot::Sender<Result<u64, DriverError>>,
    },
    /// The request to compact the thread, if no run is open.
    Compact {
        by: UserId,
        request: Option<Request>,
        done: oneshot::Sender<Result<RunId, DriverError>>,
    },
    /// The request to end the open run.
    Abort {
        reason: String,
        key: Option<Key>,
        done: oneshot::Sender<Result<bool, DriverError>>,
    },
}

/// The reason why something could not be done just now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("the store could not be read")]
    Read(#[from] ReadError),
    #[error("nothing could be recorded")]
    Commit(#[from] CommitError),
    #[error("a run's events do not fit together")]
    Corrupt(#[from] domain::run::Corrupt),
    #[error("refused")]
    Refused(#[from] Refusal),
    #[error("{0} is missing")]
    Missing(String),
    #[error("the runtime has no free place")]
    Busy,
}

impl DriverError {
    /// Returns whether another writer was first, so that the store is to be looked at again.
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Commit(CommitError::Conflict(conflict)) if conflict.clash != Clash::Row)
    }
}

/// The companions of an outcome in its commit.
#[derive(Clone, Default)]
pub(crate) struct CommitExtras {
    /// Blobs that it mentions.
    pub(crate) blobs: Vec<Vec<u8>>,
    /// Further events of the run's stream, which its fold passes over: decisions of the boundary,
    /// and writes to buckets.
    pub(crate) events: Vec<Event>,
    /// The buckets that were written. They are released when the last clone of this is dropped:
    /// after the commit, or when it is given up.
    pub(crate) holds: Vec<Hold>,
}

impl CommitExtras {
    /// Removes the writes to buckets, for work that failed after all.
    pub(crate) fn unwritten(mut self) -> Self {
        self.events
            .retain(|event| !matches!(event, Event::KeyValueWritten(_)));
        self.holds.clear();
        self
    }
}

pub(crate) struct Driver {
    core: Arc<Core>,
    session: SessionId,
    mailbox: Mailbox,
    inbox: mpsc::Receiver<Signal>,
    /// The permit to start, until the first look is over.
    starting: Option<OwnedSemaphorePermit>,
    /// The pauses after trouble.
    backoff: Backoff,
    /// The ticket of the next step, while it waits for its turn.
    ticket: Option<StepTicket>,
    driving: Option<Driving>,
    /// The session as it was when none of its runs was open.
    idle: Option<SessionRow>,
    /// The newest turn after which the thread needs no compaction, or no further attempt at one.
    roomy: Option<TurnId>,
    /// True if others may have written to the run's stream since it was folded.
    stale: bool,
    /// Failures in a row, with nothing recorded in between.
    failures: Failures,
    /// Number of looks in a row that found something unreadable.
    unreadable: u32,
    /// The ledger's entries of a run that a panic made the driver forget.
    owed: Option<Owed>,
    /// The ledger's entries of runs that have ended: decisions of the boundary until their work
    /// stopped.
    afterwards: Vec<store::Append>,
}

/// Waits until a look at a ticket is worth while; for ever without one.
async fn called(ticket: &mut Option<StepTicket>) {
    match ticket {
        Some(ticket) => ticket.called().await,
        None => std::future::pending().await,
    }
}

/// The result of a look.
enum Look {
    /// Work is going on. The driver waits for it.
    Working,
    /// There is nothing to do until a signal, a wake or a timer comes.
    Waiting,
}

impl Driver {
    /// Creates a driver that has not looked yet. It gives `starting` back after its first look, or
    /// when it steps.
    pub(crate) fn new(
        core: Arc<Core>,
        session: SessionId,
        mailbox: Mailbox,
        inbox: mpsc::Receiver<Signal>,
        starting: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            core,
            session,
            mailbox,
            inbox,
            starting,
            backoff: Backoff::default(),
            ticket: None,
            driving: None,
            idle: None,
            roomy: None,
            stale: true,
            failures: Failures::default(),
            unreadable: 0,
            owed: None,
            afterwards: Vec::new(),
        }
    }

    /// Drives until there is nothing to do but wait, or until the host stops.
    pub(crate) async fn drive(mut self) {
        while let Err(panic) = Box::pin(caught(self.keep_on())).await {
            self.begin_anew(&panic).await;
            if let Some(reason) = self.is_stuck_panicking(&panic)
                && self.quarantine(reason).await
            {
                return self.leave().await;
            }
            if self.core.stopping.is_cancelled() {
                // There is no successor that could record the ledger's entries.
                let _ = Box::pin(caught(self.record_what_is_owed())).await;
                return;
            }
        }
    }

    async fn keep_on(&mut self) {
        loop {
            if self.core.stopping.is_cancelled() {
                return self.wind_up().await;
            }
            self.stale |= self.mailbox.wake.take();
            self.core.looked();
            let looked = Box::pin(self.look()).await;
            self.starting = None;
            if looked.is_ok() {
                self.backoff.end();
                self.unreadable = 0;
            }
            match looked {
                Ok(Look::Working) => {}
                Ok(Look::Waiting) => {
                    if self.inbox.is_empty() && self.core.retire(self.session, &self.mailbox) {
                        return self.leave().await;
                    }
                }
                Err(failure) => {
                    self.stumble(&failure);
                    let unstorable = Box::pin(self.end_what_cannot_be_stored(&failure)).await;
                    if let Some(reason) = unstorable.or_else(|| self.is_stuck(&failure))
                        && Box::pin(self.quarantine(reason)).await
                    {
                        return self.leave().await;
                    }
                    // Last, because what is recorded ends a pause, and nothing else has this driver
                    // look again.
                    if matches!(failure, DriverError::Busy) {
                        // A step whose turn has come keeps it until the runtime has room.
                        self.backoff.begin_keeping(Instant::now());
                    } else {
                        // Nobody waits for a place that is not used during a pause.
                        self.ticket = None;
                        self.backoff.begin(failure.is_overtaken(), Instant::now());
                    }
                }
            }
            self.hear().await;
        }
    }

    /// Waits until there is something to look at.
    ///
    /// Signals are heard during a pause after trouble, too, but do not cut it short. Only a commit
    /// does, and outcomes of work for which others wait.
    async fn hear(&mut self) {
        let core = self.core.clone();
        let wake = self.mailbox.wake.clone();
        let patience = Instant::now() + self.patience();
        loop {
            let pause = self.backoff.until();
            tokio::select! {
                signal = self.inbox.recv() => if let Some(signal) = signal {
                    self.take(signal).await;
                },
                () = wake.is_set_now(), if pause.is_none() => return,
                () = called(&mut self.ticket), if pause.is_none() => return,
                () = core.stopping.cancelled() => return,
                () = tokio::time::sleep_until(pause.unwrap_or(patience)) => return self.backoff.cut_short(),
            }
            while let Ok(signal) = self.inbox.try_recv() {
                self.take(signal).await;
            }
            if self.backoff.until().is_none()
                || self
                    .driving
                    .as_ref()
                    .is_some_and(Driving::keeps_others_waiting)
            {
                return;
            }
        }
    }

    /// Returns the time to wait for a signal before another look.
    ///
    /// It ends when the run's active time is used up, or when the run has rested. All other times
    /// are timers of the store.
    fn patience(&self) -> Duration {
        let active = self
            .driving
            .as_ref()
            .filter(|driving| driving.run.is_active());
        let active_ms = active.map_or(PATIENCE_MS, |driving| {
            driving
                .run
                .active_ms_left(driving.stopwatch.unrecorded_ms())
                .clamp(1, PATIENCE_MS)
        });
        let rest = self
            .driving
            .as_ref()
            .and_then(|driving| driving.rests_until)
            .map(|until| until.saturating_duration_since(Instant::now()));
        Duration::from_millis(active_ms).min(rest.unwrap_or(Duration::MAX))
    }

    /// Winds up because the host is stopping. Nothing is begun, but outcomes of work under way are
    /// recorded while there is time.
    async fn wind_up(&mut self) {
        let core = self.core.clone();
        while self
            .driving
            .as_ref()
            .is_some_and(|driving| !driving.busy.is_empty())
        {
            tokio::select! {
                signal = self.inbox.recv() => match signal {
                    Some(signal) => self.take(signal).await,
                    None => break,
                },
                () = core.killed.cancelled() => break,
            }
        }
        let now = self.core.now();
        if let Some(driving) = &mut self.driving {
            driving.stop_all(now).await;
        }
        if let Err(failure) = self.record_what_is_left().await {
            self.stumble(&failure);
        }
        self.core.retire(self.session, &self.mailbox);
        self.leave().await;
    }

    async fn record_what_is_owed(&mut self) {
        let recorded = match self.refresh().await {
            Ok(true) => self.record_what_is_left().await,
            Ok(false) => self.record_afterwards().await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = recorded {
            self.stumble(&failure);
        }
    }

    /// Leaves the session, once the driver has retired. Signals that came at the last moment go to
    /// a successor.
    async fn leave(&mut self) {
        self.inbox.close();
        self.driving = None;
        while let Some(signal) = self.inbox.recv().await {
            let core = self.core.clone();
            Box::pin(core.signal(self.session, signal)).await;
        }
    }

    /// Marks the cached fold as stale after trouble, and logs the trouble. The next look folds
    /// again.
    fn stumble(&mut self, failure: &DriverError) {
        self.stale = true;
        match failure {
            DriverError::Commit(CommitError::Conflict(conflict)) if failure.is_overtaken() => {
                tracing::debug!(session.id = %self.session, ?conflict, "somebody else was first; \
                    folding again");
            }
            DriverError::Busy => {
                tracing::debug!(session.id = %self.session, "the runtime is full; trying again")
            }
            failure => {
                tracing::warn!(session.id = %self.session, error = failure as &dyn std::error::Error, "a session cannot go on just now; trying again");
            }
        }
    }

    async fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Performed {
                operation,
                segment,
                performed,
            } => {
                self.performed(operation, segment, *performed);
            }
            Signal::Afford {
                operation,
                wanted,
                done,
            } => {
                // An operation that has its outcome already: its work is dropped.
                if self
                    .driving
                    .as_ref()
                    .is_none_or(|driving| !driving.busy.contains_key(&operation))
                {
                    return;
                }
                match self.afford_attempt(operation, &wanted).await {
                    Ok(afforded) => drop(done.send(afforded)),
                    Err(failure) => self.stumble(&failure),
                }
            }
            Signal::Answer {
                call,
                by,
                value,
                files,
                request,
                done,
            } => {
                let result = self
                    .answer(
                        ClientAnswer {
                            call,
                            by,
                            value,
                            files,
                        },
                        request.as_ref(),
                    )
                    .await;
                // The caller may have gone. The answer is recorded all the same.
                let _ = done.send(result);
            }
            Signal::Compact { by, request, done } => {
                let result = self.compact(&by, request.as_ref()).await;
                let _ = done.send(result);
            }
            Signal::Abort { reason, key, done } => {
                let result = self.abort(reason, key).await;
                let _ = done.send(result);
            }
        }
    }

    /// Does everything that can be done now.
    async fn look(&mut self) -> Result<Look, DriverError> {
        loop {
            if self.core.stopping.is_cancelled() {
                return Ok(Look::Working);
            }
            self.record_afterwards().await?;
            if self.keeps_panicking() {
                self.give_up().await?;
                continue;
            }
            if !self.refresh().await? {
                if self.expire_idle().await? || self.compact_if_due().await? {
                    continue;
                }
                let (Some(opening), Some(session)) = (self.opening().await?, self.idle.take())
                else {
                    self.ticket = None;
                    self.core.recovering.take(self.session);
                    return Ok(Look::Waiting);
                };
                self.start(opening, session).await?;
                continue;
            }
            if self.recover().await? || self.check_limits().await? || self.interrupt().await? {
                continue;
            }
            self.record_continued().await?;
            self.attend().await?;
            let words = self.words().await?;
            let Some(driving) = &mut self.driving else {
                continue;
            };
            let (arrived, rests) = (driving.settlements(), driving.rests());
            let steps = !rests && wakes(&driving.run, &arrived, !words.is_empty());
            if !steps {
                self.ticket = None;
            }
            if steps {
                let stepped = self.step(words).await;
                // The place that the step waits for may be taken by work that waits for this run's
                // buckets.
                if matches!(stepped, Ok(false) | Err(DriverError::Busy))
                    && self
                        .driving
                        .as_ref()
                        .is_some_and(Driving::keeps_others_waiting)
                {
                    self.record_what_is_done().await?;
                }
                if !stepped? {
                    return Ok(Look::Working);
                }
            } else if !driving.put_off.is_empty() {
                // No step that stops them will be recorded.
                driving.put_off.clear();
            } else if !arrived.is_empty() {
                self.settle().await?;
            } else if rests || !self.end_as_held().await? {
                let Some(driving) = &self.driving else {
                    continue;
                };
                if driving.busy.is_empty() && !rests && !driving.entries.is_empty() {
                    // No other commit may follow that takes the entries along.
                    self.record_entries().await?;
                    continue;
                }
                return Ok(if driving.busy.is_empty() && !rests {
                    Look::Waiting
                } else {
                    Look::Working
                });
            }
        }
    }

    /// Returns the words that wait and can be taken into the open run now.
    ///
    /// These are words that steer, and only while the agent hears them. A run's first step takes in
    /// what its start claimed.
    async fn words(&self) -> Result<Vec<InputAccepted>, DriverError> {
        let Some(driving) = &self.driving else {
            return Ok(Vec::new());
        };
        if driving.version == 0 {
            return Ok(driving.opening.clone());
        }
        if driving.run.step == 0 {
            return self.claimed(&driving.run.claimed).await;
        }
        if !driving.run.wait.is_some_and(|(_, hear)| hear) {
            return Ok(Vec::new());
        }
        self.joining().await
    }

    async fn claimed(&self, inputs: &[InputId]) -> Result<Vec<InputAccepted>, DriverError> {
        let mut claimed = Vec::new();
        for id in inputs {
            let (input, _) = self
                .core
                .store
                .input(*id)
                .await?
                .ok_or_else(|| DriverError::Missing(format!("input {id}")))?;
            claimed.push(input);
        }
        Ok(claimed)
    }

    /// Sees to the operations that are not being worked on: settles, performs or leaves them.
    async fn attend(&mut self) -> Result<(), DriverError> {
        let Some(driving) = &self.driving else {
            return Ok(());
        };
        let (now, run) = (self.core.now(), driving.run.started.run);
        let busy = |id: OperationId| driving.is_seen_to(id);
        for (operation, next) in ready(&driving.run, &busy, now) {
            match next {
                Next::Settle(mut settlement) => {
                    if let Some(driving) = &self.driving {
                        Box::pin(
                            self.charge_what_is_known(
                                driving,
                                std::slice::from_mut(&mut *settlement),
                            ),
                        )
                        .await?;
                    }
                    if settlement.outcome == Outcome::Unknown {
                        let told = "work that must not be repeated was cut off; whether it took \
                                    effect is unknown";
                        tracing::warn!(session.id = %self.session, run.id = %run, operation.id = %operation, "{told}");
                    }
                    if let Some(driving) = &mut self.driving {
                        driving.arrived.push((*settlement, CommitExtras::default()));
                    }
                }
                Next::Perform { record_first } => {
                    if record_first {
                        self.record_started(operation, now).await?;
                    }
                    let is_unsent = self
                        .driving
                        .as_ref()
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
}

//! The driver of one session: claim, step, commit, perform, until it can only wait.
//!
//! All state is in the store. A driver only caches the fold of the run and the list of the work
//! under way. It is created when a session has work, and retires when it only waits. Its unfinished
//! work is found again by folding the run.
//!
//! ## Where things are
//!
//! - phases: `driver/phase.rs`
//! - the state that outlasts a phase, and the context of all files: `driver/state.rs`,
//!   `driver/context.rs`
//! - the open run and its upkeep: `driver/driving.rs`, `driver/refresh.rs`
//! - the permit for a step: `driver/ticket.rs`; the place of a message among those of its agent:
//!   `driver/place.rs`
//! - inputs that a turn begins with, and its persona: `driver/claim.rs`
//! - inputs that join an open run: `driver/queue.rs`
//! - the sections of its prompts: `driver/sectioning.rs`
//! - the basis of a step: `driver/frozen.rs`
//! - a step of an agent: `driver/step.rs`
//! - the view of a step, and the scope of its requests: `driver/prepare.rs`,
//!   `driver/scope.rs`
//! - operations that a decision starts: `driver/resolve.rs`
//! - calls of tools among them: `driver/calls.rs`; calls that command lines make:
//!   `driver/commands.rs`
//! - open operations, settled, performed or waiting: `driver/attend.rs`
//! - commits of steps: `driver/commit.rs`
//! - outcomes, and their record: `driver/record.rs`
//! - the budget of a step: `driver/budget.rs`; reservations for models' calls: `driver/reserve.rs`
//! - further attempts at them: `driver/attempt.rs`
//! - messages to external agents, and their answers: `driver/deliver.rs`
//! - ends by limits and deadlines: `driver/limits.rs`
//! - replies without a waiting caller: `driver/late_replies.rs`
//! - messages between agents, and work handed over: `driver/direct_message.rs`,
//!   `driver/handover.rs`
//! - delegations that wait for room: `driver/blocked.rs`
//! - compaction: `driver/compacting.rs`; cuts of prompts during a run: `driver/cutting.rs`
//! - panels of the user's clients: `driver/panels.rs`
//! - triggers that an agent sets itself: `driver/triggers.rs`
//! - lasting changes, requested by words from outside: `driver/lasting.rs`
//! - the summary of a user's conversation with another agent: `driver/bringing_back.rs`
//! - notes, and reading a session into them: `driver/memory.rs`, `driver/reading.rs`
//! - events of structured sessions: `driver/session_events.rs`
//! - the end of a run: `driver/end.rs`, on a command's request: `driver/abort.rs`
//! - recovery after a crash or a panic: `driver/recovered.rs`, `driver/panicked.rs`
//! - pauses after trouble: `driver/trouble.rs`
//! - commits that can never be stored, quarantine: `driver/unstorable.rs`, `driver/stuck.rs`

mod abort;
mod attempt;
mod attend;
mod blocked;
mod bringing_back;
mod budget;
mod calls;
mod claim;
mod commands;
mod commit;
mod compacting;
mod context;
mod cutting;
mod deliver;
mod direct_message;
mod driving;
mod end;
mod frozen;
mod handover;
mod hinting;
mod lasting;
mod late_replies;
mod limits;
mod memory;
mod outbound_messages;
mod panels;
mod panicked;
mod phase;
mod place;
mod prepare;
mod queue;
mod reading;
mod record;
mod recovered;
mod refresh;
mod reserve;
mod resolve;
mod scope;
mod sectioning;
mod session_events;
mod state;
mod step;
mod stuck;
mod subscribers;
mod ticket;
mod triggers;
mod trouble;
mod unstorable;

use crate::driver::driving::Driving;
pub(crate) use crate::driver::frozen::{NONE_BEFORE, NOTHING};
pub(crate) use crate::driver::late_replies::waiting_for;
use crate::driver::phase::Phase;
use crate::driver::place::placed;
pub(crate) use crate::driver::state::Driver;
use crate::driver::ticket::StepTicket;
use crate::panics::caught;
use crate::shared::DriverError;
use crate::signal::Signal;
use domain::event::InputAccepted;
use domain::key::KeyId;
use domain::run::intake::wakes;
use std::time::Duration;
use store::CommitError;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The longest time without an inspection, in milliseconds.
const PATIENCE_MS: u64 = 600_000;

/// Waits until an inspection of a ticket is worth while; for ever without one.
async fn called(ticket: &mut Option<StepTicket>) {
    match ticket {
        Some(ticket) => ticket.called().await,
        None => std::future::pending().await,
    }
}

/// The result of an inspection.
enum Inspection {
    /// Work is in progress, and the driver waits for it.
    Working,
    /// There is no work until a signal, a wake or a timer arrives.
    Waiting,
}

impl Driver {
    /// Drives until there is nothing to do but wait, or until the host stops.
    pub(crate) async fn drive(mut self) {
        while let Err(panic) = Box::pin(caught(self.keep_on())).await {
            self.begin_anew(&panic).await;
            if let Some(reason) = self.is_stuck_panicking(&panic)
                && self.quarantine(reason).await
            {
                return self.leave().await;
            }
            if self.context.core.stopping.is_cancelled() {
                // There is no successor that could record the ledger's entries.
                let _ = Box::pin(caught(self.record_what_is_owed())).await;
                return;
            }
        }
    }

    async fn keep_on(&mut self) {
        loop {
            if self.context.core.stopping.is_cancelled() {
                return self.wind_up().await;
            }
            self.stale |= self.mailbox.wake.take();
            self.context.core.inspected();
            let computes = self.context.core.computing.enter(self.context.session);
            let inspected = Box::pin(self.inspect()).await;
            self.starting = None;
            if inspected.is_ok() {
                self.trouble.end();
                self.unreadable = 0;
            }
            match inspected {
                Ok(Inspection::Working) => {}
                Ok(Inspection::Waiting) => {
                    if self.inbox.is_empty()
                        && self
                            .context
                            .core
                            .retire(self.context.session, &self.mailbox)
                    {
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
                    // Last, because the record ends a pause, and nothing else makes this driver
                    // check again.
                    if matches!(failure, DriverError::Busy) {
                        // A step that has a turn keeps it until the runtime has room.
                        self.trouble.begin_keeping(Instant::now());
                    } else {
                        // Nobody waits for a place that is not used during a pause.
                        self.ticket = None;
                        self.place = None;
                        self.trouble.begin(failure.is_overtaken(), Instant::now());
                    }
                }
            }
            drop(computes);
            self.hear().await;
        }
    }

    /// Waits until there is something to check.
    ///
    /// Signals are heard during a pause after trouble, too, but do not cut it short. Only a commit
    /// does, and outcomes of work for which others wait.
    async fn hear(&mut self) {
        let core = self.context.core.clone();
        let wake = self.mailbox.wake.clone();
        let patience = Instant::now() + self.patience();
        loop {
            let pause = self.trouble.until();
            tokio::select! {
                signal = self.inbox.recv() => if let Some(signal) = signal {
                    self.take(signal).await;
                },
                () = wake.is_set_now(), if pause.is_none() => return,
                () = called(&mut self.ticket), if pause.is_none() => return,
                () = placed(&mut self.place), if pause.is_none() => return,
                () = core.stopping.cancelled() => return,
                () = tokio::time::sleep_until(pause.unwrap_or(patience)) => return self.trouble.cut_short(),
            }
            while let Ok(signal) = self.inbox.try_recv() {
                self.take(signal).await;
            }
            if self.trouble.until().is_none()
                || self
                    .phase
                    .driving()
                    .is_some_and(Driving::keeps_others_waiting)
            {
                return;
            }
        }
    }

    /// Returns the time to wait for a signal before another inspection.
    ///
    /// It ends when the run's active time is used up, or when the run's pause is over. All other
    /// times are timers of the store.
    fn patience(&self) -> Duration {
        let active = self
            .phase
            .driving()
            .filter(|driving| driving.run.is_active());
        let active_ms = active.map_or(PATIENCE_MS, |driving| {
            driving
                .run
                .active_ms_left(driving.stopwatch.unrecorded_ms())
                .min(self.context.idle_ms_left(driving))
                .clamp(1, PATIENCE_MS)
        });
        let rest = self
            .phase
            .driving()
            .and_then(|driving| driving.rests_until)
            .map(|until| until.saturating_duration_since(Instant::now()));
        Duration::from_millis(active_ms).min(rest.unwrap_or(Duration::MAX))
    }

    /// Winds up because the host is stopping. No work begins, but outcomes of work under way are
    /// recorded while there is time.
    async fn wind_up(&mut self) {
        let core = self.context.core.clone();
        while self
            .phase
            .driving()
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
        let now = self.context.core.now();
        if let Some(driving) = self.phase.driving_mut() {
            driving.stop_all(now).await;
        }
        if let Err(failure) = self.record_what_is_left().await {
            self.stumble(&failure);
        }
        self.context
            .core
            .retire(self.context.session, &self.mailbox);
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

    /// Leaves the session, once the driver has retired. Late signals go to a successor.
    async fn leave(&mut self) {
        self.inbox.close();
        self.phase = Phase::Unknown;
        while let Some(signal) = self.inbox.recv().await {
            let core = self.context.core.clone();
            Box::pin(core.signal(self.context.session, signal)).await;
        }
    }

    /// Marks the cached fold as stale after trouble, and logs the trouble. The next inspection
    /// folds again.
    fn stumble(&mut self, failure: &DriverError) {
        self.stale = true;
        match failure {
            DriverError::Commit(CommitError::Conflict(conflict)) if failure.is_overtaken() => {
                tracing::debug!(session.id = %self.context.session, ?conflict, "somebody else was first; \
                    folding again");
            }
            DriverError::Busy => {
                tracing::debug!(session.id = %self.context.session, "the runtime is full; trying again")
            }
            failure => {
                tracing::warn!(session.id = %self.context.session, error = failure as &dyn std::error::Error, "a session cannot go on just now; trying again");
            }
        }
    }

    async fn take(&mut self, signal: Signal) {
        let _computes = self.context.core.computing.enter(self.context.session);
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
                    .phase
                    .driving()
                    .is_none_or(|driving| !driving.busy.contains_key(&operation))
                {
                    return;
                }
                match self.afford_attempt(operation, &wanted).await {
                    Ok(afforded) => drop(done.send(afforded)),
                    Err(failure) => self.keep_or_stumble(operation, failure),
                }
            }
            Signal::Cut {
                operation,
                cut,
                done,
            } => self.take_cut(operation, *cut, done).await,
            Signal::Answer {
                answer,
                request,
                done,
            } => {
                let with_key = answer.with_key.clone();
                under_key(with_key, done, self.answer(answer, request.as_ref())).await;
            }
            Signal::External(signal) => self.take_external(*signal).await,
            Signal::Compact {
                by,
                with_key,
                request,
                done,
            } => under_key(with_key, done, self.compact(&by, request.as_ref())).await,
            Signal::BringBack {
                back,
                with_key,
                request,
                done,
            } => {
                let bring_back = Box::pin(self.bring_back(&back, request.as_ref()));
                under_key(with_key, done, bring_back).await;
            }
            Signal::Abort {
                reason,
                with,
                with_key,
                done,
            } => under_key(with_key, done, Box::pin(self.abort(reason, &with))).await,
        }
    }

    /// Does everything that can be done now.
    async fn inspect(&mut self) -> Result<Inspection, DriverError> {
        loop {
            if self.context.core.stopping.is_cancelled() {
                return Ok(Inspection::Working);
            }
            if let Some(failure) = self.take_refused_attempt() {
                return Err(failure);
            }
            self.context.served = self.context.core.served();
            self.record_afterwards().await?;
            if self.keeps_panicking() {
                self.give_up().await?;
                continue;
            }
            if !self.refresh().await? {
                self.end_place();
                if self.expire_idle().await?
                    || self.read_if_due().await?
                    || self.compact_if_due().await?
                {
                    continue;
                }
                let opening = self.context.opening().await?;
                let session = self.phase.take_idle();
                let (Some(opening), Some(session)) = (opening, session) else {
                    self.ticket = None;
                    self.place = None;
                    self.context.core.recovering.take(self.context.session);
                    return Ok(Inspection::Waiting);
                };
                self.start(opening, session).await?;
                continue;
            }
            if self.recover().await? || self.check_limits().await? || self.interrupt().await? {
                continue;
            }
            if self.resumes_work() && !self.takes_place() {
                return Ok(Inspection::Working);
            }
            self.record_continued().await?;
            self.record_calls().await?;
            self.attend().await?;
            let words = self.joinable_inputs().await?;
            let Some(driving) = self.phase.driving_mut() else {
                continue;
            };
            let arrived = driving.settlements();
            let rests = driving.rests();
            let steps = !rests && wakes(&driving.run, &arrived, !words.is_empty());
            if !steps {
                self.ticket = None;
                self.give_up_waiting_place();
            }
            if steps {
                if !self.try_step(words).await? {
                    return Ok(Inspection::Working);
                }
            } else if let Some(inspection) =
                self.go_without_step(!arrived.is_empty(), rests).await?
            {
                return Ok(inspection);
            }
        }
    }

    /// Takes the next step. False when its turn is not there yet.
    async fn try_step(&mut self, words: Vec<InputAccepted>) -> Result<bool, DriverError> {
        let stepped = if self.takes_place() {
            self.step(words).await
        } else {
            Ok(false)
        };
        if matches!(stepped, Ok(true)) {
            self.use_place();
        }
        // Work that waits for this run's buckets may occupy the place that the step waits for.
        if matches!(stepped, Ok(false) | Err(DriverError::Busy))
            && self
                .phase
                .driving()
                .is_some_and(Driving::keeps_others_waiting)
        {
            self.record_what_is_done().await?;
        }
        stepped
    }

    /// Continues a run that takes no step now. None when the run has to be checked again.
    async fn go_without_step(
        &mut self,
        has_arrived: bool,
        rests: bool,
    ) -> Result<Option<Inspection>, DriverError> {
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(None);
        };
        if !driving.put_off.is_empty() {
            // No step that stops them will be recorded.
            driving.put_off.clear();
            return Ok(None);
        }
        if has_arrived {
            self.settle().await?;
            return Ok(None);
        }
        if !rests && self.end_as_deferred().await? {
            return Ok(None);
        }
        let Some(driving) = self.phase.driving() else {
            return Ok(None);
        };
        if !driving.busy.is_empty() || rests {
            return Ok(Some(Inspection::Working));
        }
        if !driving.entries.is_empty() {
            // No other commit may follow that takes the entries along.
            self.record_entries().await?;
            return Ok(None);
        }
        // A run that only waits for others must not block another message of its agent.
        self.place = None;
        Ok(Some(Inspection::Waiting))
    }

    /// Returns the messages that wait and can be taken into the open run now.
    ///
    /// These are messages that steer, and only while the agent takes them in. A run's first step
    /// takes in the inputs that its start claimed.
    async fn joinable_inputs(&self) -> Result<Vec<InputAccepted>, DriverError> {
        let driving = match &self.phase {
            Phase::Unknown | Phase::Idle(_) => return Ok(Vec::new()),
            Phase::Starting(starting) => return Ok(starting.inputs.clone()),
            Phase::Running(running) => &running.driving,
        };
        if driving.run.step == 0 {
            return self.context.claimed(&driving.run.claimed).await;
        }
        if !driving.run.wait.is_some_and(|(_, hear)| hear) {
            return Ok(Vec::new());
        }
        self.joining().await
    }
}

/// Executes a command under the API key of its request, and answers it. The command's caller may
/// have been dropped; it is executed all the same.
async fn under_key<T>(
    key: Option<KeyId>,
    done: oneshot::Sender<Result<T, DriverError>>,
    act: impl Future<Output = Result<T, DriverError>>,
) {
    let result = store::under_api_key(key, act).await;
    let _ = done.send(result);
}

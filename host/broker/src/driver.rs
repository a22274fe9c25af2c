//! One session's driver: claim, step, commit, perform, until there is nothing to do but wait.
//!
//! All state is in the store; a driver is its cached fold and the list of what is being worked on. It is made when a session has something
//! to do and retires when it only waits. Whatever it does not finish is found again by folding the run.

mod afford;
mod busy;
mod claim;
mod commit;
mod compacting;
mod end;
mod entry;
mod fold;
mod frozen;
mod handover;
mod late;
mod limits;
mod panicked;
mod perform;
mod queue;
mod record;
mod resolve;
mod step;
mod story;
mod talk;

use crate::command::Request;
use crate::core::Core;
use crate::driver::busy::Busy;
pub(crate) use crate::driver::fold::{load_caller, load_run, snapshot};
pub(crate) use crate::driver::frozen::{NONE_BEFORE, NOTHING};
pub(crate) use crate::driver::late::waiting_for;
pub(crate) use crate::driver::perform::{CameTo, Performed};
use crate::driver::record::ClientAnswer;
use crate::outfit::Sealed;
use crate::panics::caught;
use domain::event::{Event, InputAccepted};
use domain::id::{InputId, OperationId, RunId, SessionId, TurnId};
use domain::operation::{Continuation, Settlement};
use domain::refusal::Refusal;
use domain::run::Run;
use domain::run::intake::wakes;
use domain::run::recover::{Next, ready};
use domain::step::Outcome;
use domain::time::Timestamp;
use domain::user::UserId;
use domain::widget::upload::Brought;
use runtime::Hold;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::{AgentRow, CommitError, Guard, Key, ReadError, SessionRow};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How long a driver waits at most before it looks again, in milliseconds.
const PATIENCE_MS: u64 = 600_000;
/// The first pause after trouble with the store, in milliseconds; it doubles up to [`TROUBLE_MS_MAX`].
const TROUBLE_MS: u64 = 50;
/// The longest pause after trouble with the store, in milliseconds.
const TROUBLE_MS_MAX: u64 = 5_000;

/// What a driver is told.
pub(crate) enum Signal {
    /// Something may have changed: look.
    Look,
    /// A segment of an operation came to something.
    Performed { operation: OperationId, segment: u32, performed: Box<Performed> },
    /// A client answers; its schema has been checked. `files` are those that it brings along.
    Answer {
        call: OperationId,
        by: UserId,
        value: Value,
        files: Vec<Brought>,
        request: Option<Request>,
        done: oneshot::Sender<Result<u64, Trouble>>,
    },
    /// Compact the thread, if no run is open.
    Compact { by: UserId, request: Option<Request>, done: oneshot::Sender<Result<RunId, Trouble>> },
    /// End the open run.
    Abort { reason: String, key: Option<Key>, done: oneshot::Sender<Result<bool, Trouble>> },
}

/// Why something could not be done just now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
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

/// What is committed together with what came of a piece of work.
#[derive(Clone, Default)]
pub(crate) struct Beside {
    /// Blobs that it mentions.
    pub(crate) blobs: Vec<Vec<u8>>,
    /// Further events of the run's stream, which its fold passes over: what the boundary decided, what was written to buckets.
    pub(crate) events: Vec<Event>,
    /// The buckets that were written: let go when the last clone of this is dropped, and so after the commit, or when it is given up.
    pub(crate) holds: Vec<Hold>,
}

impl Beside {
    /// The same for work that failed after all: nothing was written to buckets.
    pub(crate) fn unwritten(mut self) -> Self {
        self.events.retain(|event| !matches!(event, Event::KeyValueWritten(_)));
        self.holds.clear();
        self
    }
}

/// A run that is being driven.
pub(crate) struct Driving {
    pub(crate) run: Run,
    pub(crate) version: u64,
    /// Outcomes that are not recorded yet.
    pub(crate) arrived: Vec<(Settlement, Beside)>,
    /// What is being worked on. The work ends with its entry.
    pub(crate) busy: HashMap<OperationId, Busy>,
    /// Entries of the ledger that go into the next commit: of work that was stopped, and of a step that has to wait.
    pub(crate) entries: Vec<Event>,
    /// Segments that ended with another to come, and are not recorded yet.
    pub(crate) continued: Vec<(Continuation, Beside)>,
    /// The inputs that it began with, while its start is not stored yet.
    pub(crate) opening: Vec<InputAccepted>,
    /// Its agent as it was when the run began, for the first step.
    pub(crate) agent: Option<AgentRow>,
    /// Whether somebody is known to wait for its reply still, or nobody ever did.
    pub(crate) wanted: bool,
    /// When to step again, after the host could not do its part of a step, or while the agent's component has used up its calls.
    pub(crate) rests_until: Option<Instant>,
    /// The limits of which the ledger has it already that they keep the next step waiting.
    pub(crate) waits_told: Vec<String>,
    /// Operations whose work was stopped by a step that is not recorded yet: they are not begun again before it is.
    pub(crate) put_off: HashSet<OperationId>,
    /// What of its prompt and settings is its agent's own, or its session's; while its start is not stored yet.
    pub(crate) overrides: Option<Sealed>,
    /// Under what it begins, besides what holds for every run.
    pub(crate) begins_under: Option<Guard>,
    /// Tokens of the thread before it as its models are shown it, once they were estimated.
    pub(crate) thread_tokens: OnceLock<u64>,
}

impl Driving {
    /// A run that begins over inputs. Nothing of it is stored yet.
    fn beginning(run: Run, opening: Vec<InputAccepted>, agent: AgentRow, overrides: Option<Sealed>) -> Self {
        Self { opening, agent: Some(agent), overrides, ..Self::going_on(run, 0, Vec::new()) }
    }

    /// A run as it was found in the store, with what the ledger is to have of it.
    fn going_on(run: Run, version: u64, entries: Vec<Event>) -> Self {
        Self {
            run,
            version,
            arrived: Vec::new(),
            busy: HashMap::new(),
            entries,
            continued: Vec::new(),
            opening: Vec::new(),
            agent: None,
            wanted: false,
            rests_until: None,
            waits_told: Vec::new(),
            put_off: HashSet::new(),
            overrides: None,
            begins_under: None,
            thread_tokens: OnceLock::new(),
        }
    }

    fn settlements(&self) -> Vec<Settlement> {
        self.arrived.iter().map(|(settlement, _)| settlement.clone()).collect()
    }

    /// The blobs of what has arrived.
    fn blobs(&self) -> Vec<Vec<u8>> {
        self.arrived.iter().flat_map(|(_, beside)| beside.blobs.iter().cloned()).collect()
    }

    /// The further events of what has arrived.
    fn beside(&self) -> impl Iterator<Item = Event> {
        self.arrived.iter().flat_map(|(_, beside)| beside.events.iter().cloned())
    }

    /// Stops the work on some operations. What the boundary decided until then goes into the next commit.
    async fn stop(&mut self, operations: impl IntoIterator<Item = OperationId>, now: Timestamp) {
        let operations: Vec<OperationId> = operations.into_iter().filter(|operation| self.busy.contains_key(operation)).collect();
        let busy: Vec<Busy> = operations.iter().filter_map(|operation| self.busy.remove(operation)).collect();
        self.put_off.extend(operations);
        let entries = futures::future::join_all(busy.into_iter().map(|busy| busy.stopped(now))).await;
        self.entries.extend(entries.into_iter().flatten());
    }

    /// Stops all work.
    async fn stop_all(&mut self, now: Timestamp) {
        let all: Vec<OperationId> = self.busy.keys().copied().collect();
        self.stop(all, now).await;
    }

    /// Everything that the ledger is to have of a run that is forgotten here, and is not recorded yet.
    async fn into_ledger(mut self, now: Timestamp) -> Owed {
        self.stop_all(now).await;
        let run = self.run.started.run;
        let came = self.arrived.into_iter().map(|(_, beside)| beside).chain(self.continued.into_iter().map(|(_, beside)| beside));
        let decided = came.flat_map(|beside| beside.events).filter(|event| matches!(event, Event::BoundaryDecided(_)));
        Owed { run, version: self.version, entries: self.entries.into_iter().chain(decided).collect() }
    }

    /// Whether it is too early for another step.
    fn rests(&mut self) -> bool {
        self.rests_until = self.rests_until.filter(|until| *until > Instant::now());
        self.rests_until.is_some()
    }

    /// Whether others may wait for buckets until what has arrived is recorded.
    fn keeps_others_waiting(&self) -> bool {
        self.arrived.iter().any(|(_, beside)| !beside.holds.is_empty())
    }

    fn has_arrived(&self, operation: OperationId) -> bool {
        self.arrived.iter().any(|(settlement, _)| settlement.operation == operation)
    }

    /// Whether somebody is working on an operation, or what came of the work is about to be recorded.
    fn is_seen_to(&self, operation: OperationId) -> bool {
        self.busy.contains_key(&operation)
            || self.put_off.contains(&operation)
            || self.has_arrived(operation)
            || self.continued.iter().any(|(continuation, _)| continuation.operation == operation)
    }
}

/// What the ledger is to have of a run, when nobody can say how much of it is recorded.
struct Owed {
    run: RunId,
    /// Of the run's stream. What stands before it is not among the entries.
    version: u64,
    entries: Vec<Event>,
}

pub(crate) struct Driver {
    core: Arc<Core>,
    session: SessionId,
    mailbox: mpsc::Sender<Signal>,
    inbox: mpsc::Receiver<Signal>,
    driving: Option<Driving>,
    /// The session as it was when no run of it was open.
    idle: Option<SessionRow>,
    /// The turn after which its thread needs no compaction, or none that would be tried again.
    roomy: Option<TurnId>,
    /// Whether others may have written to the run's stream since it was folded.
    stale: bool,
    /// Panics in a row, with nothing recorded in between.
    panics: u32,
    /// What the ledger is to have of a run that a panic made it forget.
    owed: Option<Owed>,
}

/// What a look came to.
enum Look {
    /// Work is going on: wait for it.
    Working,
    /// Nothing to do until somebody or some time says so.
    Waiting,
}

impl Driver {
    pub(crate) fn new(core: Arc<Core>, session: SessionId, mailbox: mpsc::Sender<Signal>, inbox: mpsc::Receiver<Signal>) -> Self {
        Self { core, session, mailbox, inbox, driving: None, idle: None, roomy: None, stale: true, panics: 0, owed: None }
    }

    /// Drives until there is nothing to do but wait, or the host stops.
    pub(crate) async fn drive(mut self) {
        while let Err(panic) = Box::pin(caught(self.keep_on())).await {
            self.begin_anew(&panic).await;
            if self.core.stopping.is_cancelled() {
                // There is no successor who could record what the ledger is to have.
                let _ = Box::pin(caught(self.record_what_is_owed())).await;
                return;
            }
        }
    }

    async fn keep_on(&mut self) {
        let mut trouble_ms = TROUBLE_MS;
        loop {
            if self.core.stopping.is_cancelled() {
                return self.wind_up().await;
            }
            let mut pause = None;
            match self.look().await {
                Ok(Look::Working) => trouble_ms = TROUBLE_MS,
                Ok(Look::Waiting) => {
                    trouble_ms = TROUBLE_MS;
                    if self.inbox.is_empty() {
                        return self.leave().await;
                    }
                }
                Err(trouble) => {
                    // Whoever speaks to this driver is heard in the meantime.
                    self.stumble(&trouble);
                    pause = Some(Duration::from_millis(trouble_ms));
                    trouble_ms = (trouble_ms * 2).min(TROUBLE_MS_MAX);
                }
            }
            let (core, patience) = (self.core.clone(), pause.unwrap_or_else(|| self.patience()));
            tokio::select! {
                signal = self.inbox.recv() => match signal {
                    Some(signal) => self.take(signal).await,
                    None => return,
                },
                () = core.stopping.cancelled() => {}
                () = tokio::time::sleep(patience) => {}
            }
            while let Ok(signal) = self.inbox.try_recv() {
                self.take(signal).await;
            }
        }
    }

    /// How long to wait for a signal before looking again: until the run's active time is used up, or it has rested. All other times are
    /// timers of the store.
    fn patience(&self) -> Duration {
        let active = self.driving.as_ref().filter(|driving| driving.run.is_active());
        let active_ms = active.map_or(PATIENCE_MS, |driving| driving.run.active_ms_left(self.core.now()).clamp(1, PATIENCE_MS));
        let rest =
            self.driving.as_ref().and_then(|driving| driving.rests_until).map(|until| until.saturating_duration_since(Instant::now()));
        Duration::from_millis(active_ms).min(rest.unwrap_or(Duration::MAX))
    }

    /// The host is stopping: begin nothing, but record the outcome of what is being worked on, as long as there is time.
    async fn wind_up(&mut self) {
        let core = self.core.clone();
        while self.driving.as_ref().is_some_and(|driving| !driving.busy.is_empty()) {
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
        if let Err(trouble) = self.record_what_is_left().await {
            self.stumble(&trouble);
        }
        self.leave().await;
    }

    async fn record_what_is_owed(&mut self) {
        let recorded = match self.refresh().await {
            Ok(true) => self.record_what_is_left().await,
            Ok(false) => Ok(()),
            Err(trouble) => Err(trouble),
        };
        if let Err(trouble) = recorded {
            self.stumble(&trouble);
        }
    }

    /// Stops driving. Signals that came in the last moment go to a successor.
    async fn leave(&mut self) {
        self.core.retire(self.session, &self.mailbox);
        self.inbox.close();
        self.driving = None;
        while let Some(signal) = self.inbox.recv().await {
            let core = self.core.clone();
            Box::pin(core.signal(self.session, signal)).await;
        }
    }

    /// After a conflict or trouble the cached fold may be out of date: forget what is not being worked on and fold again.
    fn stumble(&mut self, trouble: &Trouble) {
        self.stale = true;
        match trouble {
            Trouble::Commit(CommitError::Conflict(conflict)) => {
                tracing::debug!(session.id = %self.session, ?conflict, "somebody else was first; folding again");
            }
            Trouble::Busy => tracing::debug!(session.id = %self.session, "the runtime is full; trying again"),
            trouble => {
                tracing::warn!(session.id = %self.session, error = trouble as &dyn std::error::Error, "a session cannot go on just now; trying again");
            }
        }
    }

    async fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Look => self.stale = true,
            Signal::Performed { operation, segment, performed } => {
                self.performed(operation, segment, *performed);
            }
            Signal::Answer { call, by, value, files, request, done } => {
                let result = self.answer(ClientAnswer { call, by, value, files }, request.as_ref()).await;
                // Whoever asked may have gone; the answer is recorded all the same.
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
    async fn look(&mut self) -> Result<Look, Trouble> {
        loop {
            if self.core.stopping.is_cancelled() {
                return Ok(Look::Working);
            }
            if self.keeps_panicking() {
                self.give_up().await?;
                continue;
            }
            if !self.refresh().await? {
                if self.expire_idle().await? || self.compact_if_due().await? {
                    continue;
                }
                let (Some(opening), Some(session)) = (self.opening().await?, self.idle.take()) else { return Ok(Look::Waiting) };
                self.start(opening, session).await?;
                continue;
            }
            if self.check_limits().await? || self.interrupt().await? {
                continue;
            }
            self.record_continued().await?;
            self.attend().await?;
            let words = self.words().await?;
            let Some(driving) = &mut self.driving else { continue };
            let (arrived, rests) = (driving.settlements(), driving.rests());
            if !rests && wakes(&driving.run, &arrived, !words.is_empty()) {
                let stepped = self.step(words).await;
                // The place that the step wants may be taken by those who wait for the buckets that it would let go.
                if matches!(stepped, Err(Trouble::Busy)) && self.driving.as_ref().is_some_and(Driving::keeps_others_waiting) {
                    self.record_what_is_done().await?;
                }
                stepped?;
            } else if !driving.put_off.is_empty() {
                // No step will be recorded that stops them.
                driving.put_off.clear();
            } else if !arrived.is_empty() {
                self.settle().await?;
            } else if rests || !self.end_as_held().await? {
                let Some(driving) = &self.driving else { continue };
                return Ok(if driving.busy.is_empty() && !rests { Look::Waiting } else { Look::Working });
            }
        }
    }

    /// Words that wait and can be taken into the open run now: those that steer, and only where the agent hears them. A run's first step
    /// takes in what its start claimed.
    async fn words(&self) -> Result<Vec<InputAccepted>, Trouble> {
        let Some(driving) = &self.driving else { return Ok(Vec::new()) };
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

    async fn claimed(&self, inputs: &[InputId]) -> Result<Vec<InputAccepted>, Trouble> {
        let mut claimed = Vec::new();
        for id in inputs {
            let (input, _) = self.core.store.input(*id).await?.ok_or_else(|| Trouble::Missing(format!("input {id}")))?;
            claimed.push(input);
        }
        Ok(claimed)
    }

    /// Sees to operations that nobody is working on.
    async fn attend(&mut self) -> Result<(), Trouble> {
        let Some(driving) = &self.driving else { return Ok(()) };
        let (now, run) = (self.core.now(), driving.run.started.run);
        let busy = |id: OperationId| driving.is_seen_to(id);
        for (operation, next) in ready(&driving.run, &busy, now) {
            match next {
                Next::Settle(mut settlement) => {
                    if let Some(driving) = &self.driving {
                        Box::pin(self.charge_what_is_known(driving, std::slice::from_mut(&mut *settlement))).await?;
                    }
                    if settlement.outcome == Outcome::Unknown {
                        let told = "work that must not be repeated was cut off; whether it took effect is unknown";
                        tracing::warn!(session.id = %self.session, run.id = %run, operation.id = %operation, "{told}");
                    }
                    if let Some(driving) = &mut self.driving {
                        driving.arrived.push((*settlement, Beside::default()));
                    }
                }
                Next::Perform { record_first } => {
                    if record_first {
                        self.record_started(operation, now).await?;
                    }
                    self.perform(operation);
                }
                Next::Wait { .. } => {}
            }
        }
        Ok(())
    }
}

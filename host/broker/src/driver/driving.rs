//! A run that is being driven: its cached fold, what is worked on for it, and what has come of that and is not recorded yet.

use super::Beside;
use super::busy::Busy;
use super::stopwatch::Stopwatch;
use crate::outfit::Sealed;
use domain::event::{Event, InputAccepted};
use domain::id::{OperationId, RunId};
use domain::operation::{Continuation, Settlement};
use domain::run::Run;
use domain::time::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use store::{AgentRow, Guard};
use tokio::time::Instant;

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
    /// Measures how long models and tools were at work for it.
    pub(crate) stopwatch: Stopwatch,
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
    /// Calls of models that were started here and of which no attempt has been made. Of all others an attempt may have been sent.
    pub(crate) unsent: HashSet<OperationId>,
    /// What of its prompt and settings is its agent's own, or its session's; while its start is not stored yet.
    pub(crate) overrides: Option<Sealed>,
    /// Under what it begins, besides what holds for every run.
    pub(crate) begins_under: Option<Guard>,
    /// Tokens of the thread before it as its models are shown it, once they were estimated.
    pub(crate) thread_tokens: OnceLock<u64>,
}

impl Driving {
    /// A run that begins over inputs. Nothing of it is stored yet.
    pub(super) fn beginning(run: Run, opening: Vec<InputAccepted>, agent: AgentRow, overrides: Option<Sealed>) -> Self {
        Self { opening, agent: Some(agent), overrides, ..Self::going_on(run, 0, Vec::new()) }
    }

    /// A run as it was found in the store, with what the ledger is to have of it.
    pub(super) fn going_on(run: Run, version: u64, entries: Vec<Event>) -> Self {
        Self {
            run,
            version,
            arrived: Vec::new(),
            busy: HashMap::new(),
            stopwatch: Stopwatch::default(),
            entries,
            continued: Vec::new(),
            opening: Vec::new(),
            agent: None,
            wanted: false,
            rests_until: None,
            waits_told: Vec::new(),
            put_off: HashSet::new(),
            unsent: HashSet::new(),
            overrides: None,
            begins_under: None,
            thread_tokens: OnceLock::new(),
        }
    }

    /// Has the first of some outcomes, which are about to be recorded, carry the active time that none has yet; how much that is.
    pub(super) fn charge_active_time<'a>(&self, outcomes: impl IntoIterator<Item = &'a mut Settlement>) -> u64 {
        let Some(first) = outcomes.into_iter().next() else { return 0 };
        first.active_ms = self.stopwatch.unrecorded_ms();
        first.active_ms
    }

    pub(super) fn settlements(&self) -> Vec<Settlement> {
        self.arrived.iter().map(|(settlement, _)| settlement.clone()).collect()
    }

    /// The blobs of what has arrived.
    pub(super) fn blobs(&self) -> Vec<Vec<u8>> {
        self.arrived.iter().flat_map(|(_, beside)| beside.blobs.iter().cloned()).collect()
    }

    /// The further events of what has arrived.
    pub(super) fn beside(&self) -> impl Iterator<Item = Event> {
        self.arrived.iter().flat_map(|(_, beside)| beside.events.iter().cloned())
    }

    /// Notes what the boundary decided so far about the work on operations that the next commit ends. The work is stopped once that is
    /// durable, and goes on if it does not come to that.
    pub(super) fn note_so_far(&mut self, operations: &[OperationId], now: Timestamp) {
        let so_far = operations.iter().filter_map(|operation| self.busy.get_mut(operation)?.so_far(now));
        self.entries.extend(so_far);
    }

    /// Stops the work on operations that are over, as is stored. What the boundary decided since is to be recorded too.
    pub(super) async fn stop_what_is_over(&mut self, now: Timestamp) {
        let over: Vec<OperationId> = self.busy.keys().copied().filter(|operation| !self.run.open.contains_key(operation)).collect();
        self.stop(over, now).await;
        self.put_off.clear();
        self.drop_what_is_settled();
    }

    /// Stops the work on some operations. What the boundary decided until then goes into the next commit.
    pub(super) async fn stop(&mut self, operations: impl IntoIterator<Item = OperationId>, now: Timestamp) {
        let operations: Vec<OperationId> = operations.into_iter().filter(|operation| self.busy.contains_key(operation)).collect();
        let busy: Vec<Busy> = operations.iter().filter_map(|operation| self.busy.remove(operation)).collect();
        self.put_off.extend(operations);
        let entries = futures::future::join_all(busy.into_iter().map(|busy| busy.stopped(now))).await;
        self.entries.extend(entries.into_iter().flatten());
    }

    /// Stops all work.
    pub(super) async fn stop_all(&mut self, now: Timestamp) {
        let all: Vec<OperationId> = self.busy.keys().copied().collect();
        self.stop(all, now).await;
    }

    /// Everything that the ledger is to have of a run that is forgotten here, and is not recorded yet.
    pub(super) async fn into_ledger(mut self, now: Timestamp) -> Owed {
        self.stop_all(now).await;
        let run = self.run.started.run;
        let came = self.arrived.into_iter().map(|(_, beside)| beside).chain(self.continued.into_iter().map(|(_, beside)| beside));
        let decided = came.flat_map(|beside| beside.events).filter(|event| matches!(event, Event::BoundaryDecided(_)));
        Owed { run, version: self.version, entries: self.entries.into_iter().chain(decided).collect() }
    }

    /// Whether it is too early for another step.
    pub(super) fn rests(&mut self) -> bool {
        self.rests_until = self.rests_until.filter(|until| *until > Instant::now());
        self.rests_until.is_some()
    }

    /// Whether others may wait for buckets until what has arrived is recorded.
    pub(super) fn keeps_others_waiting(&self) -> bool {
        self.arrived.iter().any(|(_, beside)| !beside.holds.is_empty())
    }

    pub(super) fn has_arrived(&self, operation: OperationId) -> bool {
        self.arrived.iter().any(|(settlement, _)| settlement.operation == operation)
    }

    /// Whether somebody is working on an operation, or what came of the work is about to be recorded.
    pub(super) fn is_seen_to(&self, operation: OperationId) -> bool {
        self.busy.contains_key(&operation)
            || self.put_off.contains(&operation)
            || self.has_arrived(operation)
            || self.continued.iter().any(|(continuation, _)| continuation.operation == operation)
    }
}

/// What the ledger is to have of a run, when nobody can say how much of it is recorded.
pub(super) struct Owed {
    pub(super) run: RunId,
    /// Of the run's stream. What stands before it is not among the entries.
    pub(super) version: u64,
    pub(super) entries: Vec<Event>,
}

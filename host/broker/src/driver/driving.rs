//! A run that is being driven: its cached fold, its work under way, and outcomes not recorded yet.

use super::subscribers::Subscribers;
use crate::journal::Context;
use crate::performance::busy::Busy;
use crate::performance::result::{CommitExtras, Thread, WantedCall};
use crate::performance::stopwatch::Stopwatch;
use domain::event::{Event, InputAccepted};
use domain::id::{OperationId, RunId, Stream};
use domain::operation::{Continuation, Settlement};
use domain::run::Run;
use domain::sections::Section;
use domain::time::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// Estimated tokens of a thread that is kept in memory while its run is driven.
pub(super) const THREAD_TOKENS_KEPT: u64 = 65_536;

/// A run that is being driven.
pub(crate) struct Driving {
    pub(crate) run: Run,
    /// Outcomes that are not recorded yet.
    pub(crate) arrived: Vec<(Settlement, CommitExtras)>,
    /// The work under way. It stops when its entry is dropped.
    pub(crate) busy: HashMap<OperationId, Busy>,
    /// The ledger's entries for the next commit: of stopped work, and of a step that has to wait.
    pub(crate) entries: Vec<Event>,
    /// The stopwatch of the time that models and tools worked for it.
    pub(crate) stopwatch: Stopwatch,
    /// Segments that ended, with another to follow, and are not recorded yet.
    pub(crate) continued: Vec<(Continuation, CommitExtras)>,
    /// Calls that command lines need, which are not recorded yet.
    pub(crate) calls: Vec<(WantedCall, CommitExtras)>,
    /// True once the run was found to be wanted: a caller still waits for it, or it never had one.
    pub(crate) wanted: bool,
    /// The time of the next step, if the run is paused: after a fault of the host's, or after too
    /// many calls of the agent's component.
    pub(crate) rests_until: Option<Instant>,
    /// The limits that keep the next step waiting and of which the ledger has an entry already.
    pub(crate) waits_reported: Vec<String>,
    /// Operations whose work was stopped by a step that is not recorded yet. They are not restarted
    /// before that.
    pub(crate) put_off: HashSet<OperationId>,
    /// Calls of models that were started here and had no attempt yet. Any other call may have been
    /// sent.
    pub(crate) unsent: HashSet<OperationId>,
    /// The estimate of its thread's tokens, as its models are shown it, once it was made.
    pub(crate) thread_tokens: OnceLock<u64>,
    /// The messages of the thread before it that a model is shown, if they were read and are not
    /// large.
    pub(crate) thread: OnceLock<Arc<Thread>>,
    /// The sections of its prompts, once a model was asked, if they are not large.
    pub(crate) sections: Arc<OnceLock<Vec<Section>>>,
    /// The people outside who receive its replies.
    pub(crate) subscribers: Subscribers,
}

impl Driving {
    /// Creates the state of a run of which nothing is at work, with entries that the ledger still
    /// lacks.
    pub(super) fn new(run: Run, entries: Vec<Event>) -> Self {
        Self {
            run,
            arrived: Vec::new(),
            busy: HashMap::new(),
            stopwatch: Stopwatch::default(),
            entries,
            continued: Vec::new(),
            calls: Vec::new(),
            wanted: false,
            rests_until: None,
            waits_reported: Vec::new(),
            put_off: HashSet::new(),
            unsent: HashSet::new(),
            thread_tokens: OnceLock::new(),
            thread: OnceLock::new(),
            sections: Arc::default(),
            subscribers: Subscribers::default(),
        }
    }

    /// Returns the same run with the subscribers of these inputs, with which it begins.
    pub(super) fn heard_by(self, inputs: &[InputAccepted]) -> Self {
        Self {
            subscribers: Subscribers::of(inputs),
            ..self
        }
    }

    /// Returns the properties of events about the run.
    pub(super) fn context(&self, time: Timestamp) -> Context {
        Context::of_run(&self.run.started, time)
    }

    /// Returns the run's own stream.
    pub(super) fn stream(&self) -> Stream {
        Stream::Run(self.run.started.run)
    }

    /// Charges the unrecorded active time to the first of some outcomes. Returns the time in
    /// milliseconds.
    ///
    /// The outcomes are about to be recorded.
    pub(super) fn charge_active_time<'a>(
        &self,
        outcomes: impl IntoIterator<Item = &'a mut Settlement>,
    ) -> u64 {
        let Some(first) = outcomes.into_iter().next() else {
            return 0;
        };
        first.active_ms = self.stopwatch.unrecorded_ms();
        first.active_ms
    }

    pub(super) fn settlements(&self) -> Vec<Settlement> {
        self.arrived
            .iter()
            .map(|(settlement, _)| settlement.clone())
            .collect()
    }

    /// Returns the blobs of the outcomes that have arrived.
    pub(super) fn blobs(&self) -> Vec<Vec<u8>> {
        self.arrived
            .iter()
            .flat_map(|(_, extras)| extras.blobs.iter().cloned())
            .collect()
    }

    /// Returns the further events of the outcomes that have arrived.
    pub(super) fn extras(&self) -> impl Iterator<Item = Event> {
        self.arrived
            .iter()
            .flat_map(|(_, extras)| extras.events.iter().cloned())
    }

    /// Notes the boundary's decisions so far about work that the next commit ends.
    ///
    /// The work is stopped once that commit is durable, and continues if the commit does not land.
    pub(super) fn note_so_far(&mut self, operations: &[OperationId], now: Timestamp) {
        let so_far = operations
            .iter()
            .filter_map(|operation| self.busy.get_mut(operation)?.so_far(now));
        self.entries.extend(so_far);
    }

    /// Stops the work on operations that are over, which is stored already. The boundary's
    /// decisions since then are recorded, too.
    pub(super) async fn stop_what_is_over(&mut self, now: Timestamp) {
        let over: Vec<OperationId> = self
            .busy
            .keys()
            .copied()
            .filter(|operation| !self.run.open.contains_key(operation))
            .collect();
        self.stop(over, now).await;
        self.put_off.clear();
        self.drop_what_is_settled();
    }

    /// Forgets the results of work on operations that have their outcome. The work itself was
    /// stopped before that was recorded.
    pub(super) fn drop_what_is_settled(&mut self) {
        let open = &self.run.open;
        self.arrived
            .retain(|(settlement, _)| open.contains_key(&settlement.operation));
        self.continued
            .retain(|(continuation, _)| open.contains_key(&continuation.operation));
        self.calls.retain(|(call, _)| open.contains_key(&call.line));
        self.busy
            .retain(|operation, _| open.contains_key(operation));
    }

    /// Stops the work on some operations. The boundary's decisions until then go into the next
    /// commit.
    pub(super) async fn stop(
        &mut self,
        operations: impl IntoIterator<Item = OperationId>,
        now: Timestamp,
    ) {
        let operations: Vec<OperationId> = operations
            .into_iter()
            .filter(|operation| self.busy.contains_key(operation))
            .collect();
        let busy: Vec<Busy> = operations
            .iter()
            .filter_map(|operation| self.busy.remove(operation))
            .collect();
        self.put_off.extend(operations);
        let entries =
            futures::future::join_all(busy.into_iter().map(|busy| busy.stopped(now))).await;
        self.entries.extend(entries.into_iter().flatten());
    }

    /// Stops all work.
    pub(super) async fn stop_all(&mut self, now: Timestamp) {
        let all: Vec<OperationId> = self.busy.keys().copied().collect();
        self.stop(all, now).await;
    }

    /// Stops all work, and returns the ledger's entries that are not recorded yet. The run is
    /// stored up to the version, and forgotten here.
    pub(super) async fn into_ledger(mut self, version: u64, now: Timestamp) -> Owed {
        self.stop_all(now).await;
        let run = self.run.started.run;
        let finished = self
            .arrived
            .into_iter()
            .map(|(_, extras)| extras)
            .chain(self.continued.into_iter().map(|(_, extras)| extras));
        let decided = finished
            .flat_map(|extras| extras.events)
            .filter(|event| matches!(event, Event::BoundaryDecided(_)));
        Owed {
            run,
            version,
            entries: self.entries.into_iter().chain(decided).collect(),
        }
    }

    /// Returns whether it is too early for another step.
    pub(super) fn rests(&mut self) -> bool {
        self.rests_until = self.rests_until.filter(|until| *until > Instant::now());
        self.rests_until.is_some()
    }

    /// Returns whether others may wait for buckets until the outcomes that have arrived are
    /// recorded.
    pub(super) fn keeps_others_waiting(&self) -> bool {
        self.arrived
            .iter()
            .any(|(_, extras)| !extras.holds.is_empty())
    }

    pub(super) fn has_arrived(&self, operation: OperationId) -> bool {
        self.arrived
            .iter()
            .any(|(settlement, _)| settlement.operation == operation)
    }

    /// Returns whether an operation is being worked on, or the result of its work is about to be
    /// recorded.
    pub(super) fn is_seen_to(&self, operation: OperationId) -> bool {
        self.busy.contains_key(&operation)
            || self.put_off.contains(&operation)
            || self.has_arrived(operation)
            || self.calls.iter().any(|(call, _)| call.line == operation)
            || self
                .continued
                .iter()
                .any(|(continuation, _)| continuation.operation == operation)
    }
}

/// The ledger's entries of a run, of which some may be recorded already.
pub(super) struct Owed {
    pub(super) run: RunId,
    /// The version of the run's stream. Events up to it are not among the entries.
    pub(super) version: u64,
    pub(super) entries: Vec<Event>,
}

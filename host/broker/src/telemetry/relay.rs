//! The task that sends telemetry to listeners.

use super::{Telemetry, Untold};
use crate::core::Core;
use crate::panics::caught;
use domain::event::{Event, Recorded};
use domain::id::{RunId, Stream};
use domain::telemetry::{RunTally, telemetry_of};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::{EventFilter, ReadError, Store};
use tokio::sync::{mpsc, watch};

/// Number of events that are read at a time: a single one may have megabytes.
const PAGE: usize = 32;
/// Number of runs whose start data are remembered, because later events do not repeat them. Beyond
/// it the list is cleared, and a run's events are read again.
const RUNS_MAX: usize = 1_024;
/// Milliseconds until events are read again after too many reads waited.
const BUSY_MS: u64 = 50;
/// Milliseconds from a panic to the restart.
const PAUSE_MS: u64 = 1_000;

/// Tells until the broker stops. Does nothing while nobody listens.
pub(crate) async fn relay(core: Arc<Core>) {
    let telemetry = core.telemetry.clone();
    let Some(untold) = telemetry.receiver() else {
        return;
    };
    let mut relay = Relay {
        durable: core.store.durable(),
        store: core.store.clone(),
        telemetry: telemetry.clone(),
        waiting: Waiting {
            untold,
            first: None,
        },
        position: 0,
        runs: HashMap::new(),
    };
    let telling = async {
        loop {
            let ended = caught(relay.run()).await;
            let Err(panic) = ended else { return };
            tracing::error!(panic, "telling of telemetry panicked; it goes on");
            relay.runs.clear();
            relay.position = *relay.durable.borrow();
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
        }
    };
    tokio::select! {
        () = core.stopping.cancelled() => {}
        () = telling => {}
    }
    telemetry.close();
}

impl Telemetry {
    /// Takes the receiving end of the unsent events; none if it was already taken.
    fn receiver(&self) -> Option<mpsc::Receiver<Untold>> {
        self.shared
            .to_tell
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Ends the streams of all listeners.
    fn close(&self) {
        self.shared.places().clear();
    }
}

struct Relay {
    store: Store,
    durable: watch::Receiver<u64>,
    telemetry: Telemetry,
    waiting: Waiting,
    /// The last stored event that was sent.
    position: u64,
    runs: HashMap<RunId, RunTally>,
}

/// The events that are not stored and wait to be sent.
struct Waiting {
    untold: mpsc::Receiver<Untold>,
    /// The first of them, once it was received.
    first: Option<Untold>,
}

impl Waiting {
    /// Waits for the first, and returns the position of the last stored event before it. None when
    /// no more will follow. If dropped before its end, it has lost nothing.
    async fn first_after(&mut self) -> Option<u64> {
        if self.first.is_none() {
            self.first = self.untold.recv().await;
        }
        self.first.as_ref().map(|first| first.after)
    }

    /// Takes the first if it is already there, and happened before a position was stored.
    fn take_before(&mut self, position: u64) -> Option<Untold> {
        if self.first.is_none() {
            self.first = self.untold.try_recv().ok();
        }
        self.first.take_if(|first| first.after < position)
    }

    fn clear(&mut self) {
        self.first = None;
        while self.untold.try_recv().is_ok() {}
    }
}

impl Relay {
    /// Sends events while there is a listener. Ends with the store.
    async fn run(&mut self) {
        loop {
            while !self.telemetry.is_heard() {
                self.telemetry.shared.begun.notified().await;
            }
            while self.telemetry.is_heard() {
                if !self.tell_next().await {
                    return;
                }
            }
            self.runs.clear();
            self.waiting.clear();
        }
    }

    /// Sends the next events. Returns false when no more will follow.
    async fn tell_next(&mut self) -> bool {
        // Events from before the start of the first present listener are not sent.
        let from = self.telemetry.shared.from.load(Ordering::Relaxed);
        self.position = self.position.max(from);
        let until = *self.durable.borrow_and_update();
        self.tell_stored(until).await;
        tokio::select! {
            changed = self.durable.changed() => if changed.is_err() {
                return false;
            },
            after = self.waiting.first_after() => match after {
                Some(after) => {
                    // A decision is sent before its execution.
                    self.tell_stored(after).await;
                    self.tell_untold_before(after.saturating_add(1));
                }
                None => return false,
            },
            // The last listener may have left meanwhile.
            () = self.telemetry.shared.begun.notified() => {}
        }
        let unheard = self.telemetry.shared.unheard.swap(0, Ordering::Relaxed);
        if unheard > 0 {
            self.telemetry.shared.spread_loss(unheard);
        }
        true
    }

    /// Sends the waiting events that happened before a position was stored.
    fn tell_untold_before(&mut self, position: u64) {
        while let Some(Untold { after, event }) = self.waiting.take_before(position) {
            self.telemetry.shared.spread(after, &event);
        }
    }

    /// Sends stored events up to a position, each after the unstored events that happened before
    /// it: a call of a model is sent before the end of its run.
    async fn tell_stored(&mut self, until: u64) {
        while self.position < until && self.telemetry.is_heard() {
            let read = self
                .store
                .events(self.position, EventFilter::default(), PAGE);
            match read.await {
                Ok(page) if page.is_empty() => self.position = until,
                Ok(page) => {
                    for recorded in page {
                        self.tell_untold_before(recorded.position);
                        self.tell_of(&recorded).await;
                        self.position = recorded.position;
                    }
                }
                Err(ReadError::Busy) => tokio::time::sleep(Duration::from_millis(BUSY_MS)).await,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "stored events cannot be read for telemetry"
                    );
                    let lost = until.saturating_sub(self.position);
                    self.telemetry.shared.spread_loss(lost);
                    self.position = until;
                }
            }
        }
    }

    async fn tell_of(&mut self, recorded: &Recorded) {
        let nothing = RunTally::default();
        let run = recorded.subject.run.filter(|_| is_of_run(recorded));
        if let Some(run) = run {
            self.note(run, recorded).await;
        }
        let tally = run.and_then(|run| self.runs.get(&run)).unwrap_or(&nothing);
        for event in telemetry_of(recorded, tally) {
            let after = recorded.position.saturating_sub(1);
            self.telemetry.shared.spread(after, &event);
        }
        if let (Some(run), Some(Event::RunEnded(_))) = (run, &recorded.event) {
            self.runs.remove(&run);
        }
    }

    /// Takes up an event of a run. Of a run that began before anybody listened, its earlier events
    /// are read first.
    async fn note(&mut self, run: RunId, recorded: &Recorded) {
        let is_known = self.runs.contains_key(&run);
        if !is_known && self.runs.len() >= RUNS_MAX {
            self.runs.clear();
        }
        if !is_known {
            let earlier = match recorded.event {
                Some(Event::RunStarted(_)) => RunTally::default(),
                _ => self.earlier(run, recorded.version).await,
            };
            self.runs.insert(run, earlier);
        }
        if let (Some(tally), Some(event)) = (self.runs.get_mut(&run), &recorded.event) {
            tally.note(event);
        }
    }

    /// Reads the events of a run before a version of its stream, as far as they can be read.
    async fn earlier(&self, run: RunId, before: u64) -> RunTally {
        let mut tally = RunTally::default();
        let mut after = 0;
        loop {
            match self.store.stream(Stream::Run(run), after, PAGE).await {
                Ok(page) => {
                    let earlier = page.iter().take_while(|it| it.version < before);
                    earlier
                        .filter_map(|it| it.event.as_ref())
                        .for_each(|event| tally.note(event));
                    after = page.last().map_or(before, |last| last.version);
                    if page.len() < PAGE || after >= before {
                        return tally;
                    }
                }
                Err(ReadError::Busy) => tokio::time::sleep(Duration::from_millis(BUSY_MS)).await,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the events of a run cannot be read for telemetry"
                    );
                    return tally;
                }
            }
        }
    }
}

/// Returns whether an event belongs to the course of a run.
fn is_of_run(recorded: &Recorded) -> bool {
    matches!(
        recorded.event,
        Some(
            Event::RunStarted(_)
                | Event::RunStepped(_)
                | Event::RunSettled(_)
                | Event::StepFailed(_)
                | Event::RunEnded(_)
        )
    )
}

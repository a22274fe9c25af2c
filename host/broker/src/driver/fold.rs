//! The upkeep of a driver's fold of its run, with the run's stream.

use super::{Driver, DriverError, Driving};
use domain::event::Event;
use domain::id::{OperationId, RunId, Stream};
use domain::run::Run;
use domain::time::Timestamp;
use store::{Snapshot, Store};

/// Number of events that are read at a time.
const PAGE: usize = 1_000;
/// The layout of a run's snapshots. A snapshot of another layout is passed over, and the events are
/// folded.
const RUN_FORMAT: u32 = 5;

/// Returns a run as the fold of its stream, with its version.
pub(crate) async fn load_run(store: &Store, id: RunId) -> Result<(Run, u64), DriverError> {
    let stream = Stream::Run(id);
    let snapshot = store
        .snapshot(stream)
        .await?
        .filter(|snapshot| snapshot.format == RUN_FORMAT);
    let folded = snapshot.and_then(|snapshot| {
        Some((
            serde_json::from_slice(&snapshot.state).ok()?,
            snapshot.version,
        ))
    });
    let (mut run, mut version) = match folded {
        Some(folded) => folded,
        None => begin(store, stream).await?,
    };
    catch_up(store, &mut run, &mut version).await?;
    Ok((run, version))
}

/// Returns the run that handed over some work. None if it was purged: no caller is left.
pub(crate) async fn load_caller(store: &Store, id: RunId) -> Result<Option<Run>, DriverError> {
    match load_run(store, id).await {
        Ok((run, _)) => Ok(Some(run)),
        Err(DriverError::Missing(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the snapshot of a run at a version of its stream.
pub(crate) fn snapshot(run: &Run, version: u64) -> Option<Snapshot> {
    Some(Snapshot {
        version,
        format: RUN_FORMAT,
        state: serde_json::to_vec(run).ok()?,
    })
}

async fn begin(store: &Store, stream: Stream) -> Result<(Run, u64), DriverError> {
    let first = store.first_of(stream).await?;
    let event = first
        .and_then(|recorded| recorded.event)
        .ok_or_else(|| DriverError::Missing(stream.to_string()))?;
    Ok((Run::fold([&event])?, 1))
}

/// Applies the stream's events after a version.
async fn catch_up(store: &Store, run: &mut Run, version: &mut u64) -> Result<(), DriverError> {
    let stream = Stream::Run(run.started.run);
    loop {
        let events = store.stream(stream, *version, PAGE).await?;
        let count = events.len();
        for recorded in events {
            let event = recorded
                .event
                .ok_or_else(|| DriverError::Missing(format!("{stream}@{}", recorded.version)))?;
            run.advance(&event)?;
            *version = recorded.version;
        }
        if count < PAGE {
            return Ok(());
        }
    }
}

impl Driving {
    /// Brings the fold up to date.
    ///
    /// The first of two outcomes of one segment counts. If another has recorded the end of a
    /// segment, its result here is forgotten.
    async fn catch_up(&mut self, store: &Store, now: Timestamp) -> Result<(), DriverError> {
        let before: Vec<(OperationId, u32)> = self
            .run
            .open
            .iter()
            .map(|(operation, open)| (*operation, open.segment))
            .collect();
        let caught_up = catch_up(store, &mut self.run, &mut self.version).await;
        for (operation, segment) in before {
            if self
                .run
                .open
                .get(&operation)
                .is_some_and(|open| open.segment != segment)
            {
                self.arrived
                    .retain(|(settlement, _)| settlement.operation != operation);
                self.continued
                    .retain(|(continuation, _)| continuation.operation != operation);
                self.stop([operation], now).await;
            }
        }
        let settled: Vec<OperationId> = self
            .busy
            .keys()
            .copied()
            .filter(|operation| !self.run.open.contains_key(operation))
            .collect();
        self.stop(settled, now).await;
        self.drop_what_is_settled();
        caught_up
    }

    /// Forgets the results of work on operations that have their outcome. The work itself was
    /// stopped before that was recorded.
    pub(super) fn drop_what_is_settled(&mut self) {
        let open = &self.run.open;
        self.arrived
            .retain(|(settlement, _)| open.contains_key(&settlement.operation));
        self.continued
            .retain(|(continuation, _)| open.contains_key(&continuation.operation));
        self.busy
            .retain(|operation, _| open.contains_key(operation));
    }
}

impl Driver {
    /// Takes the ledger's entries of a run that are not recorded yet.
    async fn owed_to(&mut self, run: RunId) -> Result<Vec<Event>, DriverError> {
        let Some(owed) = self.owed.as_ref().filter(|owed| owed.run == run) else {
            return Ok(Vec::new());
        };
        let since = self
            .core
            .store
            .stream(Stream::Run(run), owed.version, PAGE)
            .await?;
        let is_recorded = |entry: &Event| {
            since
                .iter()
                .any(|recorded| recorded.event.as_ref() == Some(entry))
        };
        let entries = owed
            .entries
            .iter()
            .filter(|entry| !is_recorded(entry))
            .cloned()
            .collect();
        self.owed = None;
        Ok(entries)
    }

    /// Brings the fold up to date. Returns false when no run is open.
    pub(super) async fn refresh(&mut self) -> Result<bool, DriverError> {
        // A run that is not stored yet rests on the state of its session. If that may have changed,
        // the run is begun anew.
        if self.stale
            && self
                .driving
                .as_ref()
                .is_some_and(|driving| driving.version == 0)
        {
            self.driving = None;
        }
        if let Some(driving) = &mut self.driving {
            driving.wanted &= !self.stale;
            if self.stale {
                driving.catch_up(&self.core.store, self.core.now()).await?;
                self.stale = false;
            }
            if driving.run.ended.is_none() {
                return Ok(true);
            }
            self.driving = None;
        }
        let session = self.core.store.session(self.session).await?;
        let Some(run) = session.as_ref().and_then(|session| session.open_run) else {
            self.idle = session;
            return Ok(false);
        };
        let (run, version) = load_run(&self.core.store, run).await?;
        let entries = self.owed_to(run.started.run).await?;
        self.driving = Some(Driving::going_on(run, version, entries));
        self.stale = false;
        Ok(true)
    }
}

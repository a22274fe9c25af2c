//! The fold of a run: from its stream, or from a snapshot and the events since.

use super::error::DriverError;
use domain::budget::{Amount, Available, Budget};
use domain::event::RunStarted;
use domain::id::{RunId, Stream};
use domain::operation::{Operation, Performer};
use domain::run::Run;
use store::{Snapshot, Store};

/// Number of events that are read at a time.
pub(crate) const PAGE: usize = 1_000;
/// The layout of a run's snapshots. A snapshot of another layout is passed over, and the events are
/// folded.
const RUN_FORMAT: u32 = 1;

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
pub(crate) async fn catch_up(
    store: &Store,
    run: &mut Run,
    version: &mut u64,
) -> Result<(), DriverError> {
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

/// Returns the amount that others have drawn so far for work that an operation of a run handed
/// over. None for any other operation.
pub(crate) async fn drawn_by_work(
    store: &Store,
    started: &RunStarted,
    operation: &Operation,
) -> Result<Option<Amount>, DriverError> {
    let Performer::Agent { input, .. } = operation.performer else {
        return Ok(None);
    };
    let nothing = Available {
        tokens: 0,
        calls: 0,
        cost_micros: None,
    };
    let accounts = started
        .accounts()
        .delegating(input, Budget::default(), nothing);
    Ok(store.drawn(&accounts, None).await?.others.last().copied())
}

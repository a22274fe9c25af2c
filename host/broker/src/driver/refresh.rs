//! The synchronisation of a driver's phase and its fold of the run with the store.

use super::driving::Driving;
use super::phase::{Phase, Running};
use super::state::Driver;
use crate::shared::DriverError;
use crate::shared::runs::{PAGE, catch_up, load_run};
use domain::event::{BoundaryDecided, Event};
use domain::id::{OperationId, RunId, Stream};
use domain::time::Timestamp;
use store::Store;

impl Running {
    /// Brings the fold up to date.
    ///
    /// The first of two outcomes of one segment counts. If another has recorded the end of a
    /// segment, its result here is forgotten.
    async fn catch_up(&mut self, store: &Store, now: Timestamp) -> Result<(), DriverError> {
        let before: Vec<(OperationId, u32)> = self
            .driving
            .run
            .open
            .iter()
            .map(|(operation, open)| (*operation, open.segment))
            .collect();
        let caught_up = catch_up(store, &mut self.driving.run, &mut self.version).await;
        for (operation, segment) in before {
            if self
                .driving
                .run
                .open
                .get(&operation)
                .is_some_and(|open| open.segment != segment)
            {
                self.driving
                    .arrived
                    .retain(|(settlement, _)| settlement.operation != operation);
                self.driving
                    .continued
                    .retain(|(continuation, _)| continuation.operation != operation);
                self.driving.stop([operation], now).await;
            }
        }
        let settled: Vec<OperationId> = self
            .driving
            .busy
            .keys()
            .copied()
            .filter(|operation| !self.driving.run.open.contains_key(operation))
            .collect();
        self.driving.stop(settled, now).await;
        self.driving.drop_what_is_settled();
        caught_up
    }
}

impl Driver {
    /// Takes the ledger's entries of a run that are not recorded yet.
    async fn owed_to(&mut self, run: RunId) -> Result<Vec<Event>, DriverError> {
        let Some(owed) = self.owed.as_ref().filter(|owed| owed.run == run) else {
            return Ok(Vec::new());
        };
        let since = self
            .context
            .store()
            .stream(Stream::Run(run), owed.version, PAGE)
            .await?;
        let recorded: Vec<&BoundaryDecided> = since
            .iter()
            .filter_map(|recorded| recorded.event.as_ref())
            .flat_map(Event::ledger)
            .collect();
        let is_recorded = |entry: &Event| entry.ledger().iter().all(|it| recorded.contains(&it));
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
        let stale = self.stale;
        match &mut self.phase {
            Phase::Running(running) => {
                running.driving.wanted &= !stale;
                if stale {
                    running
                        .catch_up(self.context.store(), self.context.core.now())
                        .await?;
                    self.stale = false;
                }
                if running.driving.run.ended.is_none() {
                    return Ok(true);
                }
            }
            Phase::Starting(_) if !stale => return Ok(true),
            // A run that is not stored yet depends on the state of its session. As that may have
            // changed, the run begins again.
            Phase::Starting(_) | Phase::Unknown | Phase::Idle(_) => {}
        }
        self.phase = Phase::Unknown;
        let session = self.context.store().session(self.context.session).await?;
        let Some(run) = session.as_ref().and_then(|session| session.open_run) else {
            self.phase = Phase::without_run(session);
            return Ok(false);
        };
        let (run, version) = load_run(self.context.store(), run).await?;
        let entries = self.owed_to(run.started.run).await?;
        self.phase = Phase::running(Driving::new(run, entries), version);
        self.stale = false;
        Ok(true)
    }
}

//! Usage of purged sessions: it moves from the session and the user to the record of the purge.

use super::Tally;
use crate::projections::usage::take_back;
use crate::sql::{self, Sql};
use crate::streams;
use domain::event::{Event, OperationAttempted, RunEnded, RunStepped};
use domain::id::{OperationId, RunId, Stream};
use domain::operation::{Continuation, Settlement};
use domain::time::Timestamp;
use domain::usage::{Counted, UsageShares};
use std::collections::BTreeMap;

/// Subtracts a run's usage from its session's, and adds it to the tally. The same transaction has
/// to erase the start of the run, its first event. Does nothing if that is already erased, because
/// the usage was then moved before.
pub(super) fn erase(
    sql: &Sql<'_>,
    run: RunId,
    meter: &Meter,
    tally: &mut Tally,
) -> sql::Result<()> {
    let start = "SELECT 1 FROM events WHERE stream = ?1 AND version = 1 AND payload IS NOT NULL";
    if !sql.exists(start, [streams::number(sql, Stream::Run(run))?])? {
        return Ok(());
    }
    take_back(sql, run, &meter.used)?;
    let mut all = UsageShares::default();
    all.add_all(&tally.usage);
    all.add_all(&meter.used.iter().collect::<Vec<_>>());
    tally.usage = all.iter().collect();
    Ok(())
}

/// The usage of one run as the fold of its events, which equals the sum that the projections add.
#[derive(Default)]
pub(super) struct Meter {
    open: BTreeMap<OperationId, Counted>,
    used: UsageShares,
}

impl Meter {
    pub(super) fn apply(&mut self, event: &Event, time: Timestamp) {
        if let Some(step) = event.step() {
            self.stepped(step);
        }
        match event {
            Event::RunSettled(settled) => self.settle(&settled.settled),
            Event::OperationContinued(it) => self.continued(it, time),
            Event::OperationAttempted(attempted) => self.attempted(attempted),
            Event::RunEnded(ended) => self.ended(ended),
            _ => {}
        }
    }

    fn stepped(&mut self, stepped: &RunStepped) {
        self.settle(&stepped.settled);
        let started = stepped.started.iter();
        self.open
            .extend(started.map(|operation| (operation.id, Counted::from_operation(operation))));
        self.settle(&stepped.stopped);
    }

    fn continued(&mut self, continuation: &Continuation, time: Timestamp) {
        self.used.worked(continuation.active_ms, time);
        if let Some(call) = &continuation.call {
            let started = &call.started;
            self.open
                .insert(started.id, Counted::from_operation(started));
        }
    }

    fn attempted(&mut self, it: &OperationAttempted) {
        if let Some(Counted::Model { drawn, .. }) = self.open.get_mut(&it.operation) {
            *drawn = it.drawn;
        }
    }

    fn settle(&mut self, settlements: &[Settlement]) {
        for settlement in settlements {
            let counted = self.open.remove(&settlement.operation);
            self.used.settled(&counted.unwrap_or_default(), settlement);
        }
    }

    fn ended(&mut self, ended: &RunEnded) {
        self.settle(&ended.stopped);
        for counted in std::mem::take(&mut self.open).values() {
            self.used.unsettled(counted, ended.time);
        }
    }
}

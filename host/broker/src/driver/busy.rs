//! Work that is under way on an operation, with what the ledger will have of it, whatever becomes of the work.

use crate::core::Core;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::{BoundaryDecided, Event, RunStarted};
use domain::operation::Performer;
use domain::run::Open;
use domain::time::Timestamp;
use runtime::{Decided, Minutes};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Milliseconds that stopped work is waited for, so that what it did last is on record.
const STOPPED_MS_MAX: u64 = 1_000;

/// Work that is under way. It ends with this.
pub(crate) struct Busy {
    work: AbortOnDropHandle<()>,
    minutes: Minutes,
    /// The entry of the ledger, without what is in the minutes.
    entry: BoundaryDecided,
}

impl Busy {
    pub(super) fn new(work: AbortOnDropHandle<()>, minutes: Minutes, entry: BoundaryDecided) -> Self {
        Self { work, minutes, entry }
    }

    /// The ledger's entry for the work, which ends here; none when there is nothing to tell.
    pub(super) fn ended(self, time: Timestamp) -> Option<Event> {
        let Self { work, minutes, entry } = self;
        drop(work);
        let (Decided { decisions, left_out }, egress) = minutes.take();
        // Every call of a tool is on record: with its code and its grant, also when it asked for nothing.
        let is_told = entry.tool.is_some() || !decisions.is_empty() || !egress.is_empty();
        is_told.then(|| Event::BoundaryDecided(Box::new(BoundaryDecided { decisions, left_out, egress, time, ..entry })))
    }

    /// Stops the work, and waits until what it was about when it was stopped is on record too.
    pub(super) async fn stopped(mut self, time: Timestamp) -> Option<Event> {
        self.work.abort();
        // However the work ends: it is over. What does not stop in time is not waited for.
        let _ = timeout(Duration::from_millis(STOPPED_MS_MAX), &mut self.work).await;
        self.minutes.closed().await;
        self.ended(time)
    }
}

/// The entry of the ledger for a segment of an operation of an agent of this code, before anything was decided.
pub(super) fn entry(core: &Core, started: &RunStarted, agent: Digest, open: &Open) -> BoundaryDecided {
    let (tool, component, code) = match &open.operation.performer {
        Performer::Tool { component, tool, .. } => {
            (Some(tool.clone()), core.catalogue.tool(tool).map(|(entry, _)| entry.name.clone()), Some(*component))
        }
        // What asks models, other agents, timers and users is the agent itself.
        _ => (None, core.catalogue.definition(&started.definition).map(|it| it.component.clone()), Some(agent)),
    };
    let grant = component.as_deref().and_then(|name| core.outfits.grant(name)).map(|grant| grant.digest);
    BoundaryDecided {
        run: started.run,
        operation: Some(open.operation.id),
        segment: open.segment,
        definition: started.definition.clone(),
        tool,
        component,
        code,
        grant,
        decisions: Vec::new(),
        left_out: 0,
        egress: Traffic::default(),
        time: Timestamp(0),
    }
}

//! A commit that can never be stored, whenever it is tried: the turn that it belongs to ends with a reason, instead of being tried for ever.

use super::{Beside, Driver, Driving, Trouble};
use domain::event::Event;
use domain::operation::Settlement;
use domain::run::end::Cause;
use domain::run::recover::lost;
use domain::step::Failure;
use store::CommitError;

/// How a turn ends, and work in it, of which something could not be stored.
const CODE: &str = "not-storable";

impl Driver {
    /// Ends the turn when trouble says that something of it can never be stored. What has come of its work counts as failed, with what it cost.
    /// If that cannot be stored either, the turn ends without: its open work counts as cut off. A turn whose start cannot be stored leaves its
    /// inputs as dead letters. Returns why the session is to be left alone, when none of that can be stored.
    pub(super) async fn end_what_cannot_be_stored(&mut self, trouble: &Trouble) -> Option<String> {
        let reason = format!("what it came to can never be stored: {}", unstorable(trouble)?);
        let Some(driving) = &mut self.driving else { return Some(reason) };
        let run = driving.run.started.run;
        let opening = driving.opening.clone();
        let begins = driving.version == 0;
        tracing::error!(session.id = %self.session, run.id = %run, reason, "a turn ends because something of it can never be stored");
        driving.keep_costs(&reason);
        let cause = Cause::Failed { code: CODE.to_owned(), reason: reason.clone() };
        let mut ended = self.fail(cause.clone()).await;
        if let (Err(again), Some(driving)) = (&ended, &mut self.driving)
            && unstorable(again).is_some()
        {
            driving.arrived.clear();
            driving.continued.clear();
            driving.entries.clear();
            ended = self.fail(cause).await;
        }
        if let Err(again) = &ended
            && unstorable(again).is_some()
            && begins
        {
            self.driving = None;
            ended = self.bury(&opening, reason).await;
        }
        let trouble = ended.err()?;
        self.stumble(&trouble);
        unstorable(&trouble).map(|source| format!("its end can never be stored: {source}"))
    }
}

/// The part that can never be stored, when that is the trouble.
fn unstorable(trouble: &Trouble) -> Option<&store::Source> {
    match trouble {
        Trouble::Commit(CommitError::Unstorable { source }) => Some(source),
        _ => None,
    }
}

impl Driving {
    /// Forgets what has come of work but for what it cost.
    fn keep_costs(&mut self, reason: &str) {
        let told = || Failure::lasting(CODE, reason);
        let arrived = std::mem::take(&mut self.arrived).into_iter().filter_map(|(settlement, beside)| {
            let Settlement { operation, attempts, usage, spent, time, .. } = settlement;
            let failed = lost(self.run.open.get(&operation)?, told(), time);
            Some((Settlement { attempts, usage, spent, ..failed }, ledger_of(beside)))
        });
        self.arrived = arrived.collect();
        // Whether it is asked or called again is decided no more.
        self.continued.clear();
    }
}

/// What of it the ledger is to have. What was written to buckets counts for nothing.
fn ledger_of(beside: Beside) -> Beside {
    let mut beside = beside.unwritten();
    beside.blobs.clear();
    beside.events.retain(|event| matches!(event, Event::BoundaryDecided(_)));
    beside
}

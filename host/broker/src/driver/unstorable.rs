//! The end of a turn because of a commit that can never be stored.
//!
//! Otherwise the commit would be retried for ever.

use super::driving::Driving;
use super::phase::Phase;
use super::state::{Driver, RefusedAttempt};
use crate::performance::result::CommitExtras;
use crate::shared::DriverError;
use domain::event::Event;
use domain::id::OperationId;
use domain::operation::Settlement;
use domain::run::end::Cause;
use domain::run::recover::lost;
use domain::step::Failure;
use store::{Clash, CommitError, Conflict};

/// The code of the end of a turn, and of its work, when part of it could not be stored.
const CODE: &str = "not-storable";
/// Number of checks in a row whose commit the store refused because of its content, after which no
/// further attempt is made.
const REFUSED_MAX: u32 = 5;

impl Driver {
    /// Ends the turn if the trouble means that part of it can never be stored.
    ///
    /// The results of its work count as failed, with their cost. If that cannot be stored either,
    /// the turn ends without them: its open work counts as cut off. A turn whose start cannot be
    /// stored leaves its inputs as dead letters. Returns the reason for a quarantine when none of
    /// that can be stored. A commit that the store refuses because of its content is first retried
    /// a few times.
    pub(super) async fn end_what_cannot_be_stored(
        &mut self,
        failure: &DriverError,
    ) -> Option<String> {
        let reason = format!(
            "what it came to can never be stored: {}",
            self.never_stored(failure)?
        );
        let claimed = self
            .phase
            .beginning()
            .map(|starting| starting.inputs.clone())
            .unwrap_or_default();
        let Some(driving) = self.phase.driving_mut() else {
            return Some(reason);
        };
        let run = driving.run.started.run;
        tracing::error!(session.id = %self.context.session, run.id = %run, reason, "a turn ends because \
            something of it can never be stored");
        driving.keep_costs(&reason);
        let cause = Cause::Failed {
            code: CODE.to_owned(),
            reason: reason.clone(),
        };
        let mut ended = self.fail(cause.clone()).await;
        if let (Err(again), Some(driving)) = (&ended, self.phase.driving_mut())
            && refusal(again).is_some()
        {
            driving.arrived.clear();
            driving.continued.clear();
            driving.entries.clear();
            ended = self.fail(cause).await;
        }
        if let Err(again) = &ended
            && refusal(again).is_some()
            && !claimed.is_empty()
        {
            self.phase = Phase::Unknown;
            ended = self.bury(&claimed, reason).await;
        }
        let failure = ended.err()?;
        self.stumble(&failure);
        refusal(&failure).map(|reason| format!("its end can never be stored: {reason}"))
    }

    /// Takes trouble with the record of a further attempt.
    ///
    /// The work requests the attempt repeatedly. One that the store refuses because of its content
    /// is kept, so that the next check counts it and ends the turn if no retry succeeds.
    pub(super) fn keep_or_stumble(&mut self, operation: OperationId, failure: DriverError) {
        if refusal(&failure).is_none() {
            return self.stumble(&failure);
        }
        self.stale = true;
        self.refused_attempt = Some(RefusedAttempt { operation, failure });
    }

    /// Takes the trouble with the record of a further attempt out, if the operation is still worked
    /// on.
    pub(super) fn take_refused_attempt(&mut self) -> Option<DriverError> {
        let RefusedAttempt { operation, failure } = self.refused_attempt.take()?;
        self.phase
            .driving()
            .is_some_and(|driving| driving.busy.contains_key(&operation))
            .then_some(failure)
    }

    /// Counts this trouble, and returns the reason why the commit can never be stored; none when
    /// another try may help.
    ///
    /// A commit that the store refuses because of its content is decided and tried again a few
    /// times: a guard against a change from elsewhere may be missing.
    fn never_stored(&mut self, failure: &DriverError) -> Option<String> {
        let reason = refusal(failure)?;
        if matches!(failure, DriverError::Commit(CommitError::Unstorable { .. })) {
            return Some(reason);
        }
        self.failures.refused += 1;
        (self.failures.refused >= REFUSED_MAX).then_some(reason)
    }
}

/// Returns the reason why the store would always refuse a commit, if that is the trouble.
fn refusal(failure: &DriverError) -> Option<String> {
    match failure {
        DriverError::Commit(CommitError::Unstorable { source }) => Some(source.to_string()),
        DriverError::Commit(CommitError::Conflict(Conflict {
            clash: Clash::Row,
            detail,
        })) => Some(format!("it contradicts what is stored ({detail})")),
        // The cause may quote other people's words, and is in the log.
        DriverError::Commit(CommitError::Unreadable { .. }) => {
            Some("it rests on something stored that cannot be read".to_owned())
        }
        _ => None,
    }
}

impl Driving {
    /// Forgets the results of work but for their cost.
    fn keep_costs(&mut self, reason: &str) {
        let reported = || Failure::lasting(CODE, reason);
        let arrived =
            std::mem::take(&mut self.arrived)
                .into_iter()
                .filter_map(|(settlement, extras)| {
                    let open = self.run.open.get(&settlement.operation)?;
                    Some((
                        Settlement {
                            attempts: settlement.attempts,
                            usage: settlement.usage,
                            spent: settlement.spent,
                            ..lost(open, reported(), settlement.time)
                        },
                        ledger_of(extras),
                    ))
                });
        self.arrived = arrived.collect();
        // Void now: the decision whether a call continues in another segment.
        self.continued.clear();
    }
}

/// Returns the ledger's entries of a result. Its writes to buckets are dropped.
fn ledger_of(extras: CommitExtras) -> CommitExtras {
    let mut extras = extras.unwritten();
    extras.blobs.clear();
    extras
        .events
        .retain(|event| matches!(event, Event::BoundaryDecided(_)));
    extras
}

//! Attempts at a model call: their record, and the amounts that they spend or reserve of the run's
//! limits.
//!
//! The step that requests the call reserves for the first attempt. Each further attempt is checked
//! against the budget and recorded before it is made ([`OperationAttempted`]), unless those before
//! it spent nothing of the reservation. The result of an attempt is recorded with the next one or
//! with the call's outcome. The reservation of an interrupted attempt is spent.

use super::{Open, Run};
use crate::events::event::OperationAttempted;
use crate::values::time::Timestamp;
use crate::work::account;
use crate::work::budget::Amount;
use crate::work::operation::{Attempt, Performer, Settlement};
use crate::work::step::OperationOutcome;
use serde::{Deserialize, Serialize};

/// Reason why an attempt was cut off, as shown to people.
const CUT_OFF: &str = "the host ended while it was made: its outcome is lost";
/// Reason why an attempt was stopped, as shown to people.
const STOPPED: &str = "it was stopped before it ended: its outcome is lost";

/// The recorded attempts at a model's call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attempts {
    /// The newest, counted from 0. It rises while the call is open, also across restarts.
    pub number: u32,
    /// Earlier attempts that ended, or were cut off.
    pub ended: Vec<Attempt>,
    /// The reservation for the newest attempt. None for the first, whose reservation is in the
    /// operation.
    pub reserved: Option<Amount>,
}

impl Attempts {
    /// Returns whether only the intention of the first attempt is recorded.
    #[must_use]
    pub fn is_first(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn go_on(&mut self, attempted: &OperationAttempted) {
        self.number = attempted.attempt;
        self.ended.extend(attempted.ended.iter().cloned());
        self.reserved = Some(attempted.reserved);
    }
}

impl Open {
    /// Returns the reservation for the newest attempt of a model call; zero for other operations.
    #[must_use]
    pub fn reserved(&self) -> Amount {
        self.attempts
            .reserved
            .unwrap_or_else(|| account::reserved(&self.operation.performer))
    }

    /// Returns the amount that counts until the call is settled: the amount spent by the attempts
    /// before the newest, and the reservation of the newest.
    #[must_use]
    pub fn spent_or_reserved(&self) -> Amount {
        spent_on(&self.attempts.ended).plus(self.reserved())
    }

    /// Its attempts when the newest was cut off; none for anything but a model call.
    #[must_use]
    pub fn cut_off(&self) -> Vec<Attempt> {
        self.attempts_with(self.lost_attempt().into_iter().collect())
    }

    /// Its attempts when the newest is stopped with it; none for anything but a model call.
    #[must_use]
    pub fn stopped_attempts(&self) -> Vec<Attempt> {
        self.attempts_with(self.without_outcome(STOPPED).into_iter().collect())
    }

    /// Its attempts, plus those that ended since the newest was recorded.
    #[must_use]
    pub fn attempts_with(&self, ended: Vec<Attempt>) -> Vec<Attempt> {
        self.attempts.ended.iter().cloned().chain(ended).collect()
    }

    /// The newest attempt, cut off; none for anything but a model call.
    #[must_use]
    pub fn lost_attempt(&self) -> Option<Attempt> {
        self.without_outcome(CUT_OFF)
    }

    /// The newest attempt, with only a reason as its outcome; none for anything but a model call.
    fn without_outcome(&self, error: &str) -> Option<Attempt> {
        match &self.operation.performer {
            Performer::Model { request, .. } => Some(Attempt {
                provider: String::new(),
                model: request.model.clone().unwrap_or_default(),
                usage: None,
                cost_micros: None,
                wall_ms: 0,
                error: Some(error.to_owned()),
                reserved: Some(self.reserved()),
            }),
            _ => None,
        }
    }

    /// Returns its settlement as if it had ended with these attempts. The amount spent by then is
    /// no longer available for another attempt.
    #[must_use]
    pub fn without_another(&self, ended: Vec<Attempt>, time: Timestamp) -> Settlement {
        Settlement::new(self.operation.id, OperationOutcome::Elapsed, time)
            .costing(self.attempts_with(ended))
    }
}

impl Run {
    /// The record of another attempt at an open operation, with the amount reserved for it.
    #[must_use]
    pub fn attempted(
        &self,
        open: &Open,
        ended: Vec<Attempt>,
        reserved: Amount,
        time: Timestamp,
    ) -> OperationAttempted {
        let drawn = spent_on(&open.attempts.ended)
            .plus(spent_on(&ended))
            .plus(reserved);
        let attempt = open.attempts.number.saturating_add(1);
        OperationAttempted {
            run: self.started.run,
            operation: open.operation.id,
            attempt,
            ended,
            reserved,
            drawn,
            time,
        }
    }
}

fn spent_on(attempts: &[Attempt]) -> Amount {
    let (usage, cost_micros) = account::spent_on(attempts, Amount::default());
    Amount {
        tokens: usage.total(),
        calls: 0,
        cost_micros,
    }
}

//! A run's spending: the amount available of its limits, and the amounts that count on its
//! accounts. The terms are those of [`account`].

use super::{Open, Run};
use crate::thread::model::Usage;
use crate::work::account;
use crate::work::basis::LimitsLeft;
use crate::work::budget::{Amount, Available};
use crate::work::operation::{Performer, Settlement};
use serde::{Deserialize, Serialize};

/// The spent part of a run's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spending {
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// Milliseconds during which a model or a tool worked, according to its outcomes. It is never
    /// the difference of two events' times, because the host may have been down between them.
    pub active_ms: u64,
    /// Millionths that its own model calls cost ([`crate::work::price`]).
    pub cost_micros: u64,
    /// Amount spent by others on work that it handed over.
    pub delegated: Amount,
}

impl Spending {
    /// Counts the amount that an operation with this settlement spent.
    pub(super) fn charge(&mut self, open: &Open, settlement: &Settlement) {
        let (usage, micros) = account::spent(open.spent_or_reserved(), settlement);
        self.usage = self.usage.plus(usage);
        self.cost_micros = self.cost_micros.saturating_add(micros);
        self.delegated = self
            .delegated
            .plus(settlement.spent.unwrap_or(open.operation.reserved));
        self.work(settlement.active_ms);
    }

    /// Counts active time.
    pub(super) fn work(&mut self, active_ms: u64) {
        self.active_ms = self.active_ms.saturating_add(active_ms);
    }

    /// Returns the amount spent by the run itself, without its delegates.
    fn own(&self) -> Amount {
        Amount {
            tokens: self.usage.total(),
            calls: self.tool_calls,
            cost_micros: self.cost_micros,
        }
    }
}

impl Run {
    /// Returns the amount left of its limits for the next step.
    #[must_use]
    pub fn limits_left(&self) -> LimitsLeft {
        let Available {
            tokens,
            calls,
            cost_micros: _,
        } = self.available_after(&[]);
        LimitsLeft {
            steps: self.started.limits.steps_max.saturating_sub(self.step + 1),
            tool_calls: calls,
            tokens,
        }
    }

    /// Returns the amount available to a step's decision, given outcomes that are not recorded yet.
    /// These outcomes count with what they spent, all other open operations with their
    /// reservations.
    #[must_use]
    pub fn available_after(&self, arrived: &[Settlement]) -> Available {
        let limits = &self.started.limits;
        let mut spending = self.spending;
        for settlement in arrived {
            if let Some(open) = self.open.get(&settlement.operation) {
                spending.charge(open, settlement);
            }
        }
        let mut available = Available {
            tokens: limits.tokens_max.saturating_sub(spending.usage.total()),
            calls: limits.tool_calls_max.saturating_sub(spending.tool_calls),
            cost_micros: limits
                .cost_micros_max
                .map(|max| max.saturating_sub(spending.cost_micros)),
        };
        available.subtract(spending.delegated);
        for open in self.open.values().filter(|open| {
            arrived
                .iter()
                .all(|settlement| settlement.operation != open.operation.id)
        }) {
            available.subtract(open.operation.reserved);
            available.subtract(open.spent_or_reserved());
        }
        available
    }

    /// Returns the amount reserved for open work that is waited for, given outcomes that are not
    /// recorded yet. The unspent part of it will be available again.
    #[must_use]
    pub fn lent_after(&self, arrived: &[Settlement]) -> Amount {
        self.open
            .values()
            .map(|open| &open.operation)
            .filter(|operation| matches!(operation.performer, Performer::Agent { .. }))
            .filter(|operation| {
                arrived
                    .iter()
                    .all(|settlement| settlement.operation != operation.id)
            })
            .fold(Amount::default(), |lent, operation| {
                lent.plus(operation.reserved)
            })
    }

    /// Returns the amount that the run itself has spent or reserved on its accounts once these
    /// outcomes are recorded. The reservations are those of its open model calls.
    #[must_use]
    pub fn spent_or_reserved_with(&self, arrived: &[Settlement]) -> Amount {
        let mut spending = self.spending;
        let settled = |open: &&Open| {
            arrived
                .iter()
                .find(|settlement| settlement.operation == open.operation.id)
        };
        let mut amount = Amount::default();
        for open in self.open.values() {
            match settled(&open) {
                Some(settlement) => spending.charge(open, settlement),
                None => amount = amount.plus(open.spent_or_reserved()),
            }
        }
        amount.plus(spending.own())
    }

    /// Returns the amount that it has spent so far, with its delegates. The caller that handed over
    /// the work counts it as its own.
    #[must_use]
    pub fn spent_so_far(&self) -> Amount {
        self.spent_with(&[])
    }

    /// Returns the same, including operations stopped at its end.
    #[must_use]
    pub fn spent_with(&self, stopped: &[Settlement]) -> Amount {
        let mut spending = self.spending;
        for settlement in stopped {
            if let Some(open) = self.open.get(&settlement.operation) {
                spending.charge(open, settlement);
            }
        }
        spending.own().plus(spending.delegated)
    }

    /// Milliseconds of active time that are left, without the measured time that no outcome
    /// contains yet.
    #[must_use]
    pub fn active_ms_left(&self, unrecorded_ms: u64) -> u64 {
        self.started
            .limits
            .active_ms_max
            .saturating_sub(self.spending.active_ms)
            .saturating_sub(unrecorded_ms)
    }

    /// The turn's limit that is exhausted after this much active time beyond the outcomes, for
    /// people; none while another step is possible.
    #[must_use]
    pub fn exhausted_limit(&self, unrecorded_ms: u64) -> Option<String> {
        let limits = &self.started.limits;
        if self.step >= limits.steps_max {
            Some(format!(
                "it took {} steps, which is its limit (stepsMax)",
                limits.steps_max
            ))
        } else if self
            .spending
            .usage
            .total()
            .saturating_add(self.spending.delegated.tokens)
            > limits.tokens_max
        {
            Some(format!(
                "it used more than {} tokens, which is its limit (tokensMax)",
                limits.tokens_max
            ))
        } else if let Some(max) = limits.cost_micros_max.filter(|max| {
            self.spending
                .cost_micros
                .saturating_add(self.spending.delegated.cost_micros)
                > *max
        }) {
            Some(format!(
                "its models cost more than {max} millionths, which is its limit (costMicrosMax)"
            ))
        } else if self.active_ms_left(unrecorded_ms) == 0 {
            Some(format!(
                "models and tools worked for {} ms, which is its limit (activeMsMax)",
                limits.active_ms_max
            ))
        } else {
            None
        }
    }
}

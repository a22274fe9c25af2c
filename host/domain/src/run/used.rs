//! A run's use of its limits, what is left of them, and what it draws on its accounts.

use super::{Open, Run};
use crate::account;
use crate::basis::LimitsLeft;
use crate::budget::{Left, Spent};
use crate::model::Usage;
use crate::operation::Settlement;
use serde::{Deserialize, Serialize};

/// The part of a run's limits that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// Milliseconds during which a model or a tool was at work, as its outcomes have them. Never
    /// the difference of two events' times, between which the host may have been down.
    pub active_ms: u64,
    /// Millionths that its own model calls cost ([`crate::price`]).
    #[serde(default)]
    pub cost_micros: u64,
    /// Resources that others used for work that it handed over.
    #[serde(default)]
    pub handed: Spent,
}

impl Used {
    /// Counts what an operation used that has come to this.
    pub(super) fn charge(&mut self, open: &Open, settlement: &Settlement) {
        let (usage, micros) = account::used(open.drawn(), settlement);
        self.usage = self.usage.plus(usage);
        self.cost_micros = self.cost_micros.saturating_add(micros);
        self.handed = self
            .handed
            .plus(settlement.spent.unwrap_or(open.operation.reserved));
        self.work(settlement.active_ms);
    }

    /// Counts active time.
    pub(super) fn work(&mut self, active_ms: u64) {
        self.active_ms = self.active_ms.saturating_add(active_ms);
    }

    /// Returns the run's own use, without what others used.
    fn own(&self) -> Spent {
        Spent {
            tokens: self.usage.total(),
            calls: self.tool_calls,
            cost_micros: self.cost_micros,
        }
    }
}

impl Run {
    /// Returns what is left of its limits for the next step.
    #[must_use]
    pub fn left(&self) -> LimitsLeft {
        let Left {
            tokens,
            calls,
            cost_micros: _,
        } = self.left_after(&[]);
        LimitsLeft {
            steps: self.started.limits.steps_max.saturating_sub(self.step + 1),
            tool_calls: calls,
            tokens,
        }
    }

    /// Returns what is left for the decision of a step, given outcomes that are not recorded yet.
    /// These outcomes count with what they used, all other open operations with what is reserved.
    #[must_use]
    pub fn left_after(&self, arrived: &[Settlement]) -> Left {
        let (limits, mut used) = (&self.started.limits, self.used);
        for settlement in arrived {
            if let Some(open) = self.open.get(&settlement.operation) {
                used.charge(open, settlement);
            }
        }
        let mut left = Left {
            tokens: limits.tokens_max.saturating_sub(used.usage.total()),
            calls: limits.tool_calls_max.saturating_sub(used.tool_calls),
            cost_micros: limits
                .cost_micros_max
                .map(|max| max.saturating_sub(used.cost_micros)),
        };
        left.take(used.handed);
        for open in self.open.values().filter(|open| {
            arrived
                .iter()
                .all(|settlement| settlement.operation != open.operation.id)
        }) {
            left.take(open.operation.reserved);
            left.take(open.drawn());
        }
        left
    }

    /// Returns what the run itself draws on its accounts once these outcomes are recorded. This is
    /// what it has used, and what is reserved for its open model calls.
    #[must_use]
    pub fn drawn_with(&self, arrived: &[Settlement]) -> Spent {
        let mut used = self.used;
        let settled = |open: &&Open| {
            arrived
                .iter()
                .find(|settlement| settlement.operation == open.operation.id)
        };
        let mut drawn = Spent::default();
        for open in self.open.values() {
            match settled(&open) {
                Some(settlement) => used.charge(open, settlement),
                None => drawn = drawn.plus(open.drawn()),
            }
        }
        drawn.plus(used.own())
    }

    /// Returns what it has used so far, with what others used for it. This is charged to the caller
    /// that handed it its work.
    #[must_use]
    pub fn spent_so_far(&self) -> Spent {
        self.spent_with(&[])
    }

    /// Returns the same, with what was stopped at its end.
    #[must_use]
    pub fn spent_with(&self, stopped: &[Settlement]) -> Spent {
        let mut used = self.used;
        for settlement in stopped {
            if let Some(open) = self.open.get(&settlement.operation) {
                used.charge(open, settlement);
            }
        }
        used.own().plus(used.handed)
    }

    /// Milliseconds of active time that are left, besides those that were measured and are in no
    /// outcome yet.
    #[must_use]
    pub fn active_ms_left(&self, unrecorded_ms: u64) -> u64 {
        self.started
            .limits
            .active_ms_max
            .saturating_sub(self.used.active_ms)
            .saturating_sub(unrecorded_ms)
    }

    /// The limit of the turn that is used up with so much active time that is in no outcome yet,
    /// for people; none while there may be another step.
    #[must_use]
    pub fn spent(&self, unrecorded_ms: u64) -> Option<String> {
        let limits = &self.started.limits;
        if self.step >= limits.steps_max {
            Some(format!(
                "it took {} steps, which is its limit",
                limits.steps_max
            ))
        } else if self
            .used
            .usage
            .total()
            .saturating_add(self.used.handed.tokens)
            > limits.tokens_max
        {
            Some(format!(
                "it used more than {} tokens, which is its limit",
                limits.tokens_max
            ))
        } else if let Some(max) = limits.cost_micros_max.filter(|max| {
            self.used
                .cost_micros
                .saturating_add(self.used.handed.cost_micros)
                > *max
        }) {
            Some(format!(
                "its models cost more than {max} millionths, which is its limit (costMicrosMax)"
            ))
        } else if self.active_ms_left(unrecorded_ms) == 0 {
            Some(format!(
                "models and tools worked for {} ms, which is its limit",
                limits.active_ms_max
            ))
        } else {
            None
        }
    }
}

//! What a run has used of its limits, what is left of them, and what it draws on its accounts.

use super::{Open, Run};
use crate::account;
use crate::basis::LimitsLeft;
use crate::budget::{Left, Spent};
use crate::model::Usage;
use crate::operation::{Operation, Settlement};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What a run has used of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// Milliseconds during which a model or a tool was at work.
    pub active_ms: u64,
    /// Millionths that its own model calls cost ([`crate::price`]).
    #[serde(default)]
    pub cost_micros: u64,
    /// What others used for work that it handed over.
    #[serde(default)]
    pub handed: Spent,
}

impl Used {
    /// Counts what an operation used that has come to this.
    pub(super) fn charge(&mut self, operation: &Operation, settlement: &Settlement) {
        let (usage, micros) = account::used(account::reserved(&operation.performer), settlement);
        self.usage = self.usage.plus(usage);
        self.cost_micros = self.cost_micros.saturating_add(micros);
        self.handed = self.handed.plus(settlement.spent.unwrap_or(operation.reserved));
    }

    /// What it comes to without what others used.
    fn own(&self) -> Spent {
        Spent { tokens: self.usage.total(), calls: self.tool_calls, cost_micros: self.cost_micros }
    }
}

impl Run {
    /// What is left of its limits, for the step that comes next.
    #[must_use]
    pub fn left(&self) -> LimitsLeft {
        let Left { tokens, calls, cost_micros: _ } = self.left_after(&[]);
        LimitsLeft { steps: self.started.limits.steps_max.saturating_sub(self.step + 1), tool_calls: calls, tokens }
    }

    /// What is left for what a step decides that hears of outcomes which are not recorded yet: of these what was used, of all other open
    /// operations what is reserved.
    #[must_use]
    pub fn left_after(&self, arrived: &[Settlement]) -> Left {
        let (limits, mut used) = (&self.started.limits, self.used);
        for settlement in arrived {
            if let Some(open) = self.open.get(&settlement.operation) {
                used.charge(&open.operation, settlement);
            }
        }
        let mut left = Left {
            tokens: limits.tokens_max.saturating_sub(used.usage.total()),
            calls: limits.tool_calls_max.saturating_sub(used.tool_calls),
            cost_micros: limits.cost_micros_max.map(|max| max.saturating_sub(used.cost_micros)),
        };
        left.take(used.handed);
        for open in self.open.values().filter(|open| arrived.iter().all(|settlement| settlement.operation != open.operation.id)) {
            left.take(open.operation.reserved);
            left.take(account::reserved(&open.operation.performer));
        }
        left
    }

    /// What it draws on its accounts itself once such outcomes are recorded: what it has used, and what is reserved for its open model calls.
    #[must_use]
    pub fn drawn_with(&self, arrived: &[Settlement]) -> Spent {
        let mut used = self.used;
        let settled = |open: &&Open| arrived.iter().find(|settlement| settlement.operation == open.operation.id);
        let mut drawn = Spent::default();
        for open in self.open.values() {
            match settled(&open) {
                Some(settlement) => used.charge(&open.operation, settlement),
                None => drawn = drawn.plus(account::reserved(&open.operation.performer)),
            }
        }
        drawn.plus(used.own())
    }

    /// What it has used so far, with what others used for it: what is charged to whoever handed it its work.
    #[must_use]
    pub fn spent_so_far(&self) -> Spent {
        self.spent_with(&[])
    }

    /// The same with what was stopped at its end.
    #[must_use]
    pub fn spent_with(&self, stopped: &[Settlement]) -> Spent {
        let mut used = self.used;
        for settlement in stopped {
            if let Some(open) = self.open.get(&settlement.operation) {
                used.charge(&open.operation, settlement);
            }
        }
        used.own().plus(used.handed)
    }

    /// Milliseconds of active time that are left at a moment. They pass only while [`Self::is_active`].
    #[must_use]
    pub fn active_ms_left(&self, now: Timestamp) -> u64 {
        let running = if self.is_active() { now.since_ms(self.last_time) } else { 0 };
        self.started.limits.active_ms_max.saturating_sub(self.used.active_ms).saturating_sub(running)
    }

    /// Which limit of the turn is used up at a moment, for people; none while there may be another step.
    #[must_use]
    pub fn spent(&self, now: Timestamp) -> Option<String> {
        let limits = &self.started.limits;
        if self.step >= limits.steps_max {
            Some(format!("it took {} steps, which is its limit", limits.steps_max))
        } else if self.used.usage.total().saturating_add(self.used.handed.tokens) > limits.tokens_max {
            Some(format!("it used more than {} tokens, which is its limit", limits.tokens_max))
        } else if let Some(max) =
            limits.cost_micros_max.filter(|max| self.used.cost_micros.saturating_add(self.used.handed.cost_micros) > *max)
        {
            Some(format!("its models cost more than {max} millionths, which is its limit (costMicrosMax)"))
        } else if self.active_ms_left(now) == 0 {
            Some(format!("models and tools worked for {} ms, which is its limit", limits.active_ms_max))
        } else {
            None
        }
    }
}

//! Budgets of handed-over work: the amount it may spend, and the amount it spent.
//!
//! An agent that hands work over may name a budget for it. The budget never exceeds the agent's own
//! available amount, so along a chain of agents a budget only shrinks. It is reserved in the commit
//! that hands the work over, and the reservation ends with the work. Limits on all of it together
//! are kept in accounts ([`crate::work::account`], which defines the words).

use crate::values::limits::TurnLimits;
use crate::work::price::Price;
use serde::{Deserialize, Serialize};

/// The most that a turn may spend, in addition to its agent's own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens of prompts and replies together; none to apply only the agent's own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Calls of tools and of agents; none to apply only the agent's own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Highest cost of models in millionths ([`crate::work::price`]); none to apply only the
    /// agent's own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

/// The available amount: of a turn, of an account, or of an agent that hands work over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Tokens.
    pub tokens: u64,
    /// Calls.
    pub calls: u32,
    /// Millionths; none if the cost is not limited.
    pub cost_micros: Option<u64>,
}

impl Budget {
    /// Returns whether it names no limit.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the budget with an even share of the available amount for each limit that it does
    /// not name. One share is for it, one for each of the `later` ones that are still to be handed
    /// over, and one for the agent that hands them over. Without later ones that is half. All
    /// agents that receive work at once thus get no more than the available amount.
    #[must_use]
    pub fn or_share_of(self, available: Available, later: u64) -> Self {
        let shares = later.saturating_add(2);
        let calls = u64::from(available.calls) / shares;
        Self {
            tokens: self.tokens.or(Some(available.tokens / shares)),
            calls: self
                .calls
                .or(Some(u32::try_from(calls).unwrap_or(u32::MAX))),
            cost_micros: self
                .cost_micros
                .or(available.cost_micros.map(|micros| micros / shares)),
        }
    }

    /// Returns the budget, reduced to its giver's available amount. A limit that it does not name
    /// becomes the whole available amount.
    #[must_use]
    pub fn within(self, available: Available) -> Self {
        Self {
            tokens: Some(
                self.tokens
                    .map_or(available.tokens, |tokens| tokens.min(available.tokens)),
            ),
            calls: Some(
                self.calls
                    .map_or(available.calls, |calls| calls.min(available.calls)),
            ),
            cost_micros: lesser(self.cost_micros, available.cost_micros),
        }
    }

    /// Returns the reservation for it: the limits that it names, as far as they are available.
    /// Other limits count when they are spent.
    #[must_use]
    pub fn reserved(self, available: Available) -> Amount {
        Amount {
            tokens: self.tokens.unwrap_or(0).min(available.tokens),
            calls: self.calls.unwrap_or(0).min(available.calls),
            cost_micros: self
                .cost_micros
                .unwrap_or(0)
                .min(available.cost_micros.unwrap_or(u64::MAX)),
        }
    }
}

impl Available {
    /// Returns the highest cost of a model call with `prompt` and `reply` tokens, which is reserved
    /// for it. None when the model has no price.
    ///
    /// # Errors
    /// It exceeds the available amount, or the cost is limited and the model has no price.
    pub fn afford(
        &self,
        price: Option<Price>,
        prompt: u64,
        reply: u64,
    ) -> Result<Option<u64>, String> {
        let needed = price.map(|price| price.at_most(prompt, reply));
        match (self.cost_micros, needed) {
            (Some(_), None) => {
                let reported = "what this turn costs is limited (costMicrosMax), and the model, or one \
                            that is asked in its place, has no price: \
                            the operator says one in `models.<alias>.price`";
                Err(reported.to_owned())
            }
            // The text is for users, who do not know of reservations.
            (Some(left), Some(needed)) if left < needed => {
                Err("too little is left of what this turn may cost (costMicrosMax)".to_owned())
            }
            _ => Ok(needed),
        }
    }

    /// Returns the limit, of cost or of tokens, that does not suffice for `more`, with a text for
    /// people. None if both suffice. `of` names the owner of the limits.
    #[must_use]
    pub fn short_of(&self, more: Amount, of: &str) -> Option<(&'static str, String)> {
        let Self {
            tokens,
            cost_micros,
            ..
        } = *self;
        if cost_micros.is_some_and(|micros| micros < more.cost_micros) {
            let reported = format!("too little is left of the cost of {of} (costMicrosMax)");
            return Some(("costMicrosMax", reported));
        }
        (tokens < more.tokens).then(|| {
            let reported = format!("too few tokens are left of {of} (tokensMax)");
            ("tokensMax", reported)
        })
    }

    /// The less of both, of each.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.min(other.tokens),
            calls: self.calls.min(other.calls),
            cost_micros: lesser(self.cost_micros, other.cost_micros),
        }
    }

    /// Subtracts a spent or reserved amount.
    pub fn subtract(&mut self, amount: Amount) {
        self.tokens = self.tokens.saturating_sub(amount.tokens);
        self.calls = self.calls.saturating_sub(amount.calls);
        self.cost_micros = self
            .cost_micros
            .map(|micros| micros.saturating_sub(amount.cost_micros));
    }
}

/// The lesser of two optional limits.
fn lesser(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl TurnLimits {
    /// Returns the limits, reduced to those of a budget.
    #[must_use]
    pub fn within(self, budget: Budget) -> Self {
        Self {
            tokens_max: budget
                .tokens
                .map_or(self.tokens_max, |tokens| tokens.min(self.tokens_max)),
            tool_calls_max: budget
                .calls
                .map_or(self.tool_calls_max, |calls| calls.min(self.tool_calls_max)),
            cost_micros_max: lesser(budget.cost_micros, self.cost_micros_max),
            ..self
        }
    }
}

/// A spent or reserved amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Amount {
    /// Tokens.
    pub tokens: u64,
    /// Calls.
    pub calls: u32,
    /// Millionths.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub cost_micros: u64,
}

impl Amount {
    /// Returns whether it is zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether it has any of the resource that a limit bounds, by the key of the limit.
    #[must_use]
    pub fn has_any_of(&self, limit: &str) -> bool {
        match limit {
            "tokensMax" => self.tokens > 0,
            "toolCallsMax" => self.calls > 0,
            "costMicrosMax" => self.cost_micros > 0,
            _ => false,
        }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }

    /// The more of both, of each.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            calls: self.calls.max(other.calls),
            cost_micros: self.cost_micros.max(other.cost_micros),
        }
    }
}

#[cfg(test)]
mod tests;

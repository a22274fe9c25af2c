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
mod tests {
    use super::{Amount, Available, Budget};
    use crate::values::limits::TurnLimits;
    use crate::work::price::Price;

    /// A budget is what is named as far as it is left and never more than the agents own limits.
    #[test]
    fn a_budget_is_at_most_what_is_named_available_and_within_the_agents_limits() {
        let left = Available {
            tokens: 1_000,
            calls: 10,
            cost_micros: None,
        };
        let own = TurnLimits {
            tokens_max: 800,
            tool_calls_max: 100,
            ..TurnLimits::default()
        };
        for (tokens, calls, expected, reserved) in [
            (None, None, (800, 10), (0, 0)),
            (Some(500), Some(3), (500, 3), (500, 3)),
            (Some(900), None, (800, 10), (900, 0)),
            (Some(5_000), Some(50), (800, 10), (1_000, 10)),
            (Some(0), Some(0), (0, 0), (0, 0)),
        ] {
            let budget = Budget {
                tokens,
                calls,
                cost_micros: None,
            };
            let limits = own.within(budget.within(left));
            assert_eq!(
                (limits.tokens_max, limits.tool_calls_max),
                expected,
                "{budget:?}"
            );
            assert_eq!(
                (limits.steps_max, limits.cost_micros_max),
                (own.steps_max, None)
            );
            let (tokens, calls) = reserved;
            assert_eq!(
                budget.reserved(left),
                Amount {
                    tokens,
                    calls,
                    cost_micros: 0
                },
                "{budget:?}"
            );
        }
    }

    /// A call that may cost more than is left or nobody knows what is not afforded and the budget
    /// is named.
    #[test]
    fn a_call_of_too_high_or_unknown_cost_is_not_afforded_and_the_budget_is_named() {
        let price = Price::per_million(1.0, None, 2.0);
        for (left, price, expected) in [
            (None, None, Ok(None)),
            (None, price, Ok(Some(200))),
            (Some(200), price, Ok(Some(200))),
            (
                Some(199),
                price,
                Err("too little is left of what this turn may cost (costMicrosMax)"),
            ),
            (Some(199), Price::per_million(0.0, None, 0.0), Ok(Some(0))),
            (Some(u64::MAX), None, Err("`models.<alias>.price`")),
        ] {
            let afforded = Available {
                tokens: 1,
                calls: 1,
                cost_micros: left,
            }
            .afford(price, 0, 100);
            match (afforded, expected) {
                (Err(reported), Err(expected)) => assert!(
                    reported.contains(expected) && reported.contains("costMicrosMax"),
                    "{reported}"
                ),
                (afforded, expected) => assert_eq!(
                    afforded,
                    expected.map_err(str::to_owned),
                    "{left:?} {price:?}"
                ),
            }
        }
    }

    /// Each limit is the least of all that are named, and half of what is available where none is.
    #[test]
    fn each_limit_is_the_least_that_is_named_and_half_where_nothing_is_named() {
        let left = |cost_micros| Available {
            tokens: 1,
            calls: 1,
            cost_micros,
        };
        let own = |cost_micros_max| TurnLimits {
            cost_micros_max,
            ..TurnLimits::default()
        };
        for (named, of_caller, of_agent, expected, reserved) in [
            (None, None, None, None, 0),
            (Some(5), None, None, Some(5), 5),
            (None, Some(9), None, Some(9), 0),
            (None, None, Some(7), Some(7), 0),
            (Some(5), Some(9), Some(7), Some(5), 5),
            (Some(50), Some(9), Some(70), Some(9), 9),
            (Some(5), Some(9), Some(3), Some(3), 5),
            (Some(5), Some(0), None, Some(0), 0),
        ] {
            let budget = Budget {
                cost_micros: named,
                ..Budget::default()
            };
            let left = left(of_caller);
            assert_eq!(
                own(of_agent).within(budget.within(left)).cost_micros_max,
                expected,
                "{named:?} {of_caller:?} {of_agent:?}"
            );
            assert_eq!(
                budget.reserved(left).cost_micros,
                reserved,
                "{named:?} {of_caller:?} {of_agent:?}"
            );
        }
        let mut all = Available {
            tokens: 1_000,
            calls: 9,
            cost_micros: Some(100),
        };
        let set_aside = [0; 4].map(|_| {
            let reserved = Budget::default().or_share_of(all, 0).reserved(all);
            all.subtract(reserved);
            (reserved.tokens, reserved.calls, reserved.cost_micros)
        });
        assert_eq!(
            set_aside,
            [(500, 4, 50), (250, 2, 25), (125, 1, 12), (62, 1, 6)]
        );
        assert_eq!(
            all,
            Available {
                tokens: 63,
                calls: 1,
                cost_micros: Some(7)
            }
        );
        let named = Budget {
            tokens: Some(7),
            calls: Some(0),
            cost_micros: None,
        };
        assert_eq!(
            named.or_share_of(all, 0),
            Budget {
                cost_micros: Some(3),
                ..named
            },
            "what is named stays"
        );
        assert_eq!(
            Budget::default().or_share_of(left(None), 0).cost_micros,
            None,
            "nobody limits it"
        );
    }

    /// Returns the shares of calls and money that so many delegations of one step get, of which
    /// each is a call itself. What is left comes with them.
    fn shares(count: u64, calls: u32, cost_micros: u64) -> (Vec<(u32, u64)>, Available) {
        let mut left = Available {
            tokens: 0,
            calls,
            cost_micros: Some(cost_micros),
        };
        let shares = (0..count)
            .rev()
            .map(|later| {
                left.calls -= 1;
                let reserved = Budget::default().or_share_of(left, later).reserved(left);
                left.subtract(reserved);
                (reserved.calls, reserved.cost_micros)
            })
            .collect();
        (shares, left)
    }

    #[test]
    fn delegations_of_one_step_get_even_shares_and_so_much_is_kept() {
        for (count, calls, expected, kept) in [
            (1, 100, vec![(49, 500)], (50, 500)),
            (
                5,
                100,
                vec![(16, 166), (16, 166), (16, 167), (16, 167), (15, 167)],
                (16, 167),
            ),
            (3, 4, vec![(0, 250), (0, 250), (0, 250)], (1, 250)),
        ] {
            let (shares, left) = shares(count, calls, 1_000);
            assert_eq!(shares, expected, "{count} of {calls}");
            assert_eq!((left.calls, left.cost_micros), (kept.0, Some(kept.1)));
        }
        for count in [20, 37, 49] {
            let (shares, left) = shares(count, TurnLimits::default().tool_calls_max, 1_000_000);
            let most = shares.iter().map(|(calls, _)| *calls).max().unwrap();
            let least = shares.iter().map(|(calls, _)| *calls).min().unwrap();
            assert!(least >= 1 && most - least <= 1, "{count}: {shares:?}");
            let given: u32 = shares.iter().map(|(calls, _)| *calls + 1).sum();
            assert_eq!(given + left.calls, TurnLimits::default().tool_calls_max);
            let money: u64 = shares.iter().map(|(_, micros)| *micros).sum();
            assert_eq!(Some(1_000_000 - money), left.cost_micros, "{count}");
        }
    }

    #[test]
    fn an_amount_has_what_a_limit_bounds_by_the_limits_key() {
        let amount = |tokens, calls, cost_micros| Amount {
            tokens,
            calls,
            cost_micros,
        };
        for (amount, limit, has_any) in [
            (amount(1, 0, 0), "tokensMax", true),
            (amount(0, 1, 1), "tokensMax", false),
            (amount(0, 1, 0), "toolCallsMax", true),
            (amount(1, 0, 1), "toolCallsMax", false),
            (amount(0, 0, 1), "costMicrosMax", true),
            (amount(1, 1, 0), "costMicrosMax", false),
            (amount(1, 1, 1), "stepsMax", false),
        ] {
            assert_eq!(amount.has_any_of(limit), has_any, "{amount:?} {limit}");
        }
    }
}

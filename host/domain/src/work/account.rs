//! Accounts: limits shared by all work that follows from one message.
//!
//! A turn that a message begins opens an account with its own limits. Handed-over work has an
//! account of its own, with the budget that it was given. Everything that follows from that work
//! spends from its account and from those above it, however late. That includes its turns, the
//! turns that late replies to it begin, its reminders, and the work that it hands over in turn.
//! Only unspent reservations return to an account. So along a chain of agents, and over all turns
//! that follow from its first, the available amount only shrinks.
//!
//! Four terms are used for tokens, calls and money, here and in all other counts:
//!
//! - The **limit** is the most that an account, a turn or a budget allows.
//! - An amount is **reserved** when something begins that may cost as much: a model's call, an
//!   attempt at it, work that is handed over. The reservation ends with what it was made for.
//! - An amount is **spent** when what cost it has ended. If its end is never known, what was
//!   reserved for it is spent.
//! - The rest is **available**: the limit without what is spent or reserved.
//!
//! Stored and transmitted names differ: `drawn` is spent or reserved, `left` is available.

use crate::thread::model::Usage;
use crate::values::id::{AccountId, InputId, RunId};
use crate::values::limits::TurnLimits;
use crate::work::budget::{Amount, Available, Budget};
use crate::work::operation::{Attempt, Operation, Performer, Settlement};
use crate::work::step::OperationOutcome;
use serde::{Deserialize, Serialize};

/// Limits of one message, or one piece of work, with everything that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The run that a message began, or the input of the handed-over work.
    pub id: AccountId,
    /// Tokens of prompts and replies together.
    pub tokens: u64,
    /// Calls of tools and of agents.
    pub calls: u32,
    /// Highest cost of models, in millionths; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

/// The accounts that a run spends from, from that of the original message to that of its own work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounts(Vec<Account>);

impl Accounts {
    /// Returns the accounts of a run that a message began.
    #[must_use]
    pub fn of_message(run: RunId, limits: &TurnLimits) -> Self {
        let TurnLimits {
            tokens_max,
            tool_calls_max,
            cost_micros_max,
            ..
        } = *limits;
        Self(vec![Account {
            id: AccountId(run.0),
            tokens: tokens_max,
            calls: tool_calls_max,
            cost_micros: cost_micros_max,
        }])
    }

    /// Returns the accounts of work that a run with these accounts hands over. The work gets
    /// `budget` out of the run's available amount.
    #[must_use]
    pub fn delegating(&self, input: InputId, budget: Budget, available: Available) -> Self {
        let Budget {
            tokens,
            calls,
            cost_micros,
        } = budget.within(available);
        let own = Account {
            id: AccountId(input.0),
            tokens: tokens.unwrap_or(available.tokens),
            calls: calls.unwrap_or(available.calls),
            cost_micros,
        };
        Self(self.0.iter().copied().chain([own]).collect())
    }

    /// Returns whether there are no accounts, as in the event of a run that a message began.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the account of the original message.
    #[must_use]
    pub fn first(&self) -> Option<AccountId> {
        self.0.first().map(|account| account.id)
    }

    /// The address of each, in order: the ids of the accounts above it, followed by its own.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let mut address = String::new();
        let deeper = self.0.iter().map(|account| {
            if !address.is_empty() {
                address.push('/');
            }
            address.push_str(&account.id.to_string());
            address.clone()
        });
        deeper.collect()
    }

    /// The address of the work's own account; empty if there are none.
    #[must_use]
    pub fn address(&self) -> String {
        self.addresses().pop().unwrap_or_default()
    }

    /// Returns the available amount: the least over all accounts. `others` is the amount that
    /// others have spent or reserved on each of them; `own` is the run's own amount, on all of
    /// them.
    #[must_use]
    pub fn available(&self, others: &[Amount], own: Amount) -> Available {
        let all = Available {
            tokens: u64::MAX,
            calls: u32::MAX,
            cost_micros: None,
        };
        self.0
            .iter()
            .zip(others)
            .fold(all, |all, (account, others)| {
                let mut available = Available {
                    tokens: account.tokens,
                    calls: account.calls,
                    cost_micros: account.cost_micros,
                };
                available.subtract(others.plus(own));
                all.least(available)
            })
    }

    /// Returns a text that names the first account on which `more` is not available, and the
    /// resource that is short. None if it is available on all. `others` is the amount that others
    /// have spent or reserved on each account; `own` is the run's own amount, on all of them. A
    /// resource of which `more` requests nothing is never short, even on an overdrawn account.
    #[must_use]
    pub fn shortage(&self, others: &[Amount], own: Amount, more: Amount) -> Option<String> {
        self.0.iter().zip(others).find_map(|(account, others)| {
            let all = others.plus(own).plus(more);
            let over = |what: &str| {
                Some(format!(
                    "the account {} has not so much {what} left",
                    account.id
                ))
            };
            if more.tokens > 0 && all.tokens > account.tokens {
                over("tokens")
            } else if more.calls > 0 && all.calls > account.calls {
                over("calls")
            } else if more.cost_micros > 0
                && account.cost_micros.is_some_and(|max| all.cost_micros > max)
            {
                over("money")
            } else {
                None
            }
        })
    }
}

/// Returns the amount that an operation has spent or reserved when it starts. A model call has a
/// reservation; anything that counts as a call has spent a call.
#[must_use]
pub fn spent_or_reserved(operation: &Operation) -> Amount {
    Amount {
        calls: u32::from(is_call(&operation.performer)),
        ..reserved(&operation.performer)
    }
}

/// Returns the reservation for a model call; zero for other operations.
#[must_use]
pub fn reserved(performer: &Performer) -> Amount {
    match performer {
        Performer::Model {
            reserved_tokens,
            reserved_micros,
            ..
        } => Amount {
            tokens: *reserved_tokens,
            calls: 0,
            cost_micros: reserved_micros.unwrap_or(0),
        },
        _ => Amount::default(),
    }
}

/// Returns whether it counts as a call of a tool or an agent. Formerly, work without a waiting
/// caller had no performer of its own. It was then an operation that settles at once with a result.
#[must_use]
pub fn is_call(performer: &Performer) -> bool {
    match performer {
        Performer::Tool { .. }
        | Performer::Agent { .. }
        | Performer::Detached { .. }
        | Performer::Command { .. }
        | Performer::External { .. }
        | Performer::Memory { .. }
        | Performer::Lasting { .. }
        | Performer::Reply { .. } => true,
        // A lookup by the agent's own code is no call.
        Performer::Recall { of, .. } => of.is_some(),
        Performer::Refused { outcome, .. } => matches!(outcome, OperationOutcome::Parts { .. }),
        Performer::Model { .. } | Performer::Client { .. } | Performer::Timer { .. } => false,
    }
}

/// Returns the amount spent by a settled model call, given its earlier amount spent or reserved
/// (`reserved`). With a lost outcome, its reservation is spent. That is the reservation of an
/// attempt, or the whole reservation of a call that was stopped in progress.
#[must_use]
pub fn spent(reserved: Amount, settlement: &Settlement) -> (Usage, u64) {
    if settlement.attempts.is_empty() {
        let is_lost = matches!(
            settlement.outcome,
            OperationOutcome::Cancelled
                | OperationOutcome::TimedOut
                | OperationOutcome::Unknown { .. }
        );
        return if is_lost {
            (lost(reserved), reserved.cost_micros)
        } else {
            Default::default()
        };
    }
    spent_on(&settlement.attempts, reserved)
}

/// Returns the amount spent by attempts at a model: their usage, or the reservation if the usage is
/// unknown. The reservation is `reserved` if the attempt itself names none.
#[must_use]
pub fn spent_on(attempts: &[Attempt], reserved: Amount) -> (Usage, u64) {
    attempts
        .iter()
        .fold((Usage::default(), 0), |(usage, micros), attempt| {
            let (more, cost) = spent_on_one(attempt, reserved);
            (usage.plus(more), micros.saturating_add(cost))
        })
}

/// Returns the amount spent by one attempt. See [`spent_on`].
#[must_use]
pub fn spent_on_one(attempt: &Attempt, reserved: Amount) -> (Usage, u64) {
    let reserved = attempt.reserved.unwrap_or(reserved);
    let cost_if_lost = if attempt.usage.is_none() {
        reserved.cost_micros
    } else {
        0
    };
    (
        attempt.usage.unwrap_or(lost(reserved)),
        attempt.cost_micros.unwrap_or(cost_if_lost),
    )
}

/// Returns a lost attempt's reservation as usage.
pub(crate) fn lost(reserved: Amount) -> Usage {
    Usage {
        input_tokens: reserved.tokens,
        output_tokens: 0,
        cached_tokens: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::Accounts;
    use crate::values::id::{InputId, RunId};
    use crate::values::limits::TurnLimits;
    use crate::work::budget::{Amount, Available, Budget};
    use uuid::Uuid;

    fn spent(tokens: u64, calls: u32, cost_micros: u64) -> Amount {
        Amount {
            tokens,
            calls,
            cost_micros,
        }
    }

    fn limits(tokens_max: u64, tool_calls_max: u32, cost_micros_max: Option<u64>) -> TurnLimits {
        TurnLimits {
            tokens_max,
            tool_calls_max,
            cost_micros_max,
            ..TurnLimits::default()
        }
    }

    fn nested() -> Accounts {
        let outer = Accounts::of_message(RunId(Uuid::from_u128(1)), &limits(1_000, 10, Some(500)));
        let left = Available {
            tokens: 900,
            calls: 8,
            cost_micros: Some(400),
        };
        outer.delegating(
            InputId(Uuid::from_u128(2)),
            Budget {
                tokens: Some(300),
                calls: Some(20),
                cost_micros: Some(100),
            },
            left,
        )
    }

    #[test]
    fn what_is_left_is_the_least_of_all_accounts_and_more_than_that_is_lacking() {
        let accounts = nested();
        for (others, own, expected) in [
            ([(0, 0, 0), (0, 0, 0)], (0, 0, 0), (300, 8, Some(100))),
            ([(800, 1, 0), (0, 0, 0)], (50, 1, 10), (150, 7, Some(90))),
            ([(800, 9, 450), (290, 0, 0)], (0, 0, 0), (10, 1, Some(50))),
            ([(5_000, 90, 5_000), (0, 0, 0)], (0, 0, 0), (0, 0, Some(0))),
        ] {
            let others = others.map(|(tokens, calls, micros)| spent(tokens, calls, micros));
            let own = spent(own.0, own.1, own.2);
            let left = accounts.available(&others, own);
            assert_eq!(
                (left.tokens, left.calls, left.cost_micros),
                expected,
                "{others:?} {own:?}"
            );
            let all = spent(left.tokens, left.calls, left.cost_micros.unwrap());
            assert_eq!(
                accounts.shortage(&others, own, all),
                None,
                "what is left can be drawn: {others:?}"
            );
            for more in [spent(1, 0, 0), spent(0, 1, 0), spent(0, 0, 1)] {
                assert!(
                    accounts.shortage(&others, own.plus(all), more).is_some(),
                    "and no more than that: {others:?} {more:?}"
                );
            }
        }
        assert_eq!(
            accounts.available(&[], spent(0, 0, 0)).tokens,
            u64::MAX,
            "nobody has looked"
        );
    }

    /// An account is addressed below those above it and a share is never more than what is left.
    #[test]
    fn an_account_lies_below_its_parents_and_a_share_is_at_most_what_is_available() {
        let addresses = nested().addresses();
        let [outer, inner] = addresses.as_slice() else {
            panic!("{addresses:?}")
        };
        assert!(inner.starts_with(&format!("{outer}/")) && nested().address() == *inner);
        assert_eq!(nested().first().unwrap().to_string(), *outer);
        assert_eq!(Accounts::default().address(), "");
        let text = serde_json::to_string(&nested()).unwrap();
        assert_eq!(serde_json::from_str::<Accounts>(&text).unwrap(), nested());
    }
}

//! Accounts: what all may use together that one message began.
//!
//! A turn that somebody's words begin opens an account with what its limits say, and work that is handed over has one of its own, with the
//! share that it was given. Everything that comes of that work draws on it and on those above it, however late: its turns, the turns that
//! late replies to it begin, those that it reminds itself of, and the work that it hands over in turn. An account never gets anything
//! back but what was reserved and not used. So along a chain of agents, and over all that comes after its first turn, what is left only
//! shrinks.

use crate::budget::{Budget, Left, Spent};
use crate::id::{AccountId, InputId, RunId};
use crate::limits::TurnLimits;
use crate::model::{Attempt, Usage};
use crate::operation::{Operation, Performer, Settlement};
use crate::step::Outcome;
use serde::{Deserialize, Serialize};

/// What one message, or one piece of work, may use with everything that comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The run that a message began, or the input that handed the work over.
    pub id: AccountId,
    /// Tokens of prompts and replies together.
    pub tokens: u64,
    /// Calls of tools and of agents.
    pub calls: u32,
    /// Millionths that models may cost; none for as many as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

/// The accounts that a run draws on: that of the message which began everything first, its own work's last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounts(Vec<Account>);

impl Accounts {
    /// Those of a run that a message began.
    #[must_use]
    pub fn of_message(run: RunId, limits: &TurnLimits) -> Self {
        let TurnLimits { tokens_max, tool_calls_max, cost_micros_max, .. } = *limits;
        Self(vec![Account { id: AccountId(run.0), tokens: tokens_max, calls: tool_calls_max, cost_micros: cost_micros_max }])
    }

    /// Those of work that is handed over by whoever has these, with such a share of what they have left.
    #[must_use]
    pub fn handing(&self, input: InputId, share: Budget, left: Left) -> Self {
        let Budget { tokens, calls, cost_micros } = share.within(left);
        let own =
            Account { id: AccountId(input.0), tokens: tokens.unwrap_or(left.tokens), calls: calls.unwrap_or(left.calls), cost_micros };
        Self(self.0.iter().copied().chain([own]).collect())
    }

    /// Whether there are none: of a run that a message began, and of what was stored before there were any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// That of the message which began everything.
    #[must_use]
    pub fn first(&self) -> Option<AccountId> {
        self.0.first().map(|account| account.id)
    }

    /// The address of each, in order: its id behind those of the accounts above it.
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

    /// The address of the work's own; empty when there are none.
    #[must_use]
    pub fn address(&self) -> String {
        self.addresses().pop().unwrap_or_default()
    }

    /// What is left, where others have drawn so much on each of them, and oneself this: the least of all.
    #[must_use]
    pub fn left(&self, others: &[Spent], own: Spent) -> Left {
        let all = Left { tokens: u64::MAX, calls: u32::MAX, cost_micros: None };
        self.0.iter().zip(others).fold(all, |all, (account, others)| {
            let mut left = Left { tokens: account.tokens, calls: account.calls, cost_micros: account.cost_micros };
            left.take(others.plus(own));
            all.least(left)
        })
    }

    /// Which of them does not have so much more, and what of, where others have drawn so much on each, and oneself this; none when all have.
    /// Of what no more is drawn nothing is lacking, also on an account from which more was taken than it had.
    #[must_use]
    pub fn lacking(&self, others: &[Spent], own: Spent, more: Spent) -> Option<String> {
        self.0.iter().zip(others).find_map(|(account, others)| {
            let all = others.plus(own).plus(more);
            let over = |what: &str| Some(format!("the account {} has not so much {what} left", account.id));
            if more.tokens > 0 && all.tokens > account.tokens {
                over("tokens")
            } else if more.calls > 0 && all.calls > account.calls {
                over("calls")
            } else if more.cost_micros > 0 && account.cost_micros.is_some_and(|max| all.cost_micros > max) {
                over("money")
            } else {
                None
            }
        })
    }
}

/// What an operation draws when it starts: a model's call what is reserved for it, and whatever counts as one a call.
#[must_use]
pub fn drawn(operation: &Operation) -> Spent {
    Spent { calls: u32::from(is_call(&operation.performer)), ..reserved(&operation.performer) }
}

/// What is reserved for a call of a model; nothing for anything else.
#[must_use]
pub fn reserved(performer: &Performer) -> Spent {
    match performer {
        Performer::Model { reserved_tokens, reserved_micros, .. } => {
            Spent { tokens: *reserved_tokens, calls: 0, cost_micros: reserved_micros.unwrap_or(0) }
        }
        _ => Spent::default(),
    }
}

/// Whether it counts as a call of a tool or an agent. Before it had a performer of its own, work that nobody waits for was what settles at
/// once with a result.
#[must_use]
pub fn is_call(performer: &Performer) -> bool {
    match performer {
        Performer::Tool { .. } | Performer::Agent { .. } | Performer::Detached { .. } | Performer::Reply { .. } => true,
        Performer::Refused { outcome } => matches!(outcome, Outcome::Parts { .. }),
        Performer::Model { .. } | Performer::Client { .. } | Performer::Recall { .. } | Performer::Timer { .. } => false,
    }
}

/// What a model's call has used that drew so much until it settled. A lost outcome is charged its reservation: that of an attempt, or all that
/// a call drew which was stopped while it was made.
#[must_use]
pub fn used(reserved: Spent, settlement: &Settlement) -> (Usage, u64) {
    if settlement.attempts.is_empty() {
        let is_lost = matches!(settlement.outcome, Outcome::Cancelled | Outcome::TimedOut | Outcome::Unknown);
        return if is_lost { (lost(reserved), reserved.cost_micros) } else { Default::default() };
    }
    charged(&settlement.attempts, reserved)
}

/// What attempts at a model are charged: what they used, and one of which nobody knows that what was reserved for it. That is `reserved` where
/// the attempt itself does not say.
#[must_use]
pub fn charged(attempts: &[Attempt], reserved: Spent) -> (Usage, u64) {
    attempts.iter().fold((Usage::default(), 0), |(usage, micros), attempt| {
        let reserved = attempt.reserved.unwrap_or(reserved);
        let cost_if_lost = if attempt.usage.is_none() { reserved.cost_micros } else { 0 };
        (usage.plus(attempt.usage.unwrap_or(lost(reserved))), micros.saturating_add(attempt.cost_micros.unwrap_or(cost_if_lost)))
    })
}

/// As what the reservation of a lost attempt is counted.
fn lost(reserved: Spent) -> Usage {
    Usage { input_tokens: reserved.tokens, output_tokens: 0, cached_tokens: 0 }
}

#[cfg(test)]
mod tests;

//! Usage: the resources that settled work has used, as sums by day and model.
//!
//! The sums are those of the accounts ([`crate::work::account`], which defines the words). The
//! amount spent by an operation counts here when it settles. A reservation that is never settled
//! counts as spent when its run ends. As soon as a run has no open operation, its usage is
//! therefore the amount drawn on its accounts.

use crate::thread::model::Usage;
use crate::values::time::Timestamp;
use crate::work::account::{self, lost, spent_on_one};
use crate::work::budget::Amount;
use crate::work::operation::{Attempt, Operation, Performer, Settlement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The most characters of a model's name: an agent may request any name.
const MODEL_CHARS_MAX: usize = 128;
/// The most that one attempt or one share adds to a sum: a provider may report any number. The
/// database stores sums in 63 bits, which half a million of these fit into.
const COUNTED_MAX: u64 = 1 << 44;

/// Number of sums.
pub const COLUMNS: usize = 11;

/// A day in UTC, counted from 1970-01-01.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Day(pub u32);

impl Day {
    /// The day of a point in time.
    #[must_use]
    pub fn from_time(time: Timestamp) -> Self {
        Self(u32::try_from(time.0 / DAY_MS).unwrap_or(u32::MAX))
    }

    /// The day this many days earlier; the first day if there are not so many.
    #[must_use]
    pub fn minus(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days))
    }
}

/// ISO 8601, such as `2026-11-24`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Timestamp(u64::from(self.0).saturating_mul(DAY_MS)).to_string();
        f.write_str(start.split('T').next().unwrap_or(&start))
    }
}

impl FromStr for Day {
    type Err = NotADay;
    fn from_str(text: &str) -> Result<Self, NotADay> {
        let no = || NotADay {
            text: text.chars().take(64).collect(),
        };
        let start: Timestamp = format!("{text}T00:00:00Z").parse().map_err(|_| no())?;
        let day = Self::from_time(start);
        // Other spellings of ISO 8601 are refused, so that a day has one.
        (day.to_string() == text).then_some(day).ok_or_else(no)
    }
}

/// A text that is no day since 1970.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no day like `2026-11-24`")]
pub struct NotADay {
    text: String,
}

/// Sums of used resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageSum {
    /// Model calls that were made, whatever their result.
    pub model_calls: u64,
    /// Attempts at them: requests to a provider.
    pub attempts: u64,
    /// Attempts with an unknown cost, because the model has no price.
    pub unpriced_attempts: u64,
    /// Tokens of prompts, cached ones included, as providers reported them.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Cached tokens of prompts.
    pub cached_tokens: u64,
    /// Cost in millionths ([`crate::work::price`]).
    pub cost_micros: u64,
    /// Calls of tools and of agents.
    pub tool_calls: u64,
    /// Milliseconds during which a model or a tool worked.
    pub active_ms: u64,
    /// Tokens reserved for attempts whose usage no provider reported: failed or lost ones. They
    /// count towards limits, but not towards a bill.
    pub reserved_tokens: u64,
    /// The reserved cost of these tokens, in millionths.
    pub reserved_cost_micros: u64,
}

impl UsageSum {
    /// Returns whether it is zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let mut sums = self.numbers();
        sums.iter_mut()
            .zip(other.numbers())
            .for_each(|(sum, more)| *sum = sum.saturating_add(more));
        Self::from_numbers(sums)
    }

    /// Prompts, replies and reserves together, calls and cost, in the form of the accounts.
    #[must_use]
    pub fn amount(&self) -> Amount {
        let delivered = self.input_tokens.saturating_add(self.output_tokens);
        Amount {
            tokens: delivered.saturating_add(self.reserved_tokens),
            calls: u32::try_from(self.tool_calls).unwrap_or(u32::MAX),
            cost_micros: self.cost_micros.saturating_add(self.reserved_cost_micros),
        }
    }

    /// All sums, in the order of the fields.
    #[must_use]
    pub fn numbers(&self) -> [u64; COLUMNS] {
        [
            self.model_calls,
            self.attempts,
            self.unpriced_attempts,
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.cost_micros,
            self.tool_calls,
            self.active_ms,
            self.reserved_tokens,
            self.reserved_cost_micros,
        ]
    }

    /// The reverse of [`Self::numbers`].
    #[must_use]
    pub fn from_numbers(numbers: [u64; COLUMNS]) -> Self {
        let [
            model_calls,
            attempts,
            unpriced_attempts,
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            tool_calls,
            active_ms,
            reserved_tokens,
            reserved_cost_micros,
        ] = numbers;
        Self {
            model_calls,
            attempts,
            unpriced_attempts,
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            tool_calls,
            active_ms,
            reserved_tokens,
            reserved_cost_micros,
        }
    }

    /// Returns the usage of an attempt; the reserve if its usage was not reported.
    fn from_attempt(attempt: &Attempt, reserve: Amount) -> Self {
        let (spent, cost_micros) = spent_on_one(attempt, reserve);
        match attempt.usage {
            Some(usage) => Self {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cached_tokens: usage.cached_tokens,
                cost_micros,
                ..Self::default()
            },
            None => Self::from_reserve(spent, cost_micros),
        }
    }

    fn from_reserve(spent: Usage, cost_micros: u64) -> Self {
        Self {
            reserved_tokens: spent.input_tokens.saturating_add(spent.output_tokens),
            reserved_cost_micros: cost_micros,
            ..Self::default()
        }
    }

    fn limited(self) -> Self {
        Self::from_numbers(self.numbers().map(|number| number.min(COUNTED_MAX)))
    }
}

/// The part of an operation that counts on settlement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Counted {
    /// A call of a model.
    Model {
        /// The requested name, if any.
        asked: Option<String>,
        /// Amount that it draws on its accounts while open.
        drawn: Amount,
    },
    /// A call of a tool or an agent.
    Call,
    /// Only its time.
    #[default]
    Time,
}

impl Counted {
    /// Returns the part of an operation that counts.
    #[must_use]
    pub fn from_operation(operation: &Operation) -> Self {
        match &operation.performer {
            Performer::Model { request, .. } => Self::Model {
                asked: request.model.clone(),
                drawn: account::reserved(&operation.performer),
            },
            performer if account::is_call(performer) => Self::Call,
            _ => Self::Time,
        }
    }
}

/// Shares of a run's usage: sums by day and model, in sorted order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageShares(BTreeMap<(Day, Option<String>), UsageSum>);

/// One share, as an event stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageShare {
    /// The day, counted from 1970-01-01 in UTC.
    pub day: Day,
    /// The provider's name of the model; none for a share without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sum: UsageSum,
}

impl UsageShares {
    /// Adds the usage of a settled operation. If it no longer draws on an account, only its time
    /// counts.
    pub fn settled(&mut self, counted: &Counted, settlement: &Settlement) {
        let day = Day::from_time(settlement.time);
        let time = UsageSum {
            active_ms: settlement.active_ms,
            ..UsageSum::default()
        };
        match counted {
            Counted::Time => self.add(day, None, time),
            Counted::Call => {
                let call = UsageSum {
                    tool_calls: 1,
                    ..time
                };
                self.add(day, None, call);
            }
            Counted::Model { asked, drawn } => {
                let asked = asked.as_deref();
                for attempt in &settlement.attempts {
                    let has_no_price = attempt.usage.is_some() && attempt.cost_micros.is_none();
                    let sum = UsageSum {
                        attempts: 1,
                        unpriced_attempts: u64::from(has_no_price),
                        ..UsageSum::from_attempt(attempt, *drawn)
                    };
                    self.add(day, Some(&attempt.model), sum);
                }
                let last = settlement.attempts.last();
                let model = last.map(|attempt| attempt.model.as_str()).or(asked);
                let (usage, cost_micros) = match last {
                    Some(_) => Default::default(),
                    None => account::spent(*drawn, settlement),
                };
                let mut call = UsageSum::from_reserve(usage, cost_micros);
                call.model_calls = u64::from(last.is_some() || !call.is_nothing());
                call.active_ms = settlement.active_ms;
                self.add(day, model, call);
            }
        }
    }

    /// Adds the amount of an operation that was unsettled when its run ended.
    pub fn unsettled(&mut self, counted: &Counted, time: Timestamp) {
        let day = Day::from_time(time);
        match counted {
            Counted::Time => {}
            Counted::Call => {
                let call = UsageSum {
                    tool_calls: 1,
                    ..UsageSum::default()
                };
                self.add(day, None, call);
            }
            Counted::Model { asked, drawn } => {
                let call = UsageSum {
                    model_calls: 1,
                    ..UsageSum::from_reserve(lost(*drawn), drawn.cost_micros)
                };
                self.add(day, asked.as_deref(), call);
            }
        }
    }

    /// Adds active time that is recorded outside outcomes.
    pub fn worked(&mut self, active_ms: u64, time: Timestamp) {
        let sum = UsageSum {
            active_ms,
            ..UsageSum::default()
        };
        self.add(Day::from_time(time), None, sum);
    }

    /// Adds to one share.
    pub fn add(&mut self, day: Day, model: Option<&str>, sum: UsageSum) {
        if sum.is_nothing() {
            return;
        }
        let model = model
            .filter(|model| !model.is_empty())
            .map(|model| model.chars().take(MODEL_CHARS_MAX).collect());
        let so_far = self.0.entry((day, model)).or_default();
        *so_far = so_far.plus(sum.limited());
    }

    /// Adds all of some shares.
    pub fn add_all(&mut self, shares: &[UsageShare]) {
        for share in shares {
            self.add(share.day, share.model.as_deref(), share.sum);
        }
    }

    /// The shares, in order.
    pub fn iter(&self) -> impl Iterator<Item = UsageShare> {
        self.0.iter().map(|((day, model), sum)| UsageShare {
            day: *day,
            model: model.clone(),
            sum: *sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Day, UsageShares, UsageSum};
    use crate::thread::model::Usage;
    use crate::values::digest::Digest;
    use crate::values::id::OperationId;
    use crate::values::time::Timestamp;
    use crate::work::account;
    use crate::work::budget::Amount;
    use crate::work::operation::{Attempt, Settlement};
    use crate::work::step::{Failure, OperationOutcome};

    const NOON: Timestamp = Timestamp(1_700_000_000_000);

    fn attempt(model: &str, tokens: Option<u64>, cost_micros: Option<u64>) -> Attempt {
        let usage = tokens.map(|tokens| Usage {
            input_tokens: tokens,
            output_tokens: 1,
            cached_tokens: 2,
        });
        Attempt {
            provider: "p".to_owned(),
            model: model.to_owned(),
            usage,
            cost_micros,
            wall_ms: 1,
            error: None,
            reserved: None,
        }
    }

    fn settled(outcome: OperationOutcome, attempts: Vec<Attempt>) -> Settlement {
        Settlement {
            attempts,
            active_ms: 5,
            ..Settlement::new(OperationId(Digest::of(b"o")), outcome, NOON)
        }
    }

    fn shares(counted: &Counted, settlement: &Settlement) -> Vec<(Option<String>, UsageSum)> {
        let mut shares = UsageShares::default();
        shares.settled(counted, settlement);
        let all: Vec<_> = shares.iter().collect();
        assert!(all.iter().all(|share| share.day == Day::from_time(NOON)));
        all.into_iter()
            .map(|share| (share.model, share.sum))
            .collect()
    }

    #[test]
    fn a_day_is_written_and_read_in_one_way() {
        assert_eq!(Day::from_time(NOON).to_string(), "2023-11-14");
        assert_eq!("2023-11-14".parse(), Ok(Day::from_time(NOON)));
        assert_eq!("1970-01-01".parse(), Ok(Day(0)));
        assert_eq!(Day(0).minus(1), Day(0));
        for text in [
            "",
            "today",
            "2023-02-30",
            "2023-11-14T00:00:00Z",
            "20231114",
            "+002023-11-14",
            "1969-12-31",
            " 2023-11-14",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_attempt_counts_for_its_model_and_the_call_for_the_last() {
        let counted = Counted::Model {
            asked: Some("alias".to_owned()),
            drawn: Amount {
                tokens: 100,
                calls: 0,
                cost_micros: 7,
            },
        };
        let done = OperationOutcome::Parts { parts: Vec::new() };
        let attempts = vec![
            attempt("big", None, None),
            attempt("small", Some(20), Some(3)),
            attempt("small", Some(30), None),
        ];
        let found = shares(&counted, &settled(done, attempts));
        let big = UsageSum {
            attempts: 1,
            reserved_tokens: 100,
            reserved_cost_micros: 7,
            ..UsageSum::default()
        };
        let small = UsageSum {
            model_calls: 1,
            attempts: 2,
            unpriced_attempts: 1,
            input_tokens: 50,
            output_tokens: 2,
            cached_tokens: 4,
            cost_micros: 3,
            active_ms: 5,
            ..UsageSum::default()
        };
        let named = |model: &str| Some(model.to_owned());
        assert_eq!(found, [(named("big"), big), (named("small"), small)]);
    }

    #[test]
    fn half_a_million_absurd_reports_of_a_provider_fit_into_a_stored_sum() {
        let counted = Counted::Model {
            asked: None,
            drawn: Amount::default(),
        };
        let done = OperationOutcome::Parts { parts: Vec::new() };
        let absurd = vec![attempt("m", Some(u64::MAX), Some(u64::MAX))];
        let found = shares(&counted, &settled(done, absurd));
        let [(_, sum)] = found.as_slice() else {
            panic!("one model: {found:?}");
        };
        assert!(sum.input_tokens > 0 && sum.cost_micros > 0);
        for number in sum.numbers() {
            assert!(u128::from(number) * 500_000 < 1 << 63, "{sum:?}");
        }
    }

    /// The usage of a call is what its account is charged, with any outcome.
    #[test]
    fn usage_is_what_the_account_is_charged_for_every_outcome() {
        let drawn = Amount {
            tokens: 100,
            calls: 0,
            cost_micros: 7,
        };
        let counted = Counted::Model { asked: None, drawn };
        let outcomes = [
            OperationOutcome::Parts { parts: Vec::new() },
            OperationOutcome::Cancelled,
            OperationOutcome::TimedOut,
            OperationOutcome::Unknown {
                cause: Failure::interrupted(),
            },
            OperationOutcome::Elapsed,
        ];
        let histories = [
            Vec::new(),
            vec![attempt("m", None, None)],
            vec![attempt("", None, None), attempt("m", Some(9), Some(2))],
            vec![attempt("m", Some(9), None)],
        ];
        for outcome in outcomes {
            for attempts in &histories {
                let settlement = settled(outcome.clone(), attempts.clone());
                let sum = shares(&counted, &settlement)
                    .into_iter()
                    .fold(UsageSum::default(), |sum, (_, more)| sum.plus(more));
                let (usage, cost_micros) = account::spent(drawn, &settlement);
                let charged = Amount {
                    tokens: usage.total(),
                    calls: 0,
                    cost_micros,
                };
                assert_eq!(sum.amount(), charged, "{settlement:?}");
                assert_eq!(sum.active_ms, 5);
                let made = !attempts.is_empty() || !charged.is_nothing();
                assert_eq!(sum.model_calls, u64::from(made), "{settlement:?}");
            }
        }
    }

    #[test]
    fn tools_count_as_calls_of_no_model_and_everything_else_as_time() {
        let done = settled(OperationOutcome::Elapsed, Vec::new());
        let time = UsageSum {
            active_ms: 5,
            ..UsageSum::default()
        };
        let call = UsageSum {
            tool_calls: 1,
            ..time
        };
        assert_eq!(shares(&Counted::Call, &done), [(None, call)]);
        assert_eq!(shares(&Counted::Time, &done), [(None, time)]);
        let mut left = UsageShares::default();
        left.unsettled(&Counted::Call, NOON);
        left.unsettled(&Counted::Time, NOON);
        left.worked(0, NOON);
        let sums: Vec<UsageSum> = left.iter().map(|share| share.sum).collect();
        assert_eq!(
            sums,
            [UsageSum {
                tool_calls: 1,
                ..UsageSum::default()
            }]
        );
    }
}

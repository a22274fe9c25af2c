//! Tests of usage: sums are those of the accounts, whatever became of an operation.

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

/// Whatever becomes of a call, its usage is what its account is charged.
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

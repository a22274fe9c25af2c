//! Tests of what accounts cover.

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

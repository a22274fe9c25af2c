//! Tests of budgets, and of what a call may cost.

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

/// Returns the shares of calls and money that so many delegations of one step get, of which each is
/// a call itself. What is left comes with them.
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

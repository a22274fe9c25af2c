//! The limits on the usage and cost of turns: prices of models, limits of turns, budgets of work
//! that is handed over, accounts of all that one message began.
//!
//! Usage of real turns: what the accounts were charged is what usage sums, over restarts.

mod accounts;
mod attempts;

use agent_host_tests::process::tells;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::By;
use domain::account::Accounts;
use domain::event::{BoundaryVerdict, Event};
use domain::id::SessionId;
use domain::operation::Performer;
use domain::usage::{Day, UsageSum};
use domain::user::UserId;
use serde_json::{Value, json};
use store::{UsageBy, UsageFilter};

/// A model of which a token costs a millionth, and a puppet whose turns may cost so many.
fn costing(cost_micros_max: u64) -> Setup {
    let mut setup = Setup {
        price: Some(1.0),
        ..Setup::default()
    };
    setup.limits.dispatch.call_depth_max = 3;
    setup.definitions[0]["limits"] = json!({ "costMicrosMax": cost_micros_max });
    setup
}

fn asks(key: &str) -> Value {
    json!({ "start": [{ "key": key, "model": "be brief" }] })
}

fn dispatch(key: &str, script: &Value, budget: &Value) -> Value {
    let arguments =
        json!({ "target": "other", "content": script.to_string(), "wait": true, "budget": budget });
    json!({ "key": key, "tool": "dispatch_to_agent", "args": arguments })
}

/// Returns the cost of all attempts at models so far.
async fn cost(world: &World) -> u64 {
    let settled = world
        .events()
        .await
        .into_iter()
        .flat_map(|event| match event {
            Event::RunStepped(stepped) => stepped.settled,
            Event::RunSettled(settled) => settled.settled,
            _ => Vec::new(),
        });
    settled
        .flat_map(|settled| settled.attempts)
        .map(|attempt| attempt.cost_micros.unwrap())
        .sum()
}

/// The tokens and the millionths that the first call of a model reserved.
async fn reserved(world: &World) -> (u64, Option<u64>) {
    let started = world
        .steps()
        .await
        .into_iter()
        .map(|stepped| stepped.started);
    let mut calls = started
        .flatten()
        .filter_map(|operation| match operation.performer {
            Performer::Model {
                reserved_tokens,
                reserved_micros,
                ..
            } => Some((reserved_tokens, reserved_micros)),
            _ => None,
        });
    calls.next().unwrap()
}

async fn limited(world: &World) -> Vec<String> {
    let decided = world
        .ledger()
        .await
        .into_iter()
        .flat_map(|entry| entry.decisions);
    decided
        .filter(|it| it.verdict == BoundaryVerdict::Limited)
        .map(|it| format!("{} {}", it.capability, it.detail))
        .collect()
}

/// A turn's cost is settled per attempt. The call that may cost too much is refused by the budget's
/// name.
#[tokio::test(flavor = "multi_thread")]
async fn a_turns_cost_is_settled_per_attempt_and_the_call_that_may_exceed_it_is_refused() {
    // What a call reserves, its prompt included, is there for the first one: after it less is left.
    let rich = World::new(costing(1_000_000)).await;
    rich.play(json!([asks("a"), asks("b")])).await;
    let (_, reserved) = reserved(&rich).await;
    let world = World::new(costing(reserved.unwrap())).await;
    let reported = world.play(json!([asks("a"), asks("b")])).await;
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("b failed limit-reached: ")
                && line.contains("(costMicrosMax)")),
        "{reported:?}"
    );
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
    let cost = cost(&world).await;
    assert!(
        (5..4_096).contains(&cost),
        "what was used and not what was reserved: {cost}"
    );
    assert!(
        !reported.iter().any(|line| line.contains("millionths")),
        "a user reads no arithmetic: {reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_price_is_not_asked_by_a_turn_whose_costs_are_limited() {
    let world = World::new(Setup {
        price: None,
        ..costing(1_000_000)
    })
    .await;
    let reported = world.play(json!([asks("a")])).await;
    assert!(
        reported[0].starts_with("a failed limit-reached: ")
            && reported[0].contains("models.<alias>.price"),
        "{reported:?}"
    );
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_passed_down_and_only_shrinks_and_what_was_not_used_comes_back() {
    let world = World::new(costing(100_000)).await;
    let says = json!({ "steps": [{ "reply": "nothing" }] });
    let thinks = json!({ "steps": [asks("q"), { "reply": "thought" }] });
    let below = json!({
        "steps": [
            { "start": [dispatch("i", &says, &json!({ "cost_micros": 900_000 }))] },
            { "reply": "below" },
        ],
    });
    world
        .play(json!([
            {
                "until": "all",
                "start": [
                    dispatch("named", &below, &json!({ "cost_micros": 60_000 })),
                    dispatch("shared", &says, &json!({})),
                ],
            },
            { "start": [dispatch("thinks", &thinks, &json!({ "cost_micros": 50_000 }))] },
            { "start": [dispatch("after", &says, &json!({ "cost_micros": 900_000 }))] },
        ]))
        .await;
    let mut limits: Vec<Option<u64>> = world
        .starts()
        .await
        .iter()
        .map(|start| start.limits.cost_micros_max)
        .collect();
    limits.sort_unstable();
    let cost = cost(&world).await;
    assert!(cost > 0);
    // The first is the outermost turn; the share of the one that names nothing is half of what the
    // other left; below the other there is no more than it has; the last one finds all that nobody
    // used.
    let mut expected = [100_000, 60_000, 60_000, 20_000, 50_000, 100_000 - cost].map(Some);
    expected.sort_unstable();
    assert_eq!(limits, expected);
}

/// The tokens that models used in a session, its last turn's included.
async fn tokens_of(world: &World, session: SessionId) -> u64 {
    let used = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::TurnCommitted(committed) if committed.session == session => {
                Some(committed.turn.usage.total())
            }
            _ => None,
        });
    used.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_reserves_its_prompt_too_and_is_not_made_when_that_is_not_left() {
    let world =
        World::with(|setup| setup.definitions[0]["limits"] = json!({ "tokensMax": 20_000 })).await;
    let short = world.play(json!([asks("a")])).await;
    assert!(!short[0].contains("limit-reached"), "{short:?}");
    // Sixteen thousand tokens of words, and four thousand for the reply.
    let said = json!({ "steps": [asks("a")], "padding": "x".repeat(64 << 10) });
    let session = world.open("puppet").await;
    let reported = world.turn("puppet", session, &said.to_string()).await;
    assert_eq!(
        reported,
        "a failed limit-reached: too few tokens are left of this turn's limit (tokensMax)"
    );
    assert_eq!(limited(&world).await, ["models.call tokensMax"]);
    assert_eq!(tokens_of(&world, session).await, 0, "nobody was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_reserves_what_its_prompt_is_estimated_at_beside_what_its_reply_may_have() {
    let world = World::new(Setup::default()).await;
    world.play(json!([asks("a")])).await;
    let (tokens, _) = reserved(&world).await;
    assert!(
        tokens > 4_096 + 50,
        "{tokens}: the reply's 4,096 and the prompt's"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_may_cost_too_much_asks_nobody_and_leaves_the_thread_as_it_was() {
    let world = World::new(costing(10)).await;
    let session = world.open("puppet").await;
    for n in 0..4 {
        let said = json!([{ "reply": format!("{n} {}", "y".repeat(4_000)) }]);
        world.played(session, &said).await;
    }
    world
        .broker
        .runs()
        .compact(By::from(&UserId::local()), &target("puppet"), session)
        .await
        .unwrap();
    let row = world.idle(session).await;
    assert_eq!(row.revision, 4, "no turn came of it");
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
    let ended = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::RunEnded(ended) => ended.code.zip(ended.reason),
            _ => None,
        });
    let ended: Vec<_> = ended.collect();
    let [(code, reason)] = ended.as_slice() else {
        panic!("{ended:?}")
    };
    assert_eq!(code, "limit-reached");
    tells(&reason, &["(costMicrosMax)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_replied_to_early_gives_up_the_share_that_the_other_goes_on_with() {
    let world = World::new(Setup::default()).await;
    let early = json!({ "steps": [
        { "start": [{ "key": "r", "tool": "reply_to_caller", "args": { "content": "early" } }] },
        { "start": [{ "key": "t", "timer": 600 }] }, asks("q"), { "reply": "the end" },
    ] });
    let says = json!({ "steps": [{ "reply": "said" }] });
    let reported = world
        .play(json!([
            { "start": [dispatch("d", &early, &json!({}))] },
            { "start": [dispatch("e", &says, &json!({}))] },
        ]))
        .await;
    assert!(
        reported.contains(&"d parts early".to_owned()),
        "{reported:?}"
    );
    let limits: Vec<u64> = world
        .starts()
        .await
        .iter()
        .map(|start| start.limits.tokens_max)
        .collect();
    assert_eq!(
        limits,
        [1_000_000, 500_000, 250_000],
        "a million, a share of it, and half of what is left when that is given up"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_cancelled_is_charged_what_it_is_known_to_have_used() {
    let world = World::new(Setup::default()).await;
    let thinks = json!({ "steps": [asks("q"), { "start": [{ "key": "t", "timer": 3_600_000 }] }] });
    let says = json!({ "steps": [{ "reply": "said" }] });
    world
        .play(json!([
            { "start": [dispatch("d", &thinks, &json!({})), { "key": "t", "timer": 1_500 }] },
            { "cancel": ["d"], "start": [{ "key": "u", "timer": 1 }] },
            { "start": [dispatch("e", &says, &json!({}))] },
        ]))
        .await;
    let starts = world.starts().await;
    let cancelled = starts[1].session;
    world.idle(cancelled).await;
    let used = tokens_of(&world, cancelled).await;
    assert!(used > 0);
    assert_eq!(
        starts[2].limits.tokens_max,
        (1_000_000 - used) / 2,
        "neither nothing nor the whole share"
    );
}

fn everything() -> UsageFilter {
    UsageFilter {
        from: Day(0),
        to: Day(u32::MAX),
        user: None,
        agent: None,
        session: None,
    }
}

/// The charges on the account of the first message, with all that came of it.
async fn charged(world: &World) -> domain::budget::Amount {
    let starts = world.starts().await;
    let accounts: Accounts = starts[0].accounts();
    let drawn = world.store().drawn(&accounts, None).await.unwrap();
    drawn.others[0]
}

async fn total(world: &World) -> UsageSum {
    world.store().usage_total(everything()).await.unwrap()
}

/// A model, a tool that another agent is called with, and that agent's model: all of it is usage,
/// each in its session.
#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_turns_is_what_their_account_was_charged() {
    let mut setup = Setup {
        price: Some(1.0),
        ..Setup::default()
    };
    setup.limits.dispatch.call_depth_max = 3;
    let mut world = World::new(setup).await;
    let work = json!({ "steps": [
        { "start": [{ "key": "m", "model": "be brief" }] },
        { "reply": "done" },
    ] });
    let arguments = json!({ "target": "other", "content": work.to_string(), "wait": true });
    world
        .play(json!([
            { "start": [{ "key": "a", "model": "be brief" }] },
            { "start": [{ "key": "d", "tool": "dispatch_to_agent", "args": arguments }] },
            { "start": [{ "key": "b", "model": "be brief" }] },
        ]))
        .await;
    world.quiet().await;
    let sum = total(&world).await;
    assert_eq!(sum.amount(), charged(&world).await);
    assert_eq!((sum.model_calls, sum.tool_calls), (3, 1), "{sum:?}");
    assert!(sum.cost_micros > 0 && sum.unpriced_attempts == 0, "{sum:?}");
    let by = |by| {
        let store = world.store().clone();
        async move { store.usage(by, everything(), None, 100).await.unwrap() }
    };
    let sessions = by(UsageBy::Session).await;
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    let users = by(UsageBy::User).await;
    assert_eq!(users.len(), 1, "work is done for who began it: {users:?}");
    world = world.restart(|_| ()).await;
    assert_eq!(total(&world).await, sum);
    let rebuilt = world.store().rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, []);
}

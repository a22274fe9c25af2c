//! What turns may cost: prices of models, limits of turns, budgets of work that is handed over.

use agent_host_tests::{Setup, World};
use domain::event::{Event, RunStarted, Verdict};
use serde_json::{Value, json};
use store::EventFilter;

/// A model of which a token costs a millionth, and a puppet whose turns may cost so many.
fn costing(cost_micros_max: u64) -> Setup {
    let mut setup = Setup { price: Some(1.0), ..Setup::default() };
    setup.limits.dispatch.call_depth_max = 3;
    setup.definitions[0]["limits"] = json!({ "costMicrosMax": cost_micros_max });
    setup
}

fn asks(key: &str) -> Value {
    json!({ "start": [{ "key": key, "model": "be brief" }] })
}

fn dispatch(key: &str, script: &Value, budget: &Value) -> Value {
    let arguments = json!({ "target": "other", "content": script.to_string(), "wait": true, "budget": budget });
    json!({ "key": key, "tool": "dispatch_to_agent", "args": arguments })
}

async fn events(world: &World) -> Vec<Event> {
    let events = world.store().events(0, EventFilter::default(), 100_000).await.unwrap();
    events.into_iter().filter_map(|recorded| recorded.event).collect()
}

async fn starts(world: &World) -> Vec<RunStarted> {
    let started = events(world).await.into_iter().filter_map(|event| match event {
        Event::RunStarted(started) => Some(*started),
        _ => None,
    });
    started.collect()
}

/// What all attempts at models cost so far.
async fn cost(world: &World) -> u64 {
    let settled = events(world).await.into_iter().flat_map(|event| match event {
        Event::RunStepped(stepped) => stepped.settled,
        Event::RunSettled(settled) => settled.settled,
        _ => Vec::new(),
    });
    settled.flat_map(|settled| settled.attempts).map(|attempt| attempt.cost_micros.unwrap()).sum()
}

async fn limited(world: &World) -> Vec<String> {
    let decided = world.ledger().await.into_iter().flat_map(|entry| entry.decisions);
    decided.filter(|it| it.verdict == Verdict::Limited).map(|it| format!("{} {}", it.capability, it.detail)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_costs_is_settled_per_attempt_and_the_call_that_may_cost_too_much_is_refused_by_the_budgets_name() {
    // Of each call 4,096 tokens are reserved: after the first one less than that is left.
    let world = World::new(costing(4_100)).await;
    let told = world.play(json!([asks("a"), asks("b")])).await;
    assert!(told.iter().any(|line| line.starts_with("b failed limit-reached: ") && line.contains("(costMicrosMax)")), "{told:?}");
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
    let cost = cost(&world).await;
    assert!((5..4_096).contains(&cost), "what was used and not what was reserved: {cost}");
    let left = format!("{} millionths are left", 4_100 - cost);
    assert!(told.iter().any(|line| line.contains(&left)), "{left}: {told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_price_is_not_asked_by_a_turn_whose_costs_are_limited() {
    let world = World::new(Setup { price: None, ..costing(1_000_000) }).await;
    let told = world.play(json!([asks("a")])).await;
    assert!(told[0].starts_with("a failed limit-reached: ") && told[0].contains("models.<alias>.price"), "{told:?}");
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_passed_down_and_only_shrinks_and_what_was_not_used_comes_back() {
    let world = World::new(costing(100_000)).await;
    let says = json!({ "steps": [{ "reply": "nothing" }] });
    let thinks = json!({ "steps": [asks("q"), { "reply": "thought" }] });
    let below = json!({ "steps": [{ "start": [dispatch("i", &says, &json!({ "cost_micros": 900_000 }))] }, { "reply": "below" }] });
    world
        .play(json!([
            { "until": "all", "start": [dispatch("named", &below, &json!({ "cost_micros": 60_000 })), dispatch("shared", &says, &json!({}))] },
            { "start": [dispatch("thinks", &thinks, &json!({ "cost_micros": 50_000 }))] },
            { "start": [dispatch("after", &says, &json!({ "cost_micros": 900_000 }))] },
        ]))
        .await;
    let mut limits: Vec<Option<u64>> = starts(&world).await.iter().map(|start| start.limits.cost_micros_max).collect();
    limits.sort_unstable();
    let cost = cost(&world).await;
    assert!(cost > 0);
    // The first is the outermost turn; the share of the one that names nothing is half of what the other left; below the other there is no
    // more than it has; the last one finds all that nobody used.
    let mut expected = [100_000, 60_000, 60_000, 20_000, 50_000, 100_000 - cost].map(Some);
    expected.sort_unstable();
    assert_eq!(limits, expected);
}

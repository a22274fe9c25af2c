//! The reply of a model's call that names no limit. The model is asked for what is reserved, and
//! for a shorter reply when a budget leaves less.

use super::{asks, costing, dispatch, limited};
use agent_host_tests::{Setup, World};
use domain::operation::Performer;
use serde_json::{Value, json};

/// Returns the longest reply that each call of a model is asked for, with the tokens reserved for
/// the call.
async fn asked(world: &World) -> Vec<(u64, u64)> {
    let started = world
        .steps()
        .await
        .into_iter()
        .map(|stepped| stepped.started);
    let asked = started
        .flatten()
        .filter_map(|operation| match operation.performer {
            Performer::Model {
                request,
                reserved_tokens,
                ..
            } => Some((u64::from(request.max_tokens.unwrap()), reserved_tokens)),
            _ => None,
        });
    asked.collect()
}

/// A model with this limit of its replies, and a puppet whose turns have these limits. A token
/// costs a millionth.
fn replying(max_tokens: Option<u32>, limits: Value) -> Setup {
    let mut setup = Setup {
        max_tokens,
        ..costing(1_000_000)
    };
    setup.definitions[0]["limits"] = limits;
    setup
}

/// The tokens reserved for the prompt of the puppet's first call.
async fn prompt() -> u64 {
    let world = World::new(replying(Some(1), json!({}))).await;
    world.play(json!([asks("a")])).await;
    let [(1, reserved)] = asked(&world).await[..] else {
        panic!("one call, of a reply of one token")
    };
    reserved - 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_names_no_limit_asks_for_the_reply_that_is_reserved() {
    let prompt = prompt().await;
    for (max_tokens, reply) in [(None, 4_096), (Some(20_000), 20_000), (Some(100), 100)] {
        let world = World::new(replying(max_tokens, json!({}))).await;
        let reported = world.play(json!([asks("a")])).await;
        assert_eq!(
            reported,
            ["a message hello from the model"],
            "{max_tokens:?}"
        );
        assert_eq!(
            asked(&world).await,
            [(reply, prompt + reply)],
            "{max_tokens:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_nearly_used_up_gets_a_shorter_reply_and_is_never_exceeded() {
    let prompt = prompt().await;
    for limit in ["tokensMax", "costMicrosMax"] {
        for (rest, reply) in [
            (20_000, Some(20_000)),
            (19_999, Some(10_000)),
            (5_000, Some(5_000)),
            (4_999, Some(4_096)),
            (4_095, None),
        ] {
            let limits = json!({ limit: prompt + rest });
            let world = World::new(replying(Some(20_000), limits)).await;
            let reported = world.play(json!([asks("a")])).await;
            let made: Vec<(u64, u64)> = reply
                .map(|reply| (reply, prompt + reply))
                .into_iter()
                .collect();
            assert_eq!(asked(&world).await, made, "{limit} {rest}: {reported:?}");
            if reply.is_none() {
                assert!(
                    reported[0].starts_with("a failed limit-reached: ")
                        && reported[0].contains(limit),
                    "{limit} {rest}: {reported:?}"
                );
                assert_eq!(limited(&world).await, [format!("models.call {limit}")]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_handed_over_gets_replies_that_its_budget_has_room_for() {
    let world = World::new(replying(Some(64_000), json!({}))).await;
    let thinks = json!({ "steps": [asks("q"), { "reply": "thought" }] });
    world
        .play(json!([{ "start": [dispatch("d", &thinks, &json!({ "tokens": 20_000 }))] }]))
        .await;
    let [(reply, reserved)] = asked(&world).await[..] else {
        panic!("one call")
    };
    assert_eq!(reply, 16_000, "of 64,000 and 32,000");
    assert!(reserved > reply && reserved <= 20_000, "{reserved}");
}

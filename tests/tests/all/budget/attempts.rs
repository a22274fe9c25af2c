//! Attempts at a model's call. Each is afforded before it is made, and one whose outcome is unknown
//! is charged its reservation.
//!
//! The reply of a model's call that names no limit. The model is asked for what is reserved, and
//! for a shorter reply when a budget leaves less.

use super::{asks, cost, costing, dispatch, limited, reserved, tokens_of};
use crate::all::crash;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Session, puppet};
use agent_host_tests::world::SCRIPT;
use agent_host_tests::{Setup, World};
use domain::event::{Event, OperationAttempted};
use domain::id::SessionId;
use domain::operation::{Attempt, Performer, Settlement};
use serde_json::{Value, json};

/// A reply to whom no schema is ever enough.
fn structured(key: &str) -> Value {
    json!({ "start": [{ "key": key, "model": "be brief", "schema": { "type": "object" } }] })
}

/// A model of which every reply breaks off.
const CUT_SHORT: &str = "[[rule]]\nreply = { text = \"half of\", fail = \"cut-short\" }\n";
/// A model that takes its time.
const SLOW: &str = "[[rule]]\nreply = { text = \"at last\", firstDelayMs = 60000 }\n";

fn tokens(tokens_max: u64, script: &str) -> Setup {
    let mut setup = Setup {
        script: script.to_owned(),
        ..Setup::default()
    };
    setup.definitions[0]["limits"] = json!({ "tokensMax": tokens_max });
    setup
}

async fn attempted(world: &World) -> Vec<OperationAttempted> {
    let events = world.events().await.into_iter();
    let attempted = events.filter_map(|event| match event {
        Event::OperationAttempted(attempted) => Some(*attempted),
        _ => None,
    });
    attempted.collect()
}

fn settled(events: Vec<Event>) -> Vec<Settlement> {
    let settled = events.into_iter().flat_map(|event| match event {
        Event::RunStepped(stepped) => stepped.settled,
        Event::RunSettled(settled) => settled.settled,
        _ => Vec::new(),
    });
    settled.collect()
}

async fn attempts(world: &World) -> Vec<Attempt> {
    settled(world.events().await)
        .into_iter()
        .flat_map(|settlement| settlement.attempts)
        .collect()
}

/// Returns the reservation of a puppet's first call, in tokens and millionths. The puppet plays
/// some steps.
async fn reserves(steps: &Value) -> (u64, u64) {
    let world = World::new(costing(1_000_000)).await;
    world.play(steps.clone()).await;
    let (tokens, micros) = reserved(&world).await;
    (tokens, micros.unwrap())
}

/// Has the puppet ask a model, and stops the host while it is asked.
async fn cut_off(setup: Setup, again: &'static str) -> (World, SessionId) {
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    world.play_in(session, &json!([asks("a")])).await;
    until(async || {
        world
            .events()
            .await
            .iter()
            .any(|event| matches!(event, Event::RunStepped(_)))
    })
    .await;
    let world = world.restart(|setup| setup.script = again.to_owned()).await;
    world.idle(session).await;
    (world, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_does_not_fit_is_repaired_only_as_far_as_the_budget_goes() {
    let steps = json!([structured("a")]);
    let (_, micros) = reserves(&steps).await;
    let world = World::new(costing(micros)).await;
    let reported = world.play(steps.clone()).await;
    assert!(
        reported[0].starts_with("a failed limit-reached: ")
            && reported[0].contains("(costMicrosMax)"),
        "{reported:?}"
    );
    assert_eq!(
        (attempts(&world).await.len(), attempted(&world).await),
        (1, vec![]),
        "nobody was asked again"
    );
    assert_eq!(limited(&world).await, ["models.call costMicrosMax"]);
    assert!(cost(&world).await <= micros);

    let world = World::new(costing(micros * 4)).await;
    let reported = world.play(steps).await;
    assert!(
        reported[0].starts_with("a failed invalid-reply: "),
        "{reported:?}"
    );
    let attempted = attempted(&world).await;
    assert_eq!(
        attempted.iter().map(|it| it.attempt).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(
        attempted[0].reserved.cost_micros > micros,
        "what is said of the reply is asked too: {attempted:?}"
    );
    assert!(
        attempted[1].reserved.cost_micros > attempted[0].reserved.cost_micros,
        "{attempted:?}"
    );
    // Those that are on record before the end are not forgotten at it.
    assert_eq!(attempts(&world).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_broke_off_is_charged_and_made_again_only_if_that_is_left() {
    let steps = json!([asks("a")]);
    let (reserved, _) = reserves(&steps).await;
    for (tokens_max, made) in [(reserved, 1), (2 * reserved - 1, 1), (2 * reserved, 2)] {
        let world = World::new(tokens(tokens_max, CUT_SHORT)).await;
        let session = world.open("puppet").await;
        let reported = world.played(session, &steps).await;
        assert!(
            reported.starts_with("a failed limit-reached: ") && reported.contains("(tokensMax)"),
            "{tokens_max}: {reported}"
        );
        let attempts = attempts(&world).await;
        assert_eq!(attempts.len(), made, "{tokens_max}: {attempts:?}");
        assert!(
            attempts
                .iter()
                .all(|it| it.reserved.is_some_and(|it| it.tokens == reserved)),
            "{tokens_max}: {attempts:?}"
        );
        assert_eq!(
            tokens_of(&world, session).await,
            reserved * made as u64,
            "{tokens_max}"
        );
        assert_eq!(limited(&world).await, ["models.call tokensMax"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_a_restart_cut_off_is_charged_and_the_next_has_another_number() {
    let (reserved, _) = reserves(&json!([asks("a")])).await;
    let (world, session) = cut_off(tokens(1_000_000, SLOW), SCRIPT).await;
    assert_eq!(
        world.last_reply(session).await,
        "a message hello from the model"
    );
    let [again] = attempted(&world).await.try_into().unwrap();
    assert_eq!(
        (again.attempt, again.reserved.tokens, again.drawn.tokens),
        (1, reserved, 2 * reserved)
    );
    let [lost, made] = attempts(&world).await.try_into().unwrap();
    assert_eq!(
        (lost.usage, lost.reserved.unwrap().tokens),
        (None, reserved)
    );
    assert_eq!(
        tokens_of(&world, session).await,
        reserved + made.usage.unwrap().total()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_restart_cut_off_is_not_made_again_on_what_it_was_charged() {
    let (reserved, _) = reserves(&json!([asks("a")])).await;
    let (world, session) = cut_off(tokens(2 * reserved - 1, SLOW), SCRIPT).await;
    let reported = world.last_reply(session).await;
    assert!(
        reported.starts_with("a failed limit-reached: ") && reported.contains("(tokensMax)"),
        "{reported}"
    );
    assert_eq!(attempted(&world).await, vec![]);
    assert_eq!(tokens_of(&world, session).await, reserved);
    assert_eq!(limited(&world).await, ["models.call tokensMax"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_call_whose_work_panics_is_charged_what_was_reserved() {
    let folder = Folder::new(agent_host_tests::process::puppets(&json!([puppet()])));
    folder.warm(&["puppet"]).await;
    let host = folder
        .start(Some("panic@broker.perform.after:1"))
        .await
        .unwrap();
    let answer = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let path = format!("{}/messages", Session::of(&answer));
    host.post(
        &path,
        &json!({ "content": json!({ "steps": [asks("a")] }).to_string() }),
    )
    .await;
    crash::rest(&host, &answer.text("session_id"))
        .await
        .unwrap();
    assert!(host.stop().await.success());
    let store = crash::open(&folder).await;
    let events = store
        .events(0, store::EventFilter::default(), 1_000)
        .await
        .unwrap();
    store.close().await;
    let events: Vec<Event> = events
        .into_iter()
        .filter_map(|recorded| recorded.event)
        .collect();
    let used = events.iter().find_map(|event| match event {
        Event::TurnCommitted(committed) => Some(committed.turn.usage.total()),
        _ => None,
    });
    let [settlement] = settled(events).try_into().unwrap();
    let [lost] = settlement.attempts.try_into().unwrap();
    let reserved = lost.reserved.unwrap().tokens;
    assert!(reserved > 4_096, "{reserved}");
    assert_eq!(used, Some(reserved));
}

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

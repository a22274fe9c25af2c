//! Storms of agents: the limits hold, others are served meanwhile, and the ledger and the dead letters tell the story.

use agent_host_tests::world::PATIENCE;
use agent_host_tests::{Setup, World};
use domain::event::{Event, Source, Verdict};
use domain::id::{InputId, RunId};
use domain::time::Timestamp;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use store::EventFilter;

/// With a third agent, who has nothing to do with the storm.
fn with_a_bystander(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup::default();
    setup.definitions.push(json!({ "agentId": "third", "displayName": "Third", "component": "puppet" }));
    change(&mut setup);
    setup
}

async fn events(world: &World) -> Vec<Event> {
    let events = world.store().events(0, EventFilter::default(), 1_000_000).await.unwrap();
    events.into_iter().filter_map(|recorded| recorded.event).collect()
}

async fn quiet(world: &World) {
    let waiting = async {
        while !world.store().sessions_with_work(Timestamp(u64::MAX >> 1)).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE * 3, waiting).await.expect("everything comes to an end");
}

/// Somebody else asks something and is answered.
async fn another_is_served(world: &World) {
    let session = world.open("third").await;
    world.say("third", session, r#"{"steps":[{"reply":"here"}]}"#).await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_message_each_other_for_ever_end_in_one_dead_letter_while_others_are_served() {
    // Whoever answers takes its time: what comes while the other's turn is open would join that turn instead of beginning another.
    let again = |to: &str, ms: u64| {
        let message = json!({ "agentId": to, "content": "go on", "mode": "async" });
        json!({ "steps": [
            { "start": [{ "key": "m", "tool": "agents_message", "args": message }] },
            { "start": [{ "key": "t", "timer": ms }] },
            { "reply": "and you?" },
        ] })
    };
    let world = World::new(with_a_bystander(|setup| {
        setup.definitions[0]["settings"] = json!({ "script": again("other", 1) });
        setup.definitions[1]["settings"] = json!({ "script": again("puppet", 500) });
    }))
    .await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    another_is_served(&world).await;
    quiet(&world).await;
    let dead = world.broker.dead_letters(100).await.unwrap();
    let [letter] = dead.as_slice() else { panic!("{dead:?}") };
    assert!(letter.dead.reason.contains("16 times in a row") && letter.accepted.session == session, "{letter:?}");
    let one = world.broker.dead_letter(letter.accepted.input).await.unwrap();
    assert_eq!(&one, letter, "it can be looked at alone");
    assert!(matches!(&one.accepted.source, Source::LateReply { from, hops: 17, .. } if from == "other"));
    let turns = world.store().session(session).await.unwrap().unwrap().revision;
    assert_eq!(turns, 17, "the first turn, and one for each of sixteen answers");
    let told: Vec<_> = world.ledger().await.into_iter().flat_map(|entry| entry.decisions).collect();
    let limited = told.iter().filter(|decision| decision.verdict == Verdict::Limited && decision.detail.contains("callDepthMax"));
    assert_eq!(limited.count(), 17, "each time the other would have called back, and did not");
}

/// Five workers that go on by themselves, each of which does the same. What they reply is itself a script, that does nothing more.
fn bomb(to: &str) -> Value {
    let start: Vec<Value> = (0..5).map(|n| json!({ "key": format!("b{n}"), "agent": to, "text": "go", "detached": true })).collect();
    let nothing_more = json!({ "steps": [{ "reply": "boom" }] }).to_string();
    json!({ "steps": [{ "until": "all", "start": start }, { "reply": nothing_more }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_bomb_meets_the_limits_of_depth_breadth_and_number_and_the_ledger_tells_it() {
    let world = World::new(with_a_bystander(|setup| {
        setup.definitions[0]["settings"] = json!({ "script": bomb("other") });
        setup.definitions[1]["settings"] = json!({ "script": bomb("puppet") });
    }))
    .await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    another_is_served(&world).await;
    quiet(&world).await;
    let (mut open, mut most, mut deepest) = (HashSet::<InputId>::new(), 0, 0);
    let mut claimed: HashMap<RunId, Vec<InputId>> = HashMap::new();
    for event in events(&world).await {
        match event {
            Event::InputAccepted(accepted) if matches!(accepted.source, Source::Dispatch { .. }) => {
                open.insert(accepted.input);
                most = most.max(open.len());
            }
            Event::RunStarted(started) => {
                deepest = deepest.max(started.spawn_depth);
                claimed.insert(started.run, started.claimed.clone());
            }
            Event::RunEnded(ended) => {
                for input in claimed.remove(&ended.run).into_iter().flatten() {
                    open.remove(&input);
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty() && most <= 8, "{most} at once");
    assert!(deepest <= 3, "{deepest} deep");
    let told: Vec<_> = world.ledger().await.into_iter().flat_map(|entry| entry.decisions).collect();
    let limited = |limit: &str| told.iter().any(|it| it.verdict == Verdict::Limited && it.detail.contains(limit));
    assert!(limited("treeDispatchesMax") || limited("childrenMax"), "{told:?}");
    assert!(world.broker.dead_letters(100).await.unwrap().is_empty(), "nothing of it was put aside");
}

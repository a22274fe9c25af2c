//! Any interleaving of messages, modes, cancellations, replies and crashes: what was accepted is dealt with once, in its order, or somebody
//! is told why it was not.

use super::super::crash::{open, rest};
use super::said;
use agent_host_tests::process::{Folder, Host, puppets};
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::{Error, PostMessage};
use domain::delegate::Priority;
use domain::event::{Event, InputAccepted};
use domain::id::{InputId, SessionId};
use domain::message::Role;
use domain::queue::Kind;
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::{EventFilter, Store};
use tokio::task::JoinSet;

/// Things that happen in one world.
const EVENTS: u64 = 160;
/// Worlds.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Numbers that look like chance and are the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Any mode with any debounce, cap and policy: mode, debounce, cap, policy.
fn manner(chance: &mut Chance) -> [&'static str; 4] {
    let mode = chance.of(&["steer", "steer", "followup", "collect", "collect", "interrupt"]);
    let (debounce, cap) = (chance.of(&["0", "5ms", "30ms"]), chance.of(&["2", "3", "20"]));
    [mode, debounce, cap, chance.of(&["new", "old", "summarize"])]
}

fn message(chance: &mut Chance, world: &World, session: SessionId, number: u64) -> PostMessage {
    let [mode, debounce, cap, drop] = manner(chance);
    let queue = said(&format!("{mode} debounce:{debounce} cap:{cap} drop:{drop}"));
    let priority = chance.of(&[None, None, Some(Priority::High), Some(Priority::Low)]);
    PostMessage { queue, priority, ..world.message("busy", session, &format!("<{number}>"), None) }
}

/// What is stored of one session's inputs.
#[derive(Default)]
struct Story {
    accepted: Vec<InputAccepted>,
    claims: Vec<InputId>,
    gone: BTreeMap<InputId, &'static str>,
    dropped: u64,
}

async fn story(store: &Store, session: SessionId) -> Story {
    let filter = EventFilter { session: Some(session), ..EventFilter::default() };
    let mut story = Story::default();
    for recorded in store.events(0, filter, 1_000_000).await.unwrap() {
        match recorded.event {
            Some(Event::InputAccepted(it)) => story.accepted.push(it),
            Some(Event::RunStarted(it)) => story.claims.extend(it.claimed),
            Some(Event::RunStepped(it)) => story.claims.extend(it.claimed),
            Some(Event::InputDead(it)) => drop(story.gone.insert(it.input, "dead")),
            Some(Event::InputCancelled(it)) => drop(story.gone.insert(it.input, "cancelled")),
            Some(Event::InputsDropped(it)) => {
                story.dropped += it.inputs.len() as u64;
                story.gone.extend(it.inputs.into_iter().map(|input| (input, "dropped")));
            }
            _ => {}
        }
    }
    story
}

/// The number that a notice or a collected message says were dropped before it.
fn told(text: &str) -> u64 {
    let number = text.split("[Queue overflow] Dropped ").nth(1).and_then(|rest| rest.split(' ').next());
    number.map_or(0, |number| number.parse().unwrap())
}

/// Whether what is stored of a session is what was to become of its inputs. Returns those that were accepted.
async fn check(store: &Store, session: SessionId) -> Vec<InputId> {
    let story = story(store, session).await;
    let claims: BTreeSet<InputId> = story.claims.iter().copied().collect();
    assert_eq!(claims.len(), story.claims.len(), "an input was claimed twice");
    let row = store.session(session).await.unwrap().unwrap();
    let messages = store.messages(row.head, 1, row.head_message).await.unwrap();
    let heard: Vec<String> =
        messages.iter().filter(|message| matches!(message.role, Role::User | Role::Notice)).map(|message| message.text()).collect();
    for accepted in &story.accepted {
        let text = accepted.message.as_ref().unwrap().parts[0].clone();
        let domain::message::Part::Text { text } = text else { panic!("{accepted:?}") };
        // A line that stays of what was dropped begins with a dash.
        let times: usize = heard.iter().flat_map(|heard| heard.lines()).filter(|line| *line == text).count();
        let gone = story.gone.get(&accepted.input).copied();
        let claimed = claims.contains(&accepted.input);
        match gone {
            None => assert_eq!((claimed, times), (true, 1), "{text} was accepted"),
            Some("dead") => assert!(times == 0, "{text} was put aside and heard"),
            Some(why) => assert_eq!((claimed, times), (false, 0), "{text} was {why}"),
        }
    }
    let told: u64 = heard.iter().map(|heard| told(heard)).sum();
    assert_eq!(told, story.dropped, "what was dropped and what was told of it");
    // Among equals each waits for those before it.
    let mut orders: BTreeMap<(&str, Priority), Vec<InputId>> = BTreeMap::new();
    for accepted in story.accepted.iter().filter(|accepted| claims.contains(&accepted.input)) {
        let kind = match accepted.waits_for() {
            Kind::OwnTurn => "own turn",
            Kind::Steer => "steer",
            Kind::Interrupt => "interrupt",
            Kind::Queued(_) => "queued",
        };
        orders.entry((kind, accepted.priority())).or_default().push(accepted.input);
    }
    for (of, expected) in orders {
        let claimed: Vec<InputId> = story.claims.iter().copied().filter(|claim| expected.contains(claim)).collect();
        assert_eq!(claimed, expected, "{of:?} out of order");
    }
    story.accepted.into_iter().map(|accepted| accepted.input).collect()
}

/// An agent whose turns hear words while they wait, then wait deaf, then reply.
fn busy() -> Value {
    let script = json!({ "steps": [
        { "start": [{ "key": "a", "timer": 12 }], "hear": true },
        { "start": [{ "key": "b", "timer": 8 }], "until": "all" },
    ] });
    json!({ "agentId": "busy", "displayName": "Busy", "component": "puppet", "settings": { "script": script } })
}

async fn interleave(seed: u64) {
    let mut setup = Setup { components: vec!["puppet"], ..Setup::default() };
    setup.definitions = vec![busy()];
    let mut world = World::new(setup).await;
    let (me, busy, mut chance) = (UserId::local(), target("busy"), Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let sessions = [world.open("busy").await, world.open("busy").await];
    let mut waiting: Vec<(SessionId, InputId)> = Vec::new();
    for number in 0..EVENTS {
        let session = chance.of(&sessions);
        match chance.below(100) {
            0..=3 => world = world.restart(|_| {}).await,
            4..=9 if !waiting.is_empty() => {
                let (session, input) = chance.of(&waiting);
                // It may be dealt with by now.
                let _ = world.broker.cancel_input(&me, &busy, session, input, None).await;
            }
            10..=12 => drop(world.broker.cancel(&me, &busy, session, None).await.unwrap()),
            13..=29 => tokio::time::sleep(Duration::from_millis(chance.below(25))).await,
            _ => {
                match world.broker.post_message(message(&mut chance, &world, session, number)).await {
                    Ok(receipt) => waiting.push((session, receipt.input)),
                    // The queue is full and drops nothing: then nothing of it is stored.
                    Err(Error::Refused(refusal)) => assert_eq!(refusal.code, "QUEUE_FULL"),
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    }
    for session in sessions {
        world.idle(session).await;
        // Whatever was dropped last is told by the next turn.
        world.say("busy", session, "the end").await;
        world.idle(session).await;
        let accepted = check(world.store(), session).await;
        let acknowledged: Vec<InputId> = waiting.iter().filter(|(of, _)| *of == session).map(|(_, input)| *input).collect();
        assert_eq!(accepted[..accepted.len() - 1], acknowledged, "each that was acknowledged, in its order");
    }
    assert_eq!(world.store().verify().await.unwrap().fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_interleaving_of_messages_modes_and_crashes_loses_nothing_doubles_nothing_and_keeps_the_order() {
    futures::future::join_all(SEEDS.map(interleave)).await;
}

/// Deaths of the process.
const KILLS: u64 = 8;
/// Messages that are sent before each of them, some of which it may interrupt.
const SENT_PER_LIFE: u64 = 12;

/// Sends a message until it is answered, under one key: the process may die while it is on its way. None when it was refused.
async fn deliver(folder: &Folder, host: &mut Option<Host>, path: &str, body: &Value, key: &str) -> Option<String> {
    loop {
        if host.is_none() {
            *host = Some(folder.start(None).await.unwrap());
        }
        let living = host.as_ref().unwrap();
        let request = living.request(Method::POST, path).header("idempotency-key", key).json(body);
        match living.send(request).await {
            Ok(answer) if answer.status == 202 => return Some(answer.text("input_id")),
            Ok(answer) if answer.text("code") == "QUEUE_FULL" => return None,
            Ok(answer) => assert!([429, 503].contains(&answer.status), "{answer:?}"),
            Err(_) => *host = None,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_in_any_mode_survives_kill_nine_and_is_dealt_with_once_in_its_order() {
    let folder = Folder::new(puppets(&json!([busy()])));
    folder.warm(&["puppet"]).await;
    let mut host = Some(folder.start(None).await.unwrap());
    let opened = host.as_ref().unwrap().post("/api/agents/busy/sessions", &json!({})).await.unwrap();
    let (session, path) = (opened.text("id"), format!("/api/agents/{}/sessions/{}/messages", opened.text("agent_id"), opened.text("id")));
    let (mut chance, mut acknowledged) = (Chance(0x2545_F491_4F6C_DD1D), Vec::new());
    for life in 0..KILLS {
        for number in 0..SENT_PER_LIFE {
            let [mode, debounce, cap, drop] = manner(&mut chance);
            let words = format!("<{life}.{number}>");
            let queue = json!({ "mode": mode, "debounce_ms": debounce, "cap": cap, "drop": drop });
            let body = json!({ "content": words, "queue": queue });
            acknowledged.extend(deliver(&folder, &mut host, &path, &body, &words).await);
            tokio::time::sleep(Duration::from_millis(chance.below(20))).await;
        }
        // In the middle of a message, which is delivered again to the next process.
        let words = format!("<{life}.last>");
        let body = json!({ "content": words });
        let dying = host.take().unwrap();
        let request = dying.request(Method::POST, &path).header("idempotency-key", words.as_str()).json(&body);
        let mut on_its_way = JoinSet::new();
        on_its_way.spawn(request.send());
        tokio::time::sleep(Duration::from_micros(chance.below(3_000))).await;
        dying.kill().await;
        drop(on_its_way.join_all().await);
        acknowledged.extend(deliver(&folder, &mut host, &path, &body, &words).await);
    }
    acknowledged.extend(deliver(&folder, &mut host, &path, &json!({ "content": "the end" }), "the end").await);
    let host = host.unwrap();
    rest(&host, &session).await.unwrap();
    // Whatever was dropped last is told by the next turn.
    let last = host.post(&path, &json!({ "content": "really" })).await.unwrap();
    acknowledged.push(last.text("input_id"));
    rest(&host, &session).await.unwrap();
    assert!(host.stop().await.success());
    let store = open(&folder).await;
    let accepted: Vec<String> = check(&store, session.parse().unwrap()).await.iter().map(ToString::to_string).collect();
    assert_eq!(accepted, acknowledged, "each that was acknowledged, once, in the order in which they were sent");
    assert_eq!(store.verify().await.unwrap().fault, None);
    store.close().await;
}

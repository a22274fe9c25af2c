//! Waking sessions: no session waits for one that is busy or in trouble.

use agent_host_tests::world::{PATIENCE, target};
use agent_host_tests::{Setup, World};
use broker::PostMessage;
use domain::authority::{Denies, Permissions};
use domain::digest::Salt;
use domain::event::{Event, InputAccepted, NewEvent, Source, Subject};
use domain::id::{EventId, InputId, SessionId, Stream};
use domain::message::{Draft, Part, Role};
use domain::time::Timestamp;
use domain::user::UserId;
use futures::future::join_all;
use serde_json::json;
use std::time::Duration;
use store::{Commit, Expected};
use tokio::time::{Instant, sleep};

/// More than a driver's mailbox holds, which is 256.
const SIGNALS: usize = 300;
/// Milliseconds for which a step that never ends may compute: longer than anything else in a test
/// takes.
const STUCK_MS: u64 = 30_000;

/// An agent that never makes a decision, beside the others.
fn with_spin() -> Setup {
    let mut setup = Setup::default();
    setup.components.push("spin");
    setup.definitions.push(json!({ "agentId": "spin", "displayName": "Spin", "component": "spin" }));
    setup.change_grant = |name, grant| {
        if name == "spin" {
            (grant.limits.cpu_ms_max, grant.limits.wall_ms_max) = (STUCK_MS, STUCK_MS * 2);
        }
    };
    setup
}

async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !is().await {
        assert!(Instant::now() < patience, "not in time: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Words that an agent left for later in a session, and that are due.
fn reminder() -> Source {
    let denies = Denies::default();
    let permissions = Permissions::default();
    let accounts = Default::default();
    Source::Reminder { due: Timestamp(1), depth: 0, spawn_depth: 0, hops: 0, denies, permissions, accounts, deadline: None }
}

/// Stores a message without notice to the host.
async fn leave(world: &World, session: SessionId, source: Source, text: &str) {
    let time = Timestamp(1);
    let message = Draft { role: Role::User, parts: vec![Part::text(text)], origin: "host".into(), untrusted: false, answers: None };
    let accepted = InputAccepted {
        input: InputId(uuid::Uuid::now_v7()),
        session,
        source,
        user_id: Some(UserId::local()),
        message: Some(message),
        model: None,
        waits_for: None,
        priority: None,
        time,
    };
    let event = NewEvent {
        id: EventId(uuid::Uuid::now_v7()),
        event: Event::InputAccepted(accepted),
        subject: Subject { session: Some(session), ..Subject::default() },
        actor: "host".into(),
        causation: None,
        correlation: None,
        time,
        salt: Salt::default(),
    };
    world.store().commit(Commit::new().append(Stream::Session(session), Expected::Any, vec![event])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_session_with_a_full_mailbox_delays_nobodys_timer() {
    let world = World::new(with_spin()).await;
    let stuck = world.open("spin").await;
    let other = world.open("puppet").await;
    world.say("spin", stuck, "go").await;
    until("the step that never ends", async || world.runtime.stats().in_flight == 1).await;
    let me = UserId::local();
    let spin = target("spin");
    let cancels = join_all((0..SIGNALS).map(|_| world.broker.cancel(&me, &spin, stuck, None)));
    let timer = async {
        // From now on it is due, and stays so.
        leave(&world, stuck, reminder(), "now").await;
        sleep(Duration::from_millis(500)).await;
        world.say("puppet", other, &json!({ "steps": [{ "start": [{ "key": "t", "timer": 300 }] }] }).to_string()).await;
        world.idle(other).await;
    };
    tokio::select! {
        cancelled = cancels => panic!("nothing held the session up: {cancelled:?}"),
        () = timer => {}
    }
    assert_eq!(world.last_reply(other).await, "t elapsed");
    let row = world.store().session(stuck).await.unwrap().unwrap();
    assert!(row.open_run.is_none() && row.waiting > 0, "its first step is over: {row:?}");
    // A session that stays due is woken after 20 ms, twice that, and so on: not fifty times a second.
    assert!(world.broker.stats().wakes < 30, "{:?}", world.broker.stats());
}

#[tokio::test(flavor = "multi_thread")]
async fn waking_a_session_in_trouble_does_not_cut_its_pause_short() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let other = world.open("puppet").await;
    let waits = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }], "hear": true }] }).to_string();
    world.say("puppet", session, &waits).await;
    world.until(session, |row| row.open_run.is_some()).await;
    until("nobody at work", async || world.broker.stats().drivers == 0).await;
    // Its run cannot be read any more.
    let run = world.runs().await.remove(0);
    let outsider = rusqlite::Connection::open(world.dir.path().join("data/store.db")).unwrap();
    let text = "UPDATE events SET payload = x'7b7d' WHERE stream = ?1 AND version = 1";
    assert_eq!(outsider.execute(text, [Stream::Run(run).to_string()]).unwrap(), 1);
    let before = world.broker.stats();
    for number in 0..100 {
        world.say("puppet", session, &format!("word {number}")).await;
    }
    world.say("puppet", other, &json!({ "steps": [{ "reply": "here" }] }).to_string()).await;
    world.idle(other).await;
    let after = world.broker.stats();
    assert!(after.wakes >= before.wakes + 100, "{before:?} {after:?}");
    // 50 ms, twice that, and so on.
    assert!(after.looks - before.looks < 30, "{before:?} {after:?}");
}

/// Sends a message to a puppet as this user.
async fn say(world: &World, user: &UserId, session: SessionId, text: &str) {
    let message = world.message("puppet", session, text, None);
    world.broker.post_message(PostMessage { user: user.clone(), ..message }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_keeps_its_place_in_the_queue_and_sees_what_came_while_it_waited() {
    let mut setup = Setup { instances_max: 1, ..with_spin() };
    setup.change_grant = |name, grant| {
        if name == "spin" {
            grant.limits.cpu_ms_max = 8_000;
        }
    };
    let world = World::new(setup).await;
    let [bob, carol] = ["bob", "carol"].map(|user| user.parse::<UserId>().unwrap());
    let bobs = world.open_for(&bob, "puppet").await;
    let carols = world.open_for(&carol, "puppet").await;
    let spins = world.open("spin").await;
    let steps = json!({ "steps": [{ "start": [{ "key": "t", "timer": 1_000 }], "hear": true }] }).to_string();
    say(&world, &bob, bobs, &steps).await;
    world.until(bobs, |row| row.open_run.is_some()).await;
    // It takes the only place there is, for longer than the timer of Bob's turn runs.
    world.say("spin", spins, "go").await;
    until("the step that takes long", async || world.runtime.stats().in_flight == 1).await;
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(world.runtime.stats().in_flight, 1, "the place is still taken");
    say(&world, &carol, carols, &json!({ "steps": [{ "reply": "carol's" }] }).to_string()).await;
    sleep(Duration::from_millis(200)).await;
    for number in 0..20 {
        say(&world, &bob, bobs, &format!("word {number}")).await;
    }
    world.idle(bobs).await;
    world.idle(carols).await;
    let events = world.store().events(0, store::EventFilter::default(), 100_000).await.unwrap();
    let steps: Vec<_> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Some(Event::RunStepped(stepped)) => Some((recorded.subject.session, stepped.claimed.len(), stepped.settled.len())),
            _ => None,
        })
        .collect();
    let mine: Vec<_> = steps.iter().filter(|(session, ..)| *session == Some(bobs)).collect();
    // One step hears the timer and all that was said until it could begin.
    assert_eq!((mine[1].1, mine[1].2), (20, 1), "{steps:?}");
    let first = |session: SessionId, number: usize| steps.iter().enumerate().filter(|(_, (of, ..))| *of == Some(session)).nth(number);
    assert!(first(bobs, 1).unwrap().0 < first(carols, 0).unwrap().0, "who asked first was first: {steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_start_a_run_that_waits_for_people_or_times_gets_no_driver() {
    let world = World::new(Setup::default()).await;
    let mut sessions = Vec::new();
    for work in [json!({ "client": "question" }), json!({ "timer": 3_600_000 })] {
        for _ in 0..20 {
            let session = world.open("puppet").await;
            let mut operation = work.clone();
            operation["key"] = json!("w");
            world.say("puppet", session, &json!({ "steps": [{ "start": [operation] }] }).to_string()).await;
            world.until(session, |row| row.open_run.is_some()).await;
            sessions.push(session);
        }
    }
    let world = world.restart(|_| {}).await;
    until("all of them looked at", async || world.broker.stats().to_recover == 0).await;
    let stats = world.broker.stats();
    assert_eq!((stats.drivers, stats.wakes, stats.looks), (0, 0, 0), "{stats:?}");
    // An answer wakes the session that waits for it.
    let (call, _) = world.question("puppet", sessions[0]).await;
    world.answer("puppet", call, json!(1)).await.unwrap();
    world.idle(sessions[0]).await;
    assert_eq!(world.last_reply(sessions[0]).await, "w value 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_start_work_is_taken_up_by_and_by_and_reads_are_answered_meanwhile() {
    let world = World::new(Setup::default()).await;
    let mut sessions = Vec::new();
    for _ in 0..150 {
        let session = world.open("puppet").await;
        leave(&world, session, Source::Api, &json!({ "steps": [{ "reply": "done" }] }).to_string()).await;
        sessions.push(session);
    }
    let world = world.restart(|_| {}).await;
    let mut reads = 0;
    let mut starting = 0;
    while world.broker.stats().to_recover > 0 {
        starting = starting.max(world.broker.stats().starting);
        world.broker.session(&UserId::local(), &target("puppet"), sessions[reads % sessions.len()], None).await.expect("an answer");
        reads += 1;
    }
    assert!(reads > 0 && starting <= 64, "{reads} reads, {starting} drivers being started at once");
    for session in sessions {
        world.idle(session).await;
        assert_eq!(world.last_reply(session).await, "done");
    }
}

//! Waking sessions: no session waits for one that is busy or in trouble.

use agent_host_tests::world::{PATIENCE, target};
use agent_host_tests::{Setup, World};
use broker::By;
use broker::PostMessage;
use domain::authority::{Denies, Permissions};
use domain::digest::Salt;
use domain::event::{Event, InputAccepted, NewEvent, Source, Subject};
use domain::grant::Grant;
use domain::id::{EventId, InputId, SessionId, Stream};
use domain::message::{Draft, Part, Role};
use domain::time::Timestamp;
use domain::user::UserId;
use futures::future::join_all;
use runtime::Admission;
use serde_json::json;
use std::time::Duration;
use store::{Commit, EventFilter, Expected};
use tokio::time::{Instant, sleep};

/// More than a driver's mailbox holds, which is 256.
const SIGNALS: usize = 300;
/// Milliseconds for which a step that never ends may compute: longer than anything else in a test
/// takes.
const STUCK_MS: u64 = 30_000;

/// Clients that read at the same time.
const CLIENTS: usize = 10;
/// Sessions that a start looks at.
const WAITING: usize = 200;
/// Events that a client reads at a time, which keeps the thread that reads busy.
const EVENTS: usize = 50;

/// An agent that never makes a decision, beside the others.
fn with_spin() -> Setup {
    let mut setup = Setup::default();
    setup.components.push("spin");
    setup
        .definitions
        .push(json!({ "agentId": "spin", "displayName": "Spin", "component": "spin" }));
    setup.change_grant = |name, grant| {
        if name == "spin" {
            grant.limits.cpu_ms_max = STUCK_MS;
            grant.limits.wall_ms_max = STUCK_MS * 2;
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
    Source::Reminder {
        due: Timestamp(1),
        depth: 0,
        spawn_depth: 0,
        hops: 0,
        denies,
        permissions,
        accounts,
        deadline: None,
    }
}

/// Stores a message without notice to the host.
async fn leave(world: &World, session: SessionId, source: Source, text: &str) {
    let time = Timestamp(1);
    let message = Draft {
        role: Role::User,
        parts: vec![Part::text(text)],
        origin: "host".into(),
        untrusted: false,
        speaker: None,
        answers: None,
    };
    let accepted = InputAccepted {
        user_id: UserId::local(),
        message: Some(message),
        ..InputAccepted::of(session, InputId(uuid::Uuid::now_v7()), source, time)
    };
    let event = NewEvent {
        id: EventId(uuid::Uuid::now_v7()),
        event: Event::InputAccepted(accepted),
        subject: Subject {
            session: Some(session),
            ..Subject::default()
        },
        actor: "host".into(),
        causation: None,
        correlation: None,
        time,
        salt: Salt::default(),
    };
    world
        .store()
        .commit(Commit::new().append(Stream::Session(session), Expected::Any, vec![event]))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_session_with_a_full_mailbox_delays_nobodys_timer() {
    let world = World::new(with_spin()).await;
    let stuck = world.open("spin").await;
    let other = world.open("puppet").await;
    world.say("spin", stuck, "go").await;
    until("the step that never ends", async || {
        world.runtime.stats().in_flight == 1
    })
    .await;
    let me = UserId::local();
    let spin = target("spin");
    let runs = world.broker.runs();
    let cancels = join_all((0..SIGNALS).map(|_| runs.cancel(By::from(&me), &spin, stuck, None)));
    let timer = async {
        // From now on it is due, and stays so.
        leave(&world, stuck, reminder(), "now").await;
        sleep(Duration::from_millis(500)).await;
        world
            .played(other, &json!([{ "start": [{ "key": "t", "timer": 300 }] }]))
            .await;
    };
    tokio::select! {
        cancelled = cancels => panic!("nothing held the session up: {cancelled:?}"),
        () = timer => {}
    }
    assert_eq!(world.last_reply(other).await, "t elapsed");
    let row = world.row(stuck).await;
    assert!(
        row.open_run.is_none() && row.waiting > 0,
        "its first step is over: {row:?}"
    );
    // A session that stays due is woken after 20 ms, twice that, and so on: not fifty times a
    // second.
    assert!(
        world.broker.stats().wakes < 30,
        "{:?}",
        world.broker.stats()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn waking_a_session_in_trouble_does_not_cut_its_pause_short() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let other = world.open("puppet").await;
    let waits =
        json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }], "hear": true }] })
            .to_string();
    world.say("puppet", session, &waits).await;
    world.until(session, |row| row.open_run.is_some()).await;
    until("nobody at work", async || world.broker.stats().drivers == 0).await;
    // Its run cannot be read any more.
    let run = world.runs().await.remove(0);
    let outsider = rusqlite::Connection::open(world.dir.path().join("data/store.db")).unwrap();
    let text = "UPDATE events SET payload = x'7b7d' WHERE version = 1 AND stream = (SELECT number \
                FROM streams WHERE stream_kind = 'run' AND stream_id = ?1)";
    assert_eq!(outsider.execute(text, [run.0.as_bytes()]).unwrap(), 1);
    let before = world.broker.stats();
    for number in 0..100 {
        world
            .say("puppet", session, &format!("word {number}"))
            .await;
    }
    world.played(other, &json!([{ "reply": "here" }])).await;
    let after = world.broker.stats();
    // Words may go into quarantine with their session, which wakes nobody.
    assert!(after.wakes >= before.wakes + 50, "{before:?} {after:?}");
    // 50 ms, twice that, and so on.
    assert!(
        after.inspections - before.inspections < 30,
        "{before:?} {after:?}"
    );
}

/// Sends a message to a puppet as this user.
async fn say(world: &World, user: &UserId, session: SessionId, text: &str) {
    let message = world.message("puppet", session, text, None);
    world
        .broker
        .messages()
        .post(PostMessage {
            user: user.clone(),
            ..message
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_keeps_its_place_in_the_queue_and_sees_what_came_while_it_waited() {
    let mut setup = Setup {
        instances_max: 1,
        ..with_spin()
    };
    setup.change_grant = |name, grant| {
        if name == "spin" {
            grant.limits.cpu_ms_max = 4_000;
        }
    };
    let world = World::new(setup).await;
    let [bob, carol] = ["bob", "carol"].map(|user| user.parse::<UserId>().unwrap());
    let bobs = world.open_for(&bob, "puppet").await;
    let carols = world.open_for(&carol, "puppet").await;
    let spins = world.open("spin").await;
    let steps = json!({ "steps": [{ "start": [{ "key": "t", "timer": 1_000 }], "hear": true }] })
        .to_string();
    say(&world, &bob, bobs, &steps).await;
    world.until(bobs, |row| row.open_run.is_some()).await;
    // It takes the only place there is, for longer than the timer of Bob's turn runs.
    world.say("spin", spins, "go").await;
    until("the step that takes long", async || {
        world.runtime.stats().in_flight == 1
    })
    .await;
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(
        world.runtime.stats().in_flight,
        1,
        "the place is still taken"
    );
    say(
        &world,
        &carol,
        carols,
        &json!({ "steps": [{ "reply": "carol's" }] }).to_string(),
    )
    .await;
    sleep(Duration::from_millis(200)).await;
    for number in 0..20 {
        say(&world, &bob, bobs, &format!("word {number}")).await;
    }
    world.idle(bobs).await;
    world.idle(carols).await;
    let events = world.recorded().await;
    let steps: Vec<_> = events
        .iter()
        .filter_map(|recorded| {
            let step = recorded.event.as_ref()?.step()?;
            let session = recorded.subject.session;
            Some((session, step.claimed.len(), step.settled.len()))
        })
        .collect();
    let mine: Vec<_> = steps
        .iter()
        .filter(|(session, ..)| *session == Some(bobs))
        .collect();
    // One step hears the timer and all that was said until it could begin.
    assert_eq!((mine[1].1, mine[1].2), (20, 1), "{steps:?}");
    let first = |session: SessionId, number: usize| {
        steps
            .iter()
            .enumerate()
            .filter(|(_, (of, ..))| *of == Some(session))
            .nth(number)
    };
    assert!(
        first(bobs, 1).unwrap().0 < first(carols, 0).unwrap().0,
        "who asked first was first: {steps:?}"
    );
}

/// A world in which the puppets take one step at a time, although the host has room for many.
async fn of_one_step_at_a_time() -> World {
    let change_grant = |name: &str, grant: &mut Grant| {
        if name == "puppet" {
            grant.limits.concurrency_max = 1;
        }
    };
    World::new(Setup {
        change_grant,
        ..Setup::default()
    })
    .await
}

/// Takes the only slot of the puppets, as work would that is no step.
async fn hold_puppets(world: &World) -> Admission {
    let catalogue = world.broker.catalogue();
    let entry = catalogue.entry("puppet").unwrap();
    world
        .runtime
        .admit(&entry.component, &entry.grant.limits)
        .await
        .unwrap()
}

/// The steps in the order in which they were stored: of which session, how many inputs were claimed
/// and operations settled.
async fn steps(world: &World) -> Vec<(SessionId, usize, usize)> {
    let events = world.recorded().await;
    let stepped = events.into_iter().filter_map(|recorded| {
        let event = recorded.event?;
        let step = event.step()?;
        Some((
            recorded.subject.session?,
            step.claimed.len(),
            step.settled.len(),
        ))
    });
    stepped.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_waits_for_its_component_sees_what_came_while_it_waited() {
    let world = of_one_step_at_a_time().await;
    let session = world.open("puppet").await;
    let waits =
        json!({ "steps": [{ "start": [{ "key": "t", "timer": 500 }], "hear": true }] }).to_string();
    world.say("puppet", session, &waits).await;
    world.until(session, |row| row.open_run.is_some()).await;
    let leased = hold_puppets(&world).await;
    // The timer has gone off: the step has its place, and waits.
    sleep(Duration::from_millis(1_000)).await;
    for number in 0..20 {
        world
            .say("puppet", session, &format!("word {number}"))
            .await;
    }
    sleep(Duration::from_millis(200)).await;
    assert_eq!(steps(&world).await.len(), 1, "the slot is still taken");
    drop(leased);
    world.idle(session).await;
    assert_eq!(steps(&world).await[1], (session, 20, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_its_component_begins_with_what_there_is_by_then() {
    let world = of_one_step_at_a_time().await;
    let session = world.open("puppet").await;
    let leased = hold_puppets(&world).await;
    world.play_in(session, &json!([{ "show": true }])).await;
    until("a driver of its session", async || {
        world.broker.stats().drivers == 1
    })
    .await;
    sleep(Duration::from_millis(200)).await;
    let preferences = json!({ "tone": "brief" }).as_object().cloned().unwrap();
    world
        .broker
        .agents()
        .prefer(
            By::from(&UserId::local()),
            &target("puppet"),
            preferences,
            false,
        )
        .await
        .unwrap();
    sleep(Duration::from_millis(200)).await;
    drop(leased);
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert!(
        reply.contains("brief"),
        "it shows the agent as it was when the step asked for its place: {reply}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_users_of_one_component_each_has_a_turn_whatever_the_other_has_under_way() {
    let world = of_one_step_at_a_time().await;
    let [ann, bob] = ["ann", "bob"].map(|user| user.parse::<UserId>().unwrap());
    let mut anns = Vec::new();
    for _ in 0..20 {
        anns.push(world.open_for(&ann, "puppet").await);
    }
    let bobs = world.open_for(&bob, "puppet").await;
    let leased = hold_puppets(&world).await;
    let reply = json!({ "steps": [{ "reply": "done" }] }).to_string();
    for session in &anns {
        say(&world, &ann, *session, &reply).await;
    }
    until("a driver of each of Ann's", async || {
        world.broker.stats().drivers == anns.len()
    })
    .await;
    sleep(Duration::from_millis(300)).await;
    say(&world, &bob, bobs, &reply).await;
    until("a driver of Bob's", async || {
        world.broker.stats().drivers == anns.len() + 1
    })
    .await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(steps(&world).await, [], "the slot is still taken");
    drop(leased);
    for session in anns.iter().chain([&bobs]) {
        world.idle(*session).await;
    }
    let order: Vec<SessionId> = steps(&world)
        .await
        .into_iter()
        .map(|(session, ..)| session)
        .collect();
    // One of Ann's had its place already, and one had her turn before Bob came. Steps are stored
    // about in the order in which they are taken.
    let place = order.iter().position(|session| *session == bobs).unwrap();
    assert!(
        order.len() == anns.len() + 1 && place < 5,
        "{place} of {}",
        order.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn at_start_a_run_that_waits_for_people_or_times_gets_no_driver() {
    let world = World::new(Setup::default()).await;
    let mut sessions = Vec::new();
    for work in [
        json!({ "client": "question" }),
        json!({ "timer": 3_600_000 }),
    ] {
        for _ in 0..20 {
            let session = world.open("puppet").await;
            let mut operation = work.clone();
            operation["key"] = json!("w");
            world
                .play_in(session, &json!([{ "start": [operation] }]))
                .await;
            world.until(session, |row| row.open_run.is_some()).await;
            sessions.push(session);
        }
    }
    let world = world.restart(|_| {}).await;
    until("all of them looked at", async || {
        world.broker.stats().to_recover == 0
    })
    .await;
    let stats = world.broker.stats();
    assert_eq!(
        (stats.drivers, stats.wakes, stats.inspections),
        (0, 0, 0),
        "{stats:?}"
    );
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
        leave(
            &world,
            session,
            Source::Api,
            &json!({ "steps": [{ "reply": "done" }] }).to_string(),
        )
        .await;
        sessions.push(session);
    }
    let world = world.restart(|_| {}).await;
    let mut asked = sessions.iter().cycle();
    while world.broker.stats().to_recover > 0 {
        let session = *asked.next().unwrap();
        world
            .broker
            .sessions()
            .get(&UserId::local(), &target("puppet"), session, None)
            .await
            .expect("an answer");
    }
    for session in sessions {
        world.idle(session).await;
        assert_eq!(world.last_reply(session).await, "done");
    }
}

/// Begins a turn that waits for an hour.
async fn wait_for_an_hour(world: &World) {
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]),
        )
        .await;
    world.until(session, |row| row.open_run.is_some()).await;
}

/// Reads one page of events after the other until a start has looked at every session, and returns
/// how many.
async fn read_meanwhile(world: &World) -> usize {
    let mut reads = 0;
    while world.broker.stats().to_recover > 0 {
        let page = world
            .store()
            .events(0, EventFilter::default(), EVENTS)
            .await;
        assert_eq!(page.expect("a place for a client's read").len(), EVENTS);
        reads += 1;
    }
    reads
}

/// One thread does all reads, and as many may wait as there are clients. So a client is refused its
/// place as soon as reads of the start wait in the same line.
#[tokio::test(flavor = "multi_thread")]
async fn at_start_clients_keep_all_places_for_their_reads_while_sessions_are_looked_at() {
    let world = World::new(Setup::default()).await;
    join_all((0..WAITING).map(|_| wait_for_an_hour(&world))).await;
    let world = world
        .restart(|setup| {
            setup.store = store::Options {
                readers: 1,
                reads_max: CLIENTS,
                ..setup.store
            }
        })
        .await;
    let left = world.broker.stats().to_recover;
    assert!(
        left > WAITING / 10,
        "{left} sessions are left to be looked at"
    );
    let reads: usize = join_all((0..CLIENTS).map(|_| read_meanwhile(&world)))
        .await
        .into_iter()
        .sum();
    // Each inspection reads twice, and where both have something to read they take turns.
    assert!(
        reads >= left / 2,
        "{reads} reads of clients for {left} sessions"
    );
    let stats = world.broker.stats();
    assert_eq!(
        (stats.drivers, stats.wakes, stats.inspections),
        (0, 0, 0),
        "a look that was refused wakes its session: {stats:?}"
    );
}

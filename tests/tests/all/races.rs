//! Two that want the same: two brokers on one store, two outcomes of one segment, and more signals
//! than a mailbox holds.

use super::account::{Account, check_places};
use agent_host_tests::patience::until;
use agent_host_tests::world::{PATIENCE, target};
use agent_host_tests::{Setup, World};
use broker::By;
use broker::{Address, Broker, Fork, PostMessage, PostRouted, Respond};
use domain::digest::Salt;
use domain::event::{Event, NewEvent, RunSettled};
use domain::id::{EventId, OperationId, RunId, SessionId, Stream};
use domain::message::Part;
use domain::operation::{Continuation, Pause, Settlement};
use domain::queue::QueueOverride;
use domain::step::OperationOutcome;
use domain::user::UserId;
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use store::{Commit, Expected};
use tokio::time::sleep;

/// More than a driver's mailbox holds, which is 256.
const SIGNALS: usize = 600;
/// Time for which the store is held up while signals gather.
const STALLED: Duration = Duration::from_millis(500);

async fn account(world: &World) -> Account {
    let events = world.recorded().await;
    check_places(&events).unwrap();
    let account = Account::of(&events).unwrap();
    account.check_inputs().unwrap();
    account.check_runs().unwrap();
    account.check_effects(&world.effects()).unwrap();
    account.check_unknown().unwrap();
    account
}

fn message(session: SessionId, text: String) -> PostMessage {
    PostMessage {
        target: target("puppet"),
        session,
        content: vec![Part::text(text)],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        user: UserId::local(),
        idempotency_key: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_starts_over_the_same_input_one_counts() {
    let world = World::new(Setup::default()).await;
    let rival = world.rival().await;
    let session = world.open("puppet").await;
    let mut rounds = 0;
    while world.store().stats().conflicts < 5 {
        rounds += 1;
        assert!(rounds < 500, "two brokers never got in each other's way");
        let both = [&world.broker, &rival].map(Broker::messages);
        let posts = both
            .each_ref()
            .map(|messages| messages.post(message(session, json!({ "steps": [] }).to_string())));
        for posted in join_all(posts).await {
            posted.unwrap();
        }
        world.idle(session).await;
    }
    assert_eq!(account(&world).await.accepted.len(), rounds * 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_brokers_that_drive_the_same_sessions_do_nothing_twice() {
    let world = World::new(Setup::default()).await;
    let rival = world.rival().await;
    let turn = |number: usize| {
        let key = |name: &str| format!("{name}-{number}");
        json!({
            "steps": [
                { "start": [{ "key": key("timer"), "timer": 15 }] },
                {
                    "until": "all",
                    "start": [
                        { "key": key("patient"), "tool": "patient" },
                        { "key": key("send"), "tool": "send", "args": { "sleep": 20 } },
                        { "key": key("put"), "tool": "put" },
                        { "key": key("recall"), "recall": "x" },
                    ],
                },
            ],
        })
        .to_string()
    };
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(world.open("puppet").await);
    }
    for number in 0..4 {
        let both = [&world.broker, &rival].map(Broker::messages);
        let posts = sessions.iter().enumerate().map(|(index, session)| {
            let messages = &both[(index + number) % 2];
            messages.post(message(*session, turn(number)))
        });
        for posted in join_all(posts).await {
            posted.unwrap();
        }
        for session in &sessions {
            world.idle(*session).await;
        }
    }
    let account = account(&world).await;
    assert_eq!((account.accepted.len(), account.dead.len()), (16, 0));
    assert!(
        world.store().stats().conflicts > 0,
        "they never got in each other's way"
    );
    assert_eq!(world.store().verify().await.unwrap().fault, None);
}

/// A turn that is in the middle of the first segment of a call, with that call's operation.
async fn in_a_call(world: &World) -> (SessionId, Stream, OperationId) {
    let session = world.open("puppet").await;
    let steps = json!([{ "start": [{ "key": "t", "tool": "patient", "args": { "sleep": 300 } }] }]);
    world.play_in(session, &steps).await;
    until(async || !world.effects().is_empty()).await;
    let run = world.runs().await[0];
    let first = world.store().first_of(Stream::Run(run)).await.unwrap();
    let event = first.and_then(|first| first.event).unwrap();
    let stepped = event.step().unwrap();
    (session, Stream::Run(run), stepped.started[0].id)
}

/// Appends an event to a run as another driver of it would.
async fn interfere(world: &World, stream: Stream, event: Event) {
    let last = world
        .store()
        .stream(stream, 0, 1_000)
        .await
        .unwrap()
        .pop()
        .unwrap();
    let event = NewEvent {
        id: EventId(uuid::Uuid::now_v7()),
        event,
        subject: last.subject,
        actor: "somebody else".into(),
        causation: None,
        correlation: None,
        time: last.time,
        salt: Salt::default(),
    };
    world
        .store()
        .commit(Commit::new().append(stream, Expected::Version(last.version), vec![event]))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_continuations_of_one_segment_the_first_counts() {
    let world = World::new(Setup::default()).await;
    let (session, stream, operation) = in_a_call(&world).await;
    let time = world.recorded().await.pop().unwrap().time;
    let other = Continuation {
        operation,
        segment: 1,
        state: b"somebody else".to_vec(),
        pause: Pause::Until { due: time },
        active_ms: 0,
        call: None,
    };
    interfere(&world, stream, Event::OperationContinued(other)).await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t parts somebody else");
    account(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_comes_after_another_one_is_dropped() {
    let world = World::new(Setup::default()).await;
    let (session, stream, operation) = in_a_call(&world).await;
    let Stream::Run(run) = stream else {
        panic!("{stream}")
    };
    let time = world.recorded().await.pop().unwrap().time;
    let outcome = OperationOutcome::Parts {
        parts: vec![Part::text("somebody else")],
    };
    let settled = vec![Settlement::new(operation, outcome, time)];
    interfere(
        &world,
        stream,
        Event::RunSettled(RunSettled { run, settled }),
    )
    .await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t parts somebody else");
    account(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_words_than_a_mailbox_holds_are_all_heard() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let messages = world.broker.messages();
    let posts =
        (0..SIGNALS).map(|number| messages.post(message(session, format!("word {number}"))));
    let posted = tokio::time::timeout(PATIENCE, join_all(posts))
        .await
        .expect("nobody waits for ever");
    assert!(posted.iter().all(Result::is_ok), "{posted:?}");
    world.idle(session).await;
    assert_eq!(account(&world).await.accepted.len(), SIGNALS);
}

/// Runs something while the store takes no commits for a while.
async fn stalled<T>(world: &World, work: impl Future<Output = T>) -> T {
    let outsider = rusqlite::Connection::open(world.dir.path().join("data/store.db")).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = async {
        sleep(STALLED).await;
        outsider.execute_batch("ROLLBACK").unwrap();
    };
    let (result, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(work, release) })
        .await
        .expect("nobody waits for ever");
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn of_more_answers_than_a_mailbox_holds_one_counts_and_all_are_answered() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "q", "client": "question" }] }]),
        )
        .await;
    let (call, _) = world.question("puppet", session).await;
    let respond = |number: usize| Respond {
        target: target("puppet"),
        call,
        session: None,
        response: Value::from(number),
        user: UserId::local(),
        idempotency_key: None,
    };
    let runs = world.broker.runs();
    let answers = (0..SIGNALS).map(|number| runs.respond(respond(number)));
    let answered = stalled(&world, join_all(answers)).await;
    let taken: Vec<usize> = answered
        .iter()
        .enumerate()
        .filter(|(_, answer)| answer.is_ok())
        .map(|(number, _)| number)
        .collect();
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert!(
        answered
            .iter()
            .all(|answer| matches!(answer, Ok(_) | Err(broker::Error::Refused(_)))),
        "{answered:?}"
    );
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await,
        format!("q value {}", taken[0])
    );
    account(&world).await;
}

/// A turn that asks the user while a timer of an hour runs, with the timer's operation and the
/// question's.
async fn asking(world: &World) -> (SessionId, RunId, OperationId, OperationId) {
    let session = world.open("puppet").await;
    let start = json!([{ "key": "t", "timer": 3_600_000 }, { "key": "q", "client": "question" }]);
    world
        .play_in(session, &json!([{ "until": "all", "start": start }]))
        .await;
    let (question, _) = world.question("puppet", session).await;
    let run = world.runs().await.pop().unwrap();
    let first = world.store().first_of(Stream::Run(run)).await.unwrap();
    let event = first.and_then(|first| first.event).unwrap();
    let stepped = event.step().unwrap();
    (session, run, stepped.started[0].id, question)
}

/// Settles work of a run as another driver would, first in a queue of commits that stands still.
/// Then does what comes second in it.
async fn overtaken<T>(
    world: &World,
    run: RunId,
    operation: OperationId,
    second: impl Future<Output = T>,
) -> T {
    let time = world.recorded().await.pop().unwrap().time;
    let settled = vec![Settlement::new(
        operation,
        OperationOutcome::Parts {
            parts: vec![Part::text("somebody else")],
        },
        time,
    )];
    let first = interfere(
        world,
        Stream::Run(run),
        Event::RunSettled(RunSettled { run, settled }),
    );
    let second = async {
        sleep(STALLED / 4).await;
        second.await
    };
    let ((), second) = Box::pin(stalled(world, async { tokio::join!(first, second) })).await;
    second
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_other_work_overtakes_is_taken_all_the_same() {
    let world = World::new(Setup::default()).await;
    let (session, run, timer, question) = asking(&world).await;
    overtaken(
        &world,
        run,
        timer,
        Box::pin(world.answer("puppet", question, json!(1))),
    )
    .await
    .unwrap();
    assert_eq!(world.store().stats().conflicts, 1, "it came second");
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await,
        "t parts somebody else\nq value 1"
    );
    account(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_that_other_work_overtakes_is_done_all_the_same() {
    let world = World::new(Setup::default()).await;
    let (session, run, timer, _) = asking(&world).await;
    let me = UserId::local();
    let target = target("puppet");
    assert!(
        overtaken(
            &world,
            run,
            timer,
            Box::pin(
                world
                    .broker
                    .runs()
                    .cancel(By::from(&me), &target, session, None)
            )
        )
        .await
        .unwrap()
    );
    assert_eq!(world.store().stats().conflicts, 1, "it came second");
    world.idle(session).await;
    account(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_more_cancellations_than_a_mailbox_holds_one_counts_and_all_are_answered() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]),
        )
        .await;
    world.until(session, |row| row.open_run.is_some()).await;
    let target = target("puppet");
    let me = UserId::local();
    let runs = world.broker.runs();
    let cancels = (0..SIGNALS).map(|_| runs.cancel(By::from(&me), &target, session, None));
    let cancelled = stalled(&world, join_all(cancels)).await;
    let done: Vec<bool> = cancelled.into_iter().map(Result::unwrap).collect();
    assert_eq!(done.iter().filter(|done| **done).count(), 1);
    world.idle(session).await;
    account(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_until_the_step_that_stops_it_is_stored() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let start = json!([
        { "key": "t", "timer": 2_000 },
        { "key": "send", "tool": "send", "args": { "sleep": 4_000 } },
    ]);
    let steps =
        json!({ "steps": [{ "start": start }, { "cancel": ["send"] }, { "reply": "cancelled" }] });
    world.say("puppet", session, &steps.to_string()).await;
    until(async || !world.effects().is_empty()).await;
    // The next step cancels the call, and cannot be stored.
    let outsider = rusqlite::Connection::open(world.dir.path().join("data/store.db")).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let patience = tokio::time::Instant::now() + PATIENCE / 2;
    while world.effects().len() < 2 {
        assert!(
            tokio::time::Instant::now() < patience,
            "it was stopped by what is not stored: {:?}",
            world.effects()
        );
        sleep(Duration::from_millis(5)).await;
    }
    outsider.execute_batch("ROLLBACK").unwrap();
    world.idle(session).await;
    assert_eq!(world.store().verify().await.unwrap().fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_through_a_session_that_is_deleted_meanwhile_is_refused() {
    let world = World::new(Setup::default()).await;
    let shows = world.open("puppet").await;
    let other = world.open("puppet").await;
    let mut turns = Vec::new();
    for _ in 0..2 {
        world.play_in(shows, &json!([])).await;
        turns.push(world.idle(shows).await.head.unwrap());
    }
    let me = UserId::local();
    let target = target("puppet");
    let sessions = world.broker.sessions();
    let delete = sessions.delete(By::from(&me), &target, shows);
    let fork = Fork {
        turn: Some(turns[0]),
        ..Fork::default()
    };
    let transcripts = world.broker.transcripts();
    let fork = transcripts.fork(By::from(&me), &target, other, fork);
    let words = PostRouted {
        to: Address::Thread(turns[0]),
        content: vec![Part::text("hello")],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        labels: domain::message_labels::MessageLabels::default(),
        user: me.clone(),
        idempotency_key: None,
    };
    let messages = world.broker.messages();
    let words = messages.post_routed(words);
    // Both see the turn through the session, whose deletion is stored before they are.
    let begin = Box::pin(async {
        sleep(STALLED / 4).await;
        tokio::join!(fork, words)
    });
    let both = Box::pin(async { tokio::join!(delete, begin) });
    let (deleted, (forked, routed)) = Box::pin(stalled(&world, both)).await;
    deleted.unwrap();
    let code = |refused: Option<broker::Error>| match refused {
        Some(broker::Error::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (code(forked.err()), code(routed.err())),
        ("TURN_NOT_FOUND", "TURN_NOT_FOUND")
    );
    assert_eq!(world.store().stats().conflicts, 2, "both came second");
    let opened = world
        .recorded()
        .await
        .iter()
        .filter(|event| event.kind == "session.opened.v1")
        .count();
    assert_eq!(opened, 2, "nothing was begun");
}

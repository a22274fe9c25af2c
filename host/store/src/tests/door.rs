//! Acceptance: guards are exact however many commits share a transaction, and whatever other
//! connections write.

use super::commits::key;
use super::sample::{
    NOON, Sample, accepted, agent, commit, created, input, new, noise, opened, run, run_started,
    session,
};
use crate::sql::{Columns, Connection};
use crate::{
    AgentGuard, Clash, Commit, CommitError, Expected, Guard, QueueGuard, SessionGuard, UserGuard,
};
use domain::event::{AgentArchived, Event, InputCancelled, NewEvent, SessionDeleted, Source};
use domain::id::Stream;
use domain::role::Right;
use domain::time::Timestamp;
use domain::user::UserId;
use std::time::Duration;

fn ada() -> UserId {
    super::sample::ada()
}

/// Words to a session, under the guards that the broker has for them.
fn words(n: u128, to: u128, max: u64) -> Commit {
    commit(
        Stream::Session(session(to)),
        [accepted(n, to, Source::Api, "hello")],
    )
    .guard(SessionGuard::Open(session(to)))
    .guard(AgentGuard::Role {
        agent: agent(1),
        user: ada(),
        right: Right::Interact,
    })
    .guard(QueueGuard::WaitingAtMost {
        session: session(to),
        max,
    })
}

fn cancelled(n: u128, of: u128) -> Event {
    Event::InputCancelled(InputCancelled {
        input: input(n),
        session: session(of),
        cancelled_by: ada(),
        reason: None,
        time: NOON,
    })
}

async fn refused(sample: &Sample, commit: Commit) -> Guard {
    match sample.commit(commit).await {
        Err(CommitError::Conflict(conflict)) => match conflict.clash {
            Clash::Guard(guard) => guard,
            clash => panic!("{clash:?}"),
        },
        received => panic!("{received:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_wait_than_may_however_many_come_at_once() {
    let sample = Sample::begun().await;
    let tasks: Vec<_> = (10..110_u128)
        .map(|n| {
            let store = sample.store.clone();
            tokio::spawn(async move { store.commit(words(n, 1, 39)).await.is_ok() })
        })
        .collect();
    let mut landed = 0;
    for task in tasks {
        landed += u64::from(task.await.unwrap());
    }
    assert_eq!(landed, 40);
    assert_eq!(sample.session(1).await.waiting, 40);
    assert!(sample.stats().largest_batch > 1, "they shared transactions");
}

#[tokio::test]
async fn what_waits_is_counted_through_all_that_may_become_of_it() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    for n in 10..13 {
        sample.commit(words(n, 1, 2)).await.unwrap();
    }
    assert!(matches!(
        refused(&sample, words(13, 1, 2)).await,
        Guard::Queue(QueueGuard::WaitingAtMost { .. })
    ));
    sample.append(stream, [cancelled(10, 1)]).await;
    sample.commit(words(13, 1, 2)).await.unwrap();
    assert!(matches!(
        refused(&sample, words(14, 1, 2)).await,
        Guard::Queue(QueueGuard::WaitingAtMost { .. })
    ));
    sample.begin_run(1, 1, [input(11), input(12)]).await;
    sample.commit(words(14, 1, 2)).await.unwrap();
    sample.commit(words(15, 1, 2)).await.unwrap();
    assert!(matches!(
        refused(&sample, words(16, 1, 2)).await,
        Guard::Queue(QueueGuard::WaitingAtMost { .. })
    ));
}

/// The idle time is judged with the commit, so that nothing can come in between.
#[tokio::test]
async fn a_session_is_idle_only_without_an_open_run_and_without_words_that_wait() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    let active_after = |after: Timestamp| QueueGuard::ActiveAfter {
        session: session(1),
        after,
    };
    let before_noon = Timestamp(NOON.0 - 1);
    assert_eq!(
        refused(&sample, words(10, 1, 9).guard(active_after(NOON))).await,
        Guard::Queue(active_after(NOON))
    );
    let commit = words(10, 1, 9).guard(active_after(before_noon));
    sample.commit(commit).await.unwrap();
    let commit = words(11, 1, 9).guard(active_after(NOON));
    sample.commit(commit).await.unwrap();
    let gone = vec![cancelled(10, 1), cancelled(11, 1)];
    sample.append(stream, gone).await;
    refused(&sample, words(12, 1, 9).guard(active_after(NOON))).await;
    sample.commit(words(12, 1, 9)).await.unwrap();
    sample.begin_run(1, 1, [input(12)]).await;
    let commit = words(13, 1, 9).guard(active_after(NOON));
    sample.commit(commit).await.unwrap();
}

#[tokio::test]
async fn words_to_what_has_ended_are_refused_at_once() {
    let sample = Sample::begun().await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    sample.commit(words(10, 1, 9)).await.unwrap();
    sample.commit(words(11, 2, 9)).await.unwrap();
    let deleted = SessionDeleted {
        session: session(1),
        deleted_by: ada(),
        time: NOON,
    };
    sample.in_session(1, [Event::SessionDeleted(deleted)]).await;
    assert!(matches!(
        refused(&sample, words(12, 1, 9)).await,
        Guard::Session(SessionGuard::Open(_))
    ));
    let archived = AgentArchived {
        agent: agent(1),
        path: "/ada/assistant".parse().unwrap(),
        reason: "done".to_owned(),
        archived_at: NOON,
    };
    sample.in_agent(1, [Event::AgentArchived(archived)]).await;
    assert!(matches!(
        refused(&sample, words(13, 2, 9)).await,
        Guard::Session(SessionGuard::Open(_))
    ));
}

#[tokio::test]
async fn what_another_connection_wrote_is_seen_by_the_next_guard() {
    let sample = Sample::begun().await;
    sample.commit(words(10, 1, 9)).await.unwrap();
    let other = sample.connection();
    other
        .execute("UPDATE access SET role = 'observer'", [])
        .unwrap();
    assert!(matches!(
        refused(&sample, words(11, 1, 9)).await,
        Guard::Agent(AgentGuard::Role { .. })
    ));
    other.execute("UPDATE agents SET active = 0", []).unwrap();
    assert!(matches!(
        refused(&sample, words(11, 1, 9)).await,
        Guard::Session(SessionGuard::Open(_))
    ));
}

/// A request that is refused after part of it was written fails alone. It leaves nothing that a
/// guard would go by.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_contradiction_fails_only_its_own_request_of_a_batch() {
    let sample = Sample::begun().await;
    let commit_of = |n: u128| match n % 3 {
        // Words that count, and then a second agent at a path.
        0 => words(n, 1, 1_000).append(
            Stream::Agent(agent(n)),
            Expected::New,
            vec![new(created(n, "/ada/assistant", None))],
        ),
        _ => words(n, 1, 1_000),
    };
    let tasks: Vec<_> = (10..106_u128)
        .map(|n| {
            let store = sample.store.clone();
            let commit = commit_of(n);
            (
                n,
                tokio::spawn(async move {
                    store
                        .commit(commit)
                        .await
                        .map_err(|error| error.to_string())
                }),
            )
        })
        .collect();
    let mut landed = 0;
    for (n, task) in tasks {
        let received = task.await.unwrap();
        assert_eq!(received.is_ok(), n % 3 != 0, "{n}: {received:?}");
        landed += u64::from(received.is_ok());
    }
    assert_eq!(sample.session(1).await.waiting, landed);
    assert!(sample.stats().largest_batch > 1, "they shared transactions");
    assert!(matches!(
        refused(&sample, words(200, 1, landed - 1)).await,
        Guard::Queue(QueueGuard::WaitingAtMost { .. })
    ));
    sample.commit(words(200, 1, landed)).await.unwrap();
    let verified = sample.verify().await.unwrap();
    assert_eq!((verified.events, verified.fault), (landed + 3, None));
    let bytes = sample.stored_bytes(&ada()).await.unwrap();
    let counted: i64 = Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT sum(bytes) FROM events WHERE actor = 'user:ada'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(
        bytes,
        counted.unsigned_abs(),
        "each byte that was stored is counted once"
    );
}

#[tokio::test]
async fn a_limit_on_bytes_counts_those_of_the_same_transaction() {
    let sample = Sample::begun().await;
    let stored = sample.stored_bytes(&ada()).await.unwrap();
    let below = move |n: u128| {
        words(n, 1, 99).guard(UserGuard::StoredBelow {
            user: ada(),
            bytes: stored + 1,
        })
    };
    let tasks: Vec<_> = (10..30_u128)
        .map(|n| {
            let store = sample.store.clone();
            tokio::spawn(async move { store.commit(below(n)).await.is_ok() })
        })
        .collect();
    let mut landed = 0;
    for task in tasks {
        landed += u64::from(task.await.unwrap());
    }
    assert_eq!(landed, 1);
}

#[tokio::test]
async fn an_acceptance_leaves_its_sessions_row_alone() {
    let sample = Sample::begun().await;
    let updated = async || sample.session(1).await.updated_at;
    sample.commit(words(10, 1, 9)).await.unwrap();
    assert_eq!(updated().await, NOON);
    let Event::RunStarted(mut started) = run_started(run(1), 1, None, vec![input(10)]) else {
        panic!("a start")
    };
    started.time = NOON.plus_ms(20);
    sample.in_run(1, [Event::RunStarted(started)]).await;
    assert_eq!(
        updated().await,
        NOON.plus_ms(20),
        "it shows when a run takes up what was said"
    );
    sample.commit(words(11, 1, 9)).await.unwrap();
    sample.is_sound().await;
}

/// Returns a commit with a key, so many days later.
fn keyed(days: u64, name: &str) -> Commit {
    let event = NewEvent {
        time: NOON.plus_ms(days * 24 * 3_600_000),
        ..new(noise(days))
    };
    Commit::new()
        .append(Stream::Run(run(1)), Expected::Any, vec![event])
        .key(key(name, b"request", b"reply"))
}

#[tokio::test]
async fn keys_whose_time_is_over_go_once_in_a_while() {
    let sample = Sample::new();
    let kept = || {
        let connection = sample.connection();
        connection
            .query_row(
                "SELECT group_concat(key) FROM (SELECT key FROM idempotency ORDER BY key)",
                [],
                |row| row.get::<String>(0),
            )
            .unwrap()
    };
    for (days, name) in [(0, "a"), (0, "b"), (8, "c")] {
        sample.commit(keyed(days, name)).await.unwrap();
    }
    assert_eq!(kept(), "a,b,c", "no commit prunes for itself");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    sample.commit(keyed(8, "d")).await.unwrap();
    assert_eq!(kept(), "c,d");
}

#[tokio::test]
async fn a_key_that_comes_again_after_its_time_gives_back_the_bytes_of_its_first_reply() {
    let sample = Sample::new();
    for days in [0, 8] {
        sample.commit(keyed(days, "a")).await.unwrap();
    }
    let there: i64 = Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT (SELECT sum(bytes) FROM events) + (SELECT sum(length(reply)) FROM \
             idempotency)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let counted = sample.stored_bytes(&ada()).await.unwrap();
    assert_eq!(counted, there.unsigned_abs());
}

#[tokio::test]
async fn the_door_opens_for_an_open_session_of_an_active_agent_and_a_user_with_a_role() {
    let sample = Sample::new();
    let Event::AgentCreated(mut agent_created) = created(1, "/ada/assistant", None) else {
        unreachable!("the sample creates an agent");
    };
    agent_created.kind = domain::path::PathKind::Agent;
    sample
        .in_agent(1, [Event::AgentCreated(agent_created)])
        .await;
    sample.in_session(1, [opened(1, 1, None)]).await;
    let door = async |user: UserId, of: u128, to: u128| {
        sample.door(&user, agent(of), session(to)).await.unwrap()
    };

    let row = sample.session(1).await;
    let open = door(ada(), 1, 1).await.expect("the session is open");
    assert_eq!(open.addressee, crate::Addressee::from(&row));
    assert_eq!(
        (open.user_id, open.path.as_str()),
        (row.user_id, "/ada/assistant")
    );
    assert!(open.role.permits(Right::Interact).is_ok());

    assert_eq!(door("bob".parse().unwrap(), 1, 1).await, None, "no role");
    assert_eq!(door(ada(), 2, 1).await, None, "another agent's session");
    assert_eq!(door(ada(), 1, 2).await, None, "no session");
    let deleted = Event::SessionDeleted(SessionDeleted {
        session: session(1),
        deleted_by: ada(),
        time: NOON,
    });
    sample.in_session(1, [deleted]).await;
    assert_eq!(door(ada(), 1, 1).await, None, "a deleted session");
}

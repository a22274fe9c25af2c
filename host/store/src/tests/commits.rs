//! Tests of a commit's promises: all or nothing, expected versions, dense positions, one event for
//! a repeated request.

use super::projections::everything;
use super::sample::{
    NOON, Sample, agent, commit, created, expecting, new, noise, opened, run, session, stepped,
    timer,
};
use crate::commit::EVENT_BYTES_MAX;
use crate::sql::{self, Columns, Connection};
use crate::{
    AgentGuard, Clash, Commit, CommitError, EventFilter, Expected, Guard, Health, Key, KeyGuard,
    QueueGuard, RunGuard, SessionGuard,
};
use domain::digest::Digest;
use domain::event::{Event, PluginEmitted, SlotTaken};
use domain::id::{ConversationId, Stream};
use domain::json::STORED_DEPTH_MAX;
use domain::user::UserId;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

pub(super) fn key(name: &str, request: &[u8], reply: &[u8]) -> Key {
    Key {
        source: "user:ada".to_owned(),
        key: name.to_owned(),
        request: Digest::of(request),
        reply: reply.to_vec(),
        about: None,
    }
}

#[tokio::test]
async fn a_commit_says_where_its_events_are() {
    let sample = Sample::new();
    let stream = Stream::Run(run(1));
    let first = sample.append(stream, [noise(1), noise(2)]).await;
    assert_eq!(
        (first.first_position, first.last_position, first.versions),
        (1, 2, vec![(stream, 2)])
    );
    let twice =
        commit(stream, [noise(3)]).append(stream, Expected::Version(3), vec![new(noise(4))]);
    assert_eq!(
        sample.commit(twice).await.unwrap().versions,
        vec![(stream, 4)]
    );
    assert_eq!(*sample.durable().borrow(), 4);
    let read = sample.stream(stream, 2, 10).await.unwrap();
    assert_eq!(
        read.iter()
            .map(|event| (event.position, event.version))
            .collect::<Vec<_>>(),
        [(3, 3), (4, 4)]
    );
    assert_eq!(read.first().unwrap().event, Some(noise(3)));
}

#[tokio::test]
async fn one_bad_append_rolls_all_of_its_commit_back() {
    let sample = Sample::begun().await;
    let before = *sample.durable().borrow();
    let blob = b"never stored".to_vec();
    let bad = commit(Stream::Session(session(1)), [noise(1)])
        .append(
            Stream::Agent(agent(2)),
            Expected::New,
            vec![new(created(2, "/ada/other", None))],
        )
        .append(
            Stream::Run(run(1)),
            Expected::Version(7),
            vec![new(noise(2))],
        )
        .blob(blob.clone())
        .key(key("k", b"request", b"reply"));
    let Err(CommitError::Conflict(conflict)) = sample.commit(bad).await else {
        panic!("it landed")
    };
    assert_eq!(conflict.clash, Clash::Stream(Stream::Run(run(1))));
    assert_eq!(*sample.durable().borrow(), before);
    assert_eq!(sample.store.agent(agent(2)).await.unwrap(), None);
    assert_eq!(sample.blob(Digest::of(&blob)).await.unwrap(), None);
    // Neither is the key remembered, and positions go on without a gap.
    let again = commit(Stream::Run(run(1)), [noise(3)]).key(key("k", b"request", b"reply"));
    assert_eq!(
        sample.commit(again).await.unwrap().first_position,
        before + 1
    );
    sample.is_sound().await;
}

#[tokio::test]
async fn an_event_that_contradicts_what_is_stored_is_a_conflict() {
    let sample = Sample::begun().await;
    let second = commit(
        Stream::Agent(agent(2)),
        [created(2, "/ada/assistant", None)],
    );
    let Err(CommitError::Conflict(conflict)) = sample.commit(second).await else {
        panic!("two agents at one path")
    };
    assert_eq!(conflict.clash, Clash::Row);
    assert_eq!(sample.verify().await.unwrap().events, 2);
}

#[tokio::test]
async fn guards_hold_or_name_themselves() {
    let sample = Sample::begun().await;
    let holds = [
        Guard::Session(SessionGuard::NoOpenRun(session(1))),
        Guard::Session(SessionGuard::Head {
            session: session(1),
            head: None,
            revision: 0,
        }),
        Guard::Agent(AgentGuard::SlotFor {
            agent: agent(1),
            session: session(1),
        }),
        Guard::Session(SessionGuard::Open(session(1))),
        Guard::Queue(QueueGuard::WaitingAtMost {
            session: session(1),
            max: 0,
        }),
        Guard::Agent(AgentGuard::PathFree("/ada/other".to_owned())),
        Guard::Agent(AgentGuard::SubCount {
            agent: agent(1),
            count: 0,
        }),
        Guard::Key(KeyGuard::ConnectorKeyOf {
            key: "telegram:1".parse().unwrap(),
            user: None,
        }),
        Guard::Key(KeyGuard::ConnectorKeysAtMost {
            user: "ada".parse().unwrap(),
            max: 0,
        }),
        Guard::Key(KeyGuard::KeysOfConnectorAtMost {
            connector: "telegram".parse().unwrap(),
            max: 0,
        }),
    ];
    let mut all = Commit::new();
    all.guards = holds.to_vec();
    sample.commit(all).await.unwrap();
    let fails = [
        Guard::Session(SessionGuard::NoOpenRun(session(2))),
        Guard::Session(SessionGuard::Head {
            session: session(1),
            head: None,
            revision: 1,
        }),
        Guard::Agent(AgentGuard::SlotFor {
            agent: agent(2),
            session: session(1),
        }),
        Guard::Session(SessionGuard::Open(session(2))),
        Guard::Agent(AgentGuard::PathFree("/ada/assistant".to_owned())),
        Guard::Agent(AgentGuard::SubCount {
            agent: agent(1),
            count: 1,
        }),
        Guard::Key(KeyGuard::ConnectorKeyOf {
            key: "telegram:1".parse().unwrap(),
            user: Some("ada".parse().unwrap()),
        }),
        Guard::Run(RunGuard::Open(run(1))),
        Guard::Queue(QueueGuard::InputWaiting(super::sample::input(1))),
    ];
    for guard in fails {
        let Err(CommitError::Conflict(conflict)) =
            sample.commit(Commit::new().guard(guard.clone())).await
        else {
            panic!("{guard:?} held")
        };
        assert_eq!(conflict.clash, Clash::Guard(guard));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_appends_with_the_same_expected_version_exactly_one_wins() {
    const APPENDERS: usize = 64;
    const ROUNDS: u64 = 20;
    let sample = Sample::new();
    let stream = Stream::Run(run(1));
    for round in 0..ROUNDS {
        let tasks: Vec<_> = (0..APPENDERS)
            .map(|n| {
                let store = sample.store.clone();
                tokio::spawn(async move {
                    store
                        .commit(expecting(
                            stream,
                            Expected::Version(round),
                            [noise(n as u64)],
                        ))
                        .await
                })
            })
            .collect();
        let mut won = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(committed) => {
                    assert_eq!(committed.versions, vec![(stream, round + 1)]);
                    won += 1;
                }
                Err(CommitError::Conflict(conflict)) => {
                    assert_eq!(conflict.clash, Clash::Stream(stream))
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won, 1);
    }
    let versions: Vec<u64> = sample
        .stream(stream, 0, 1_000)
        .await
        .unwrap()
        .iter()
        .map(|event| event.version)
        .collect();
    assert_eq!(versions, (1..=ROUNDS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_conflict_fails_only_its_own_request_of_a_batch() {
    let sample = Sample::new();
    let tasks: Vec<_> = (0..64_u128)
        .map(|n| {
            let store = sample.store.clone();
            let expected = if n % 3 == 0 {
                Expected::Version(9)
            } else {
                Expected::New
            };
            tokio::spawn(async move {
                store
                    .commit(expecting(
                        Stream::Run(run(n)),
                        expected,
                        [noise(1), noise(2)],
                    ))
                    .await
                    .is_ok()
            })
        })
        .collect();
    let mut landed = 0;
    for (n, task) in tasks.into_iter().enumerate() {
        let ok = task.await.unwrap();
        assert_eq!(ok, n % 3 != 0, "commit {n}");
        landed += u64::from(ok);
    }
    let verified = sample.verify().await.unwrap();
    assert_eq!((verified.events, verified.fault), (landed * 2, None));
    assert!(sample.stats().largest_batch > 1, "they shared transactions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_sees_a_position_sees_everything_before_it() {
    const WRITERS: u128 = 16;
    const EACH: u64 = 25;
    let sample = Sample::new();
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let store = sample.store.clone();
            tokio::spawn(async move {
                for event in 0..EACH {
                    store
                        .commit(commit(Stream::Run(run(n)), [noise(event)]))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    let mut durable = sample.durable();
    let mut seen = 0;
    while seen < WRITERS as u64 * EACH {
        let through = *durable.wait_for(|position| *position > seen).await.unwrap();
        while seen < through {
            let events = sample
                .events(seen, EventFilter::default(), 10)
                .await
                .unwrap();
            assert!(
                !events.is_empty(),
                "position {through} was published and {} is not there",
                seen + 1
            );
            for event in events {
                assert_eq!(event.position, seen + 1);
                seen = event.position;
            }
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    sample.is_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_comes_a_thousand_times_is_one_event_with_one_reply() {
    let sample = Sample::new();
    let stream = Stream::Run(run(1));
    let tasks: Vec<_> = (0..1_000)
        .map(|n| {
            let store = sample.store.clone();
            // Each copy would answer something else; the first one's answer is everyone's.
            let reply = format!("reply {n}").into_bytes();
            let copy = commit(stream, [noise(1)]).key(key("update-7", b"body", &reply));
            tokio::spawn(async move { (store.commit(copy).await, reply) })
        })
        .collect();
    let mut landed = Vec::new();
    let mut replies = HashSet::new();
    for task in tasks {
        match task.await.unwrap() {
            (Ok(_), reply) => landed.push(reply),
            (Err(CommitError::Replayed { reply }), _) => {
                assert!(replies.insert(reply) || replies.len() == 1)
            }
            (Err(error), _) => panic!("{error}"),
        }
    }
    assert_eq!(landed.len(), 1);
    assert_eq!(replies.into_iter().collect::<Vec<_>>(), landed);

    let sample = sample.reopen().await;
    let copy = commit(stream, [noise(1)]).key(key("update-7", b"body", b"another reply"));
    let Err(CommitError::Replayed { reply }) = sample.commit(copy).await else {
        panic!("forgotten after a restart")
    };
    assert_eq!(Some(&reply), landed.first());
    let other = commit(stream, [noise(2)]).key(key("update-7", b"another body", b"reply"));
    assert!(matches!(
        sample.commit(other).await,
        Err(CommitError::KeyReused)
    ));
    let mut someone_else = key("update-7", b"another body", b"reply");
    someone_else.source = "user:bob".to_owned();
    sample
        .commit(commit(stream, [noise(3)]).key(someone_else))
        .await
        .unwrap();
    assert_eq!(sample.stream(stream, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_is_forgotten_after_seven_days() {
    let sample = Sample::new();
    let at = |days: u64, name: &str| {
        let mut event = new(noise(days));
        event.time = event.time.plus_ms(days * 24 * 3_600_000);
        Commit::new()
            .append(Stream::Run(run(1)), Expected::Any, vec![event])
            .key(key(name, b"request", b"reply"))
    };
    sample.commit(at(0, "a")).await.unwrap();
    assert!(matches!(
        sample.commit(at(6, "a")).await,
        Err(CommitError::Replayed { .. })
    ));
    sample.commit(at(8, "a")).await.unwrap();
    assert_eq!(*sample.durable().borrow(), 2);
}

#[tokio::test]
async fn a_key_is_kept_for_as_much_longer_as_nobody_knows_whether_it_has_passed() {
    let sample = Sample::new();
    let day_ms = 24 * 3_600_000;
    let at = |days: u64, name: &str| {
        let mut event = new(noise(days));
        event.time = event.time.plus_ms(days * day_ms);
        Commit::new()
            .append(Stream::Run(run(1)), Expected::Any, vec![event])
            .key(key(name, b"request", b"reply"))
    };
    sample.commit(at(0, "a")).await.unwrap();
    sample.keep_keys_longer(8 * day_ms);
    // What comes under another key takes none away either.
    sample.commit(at(8, "b")).await.unwrap();
    assert!(matches!(
        sample.commit(at(14, "a")).await,
        Err(CommitError::Replayed { .. })
    ));
    let now = new(noise(0)).time.plus_ms(14 * day_ms);
    assert!(
        sample
            .remembered_request("user:ada", "a", now)
            .await
            .unwrap()
            .is_some()
    );
    sample.keep_keys_longer(0);
    assert!(
        sample
            .remembered_request("user:ada", "a", now)
            .await
            .unwrap()
            .is_none()
    );
    sample.commit(at(14, "a")).await.unwrap();
}

#[tokio::test]
async fn blobs_and_snapshots_are_kept_with_their_commit() {
    let sample = Sample::new();
    let stream = Stream::Session(session(1));
    let snapshot = |version| crate::Snapshot {
        version,
        format: 1,
        state: format!("state {version}").into_bytes(),
    };
    let both = commit(stream, [opened(1, 1, None)])
        .blob(b"content".to_vec())
        .snapshot(stream, snapshot(5));
    sample.commit(both).await.unwrap();
    assert_eq!(
        sample.blob(Digest::of(b"content")).await.unwrap(),
        Some(b"content".to_vec())
    );
    assert_eq!(
        sample.blob(Digest::of(crate::EMPTY_STATE)).await.unwrap(),
        Some(crate::EMPTY_STATE.to_vec())
    );
    sample
        .commit(
            Commit::new()
                .snapshot(stream, snapshot(4))
                .blob(b"content".to_vec()),
        )
        .await
        .unwrap();
    assert_eq!(
        sample.snapshot(stream).await.unwrap(),
        Some(snapshot(5)),
        "an older one does not replace it"
    );
}

#[tokio::test]
async fn a_closed_store_takes_and_gives_nothing() {
    let sample = Sample::new();
    sample.close().await;
    assert!(matches!(
        sample.commit(Commit::new()).await,
        Err(CommitError::Closed)
    ));
    assert!(matches!(
        sample.store.agent(agent(1)).await,
        Err(crate::ReadError::Closed)
    ));
}

/// The commit of an event changes all that can be read from it, as a whole or not at all. There is
/// nothing to reconcile afterwards.
#[tokio::test]
async fn a_commit_that_fails_leaves_neither_its_events_nor_anything_to_read() {
    let sample = Sample::begun().await;
    let taken = || {
        new(Event::SlotTaken(SlotTaken {
            agent: agent(1),
            session_id: session(2),
            conversation_id: ConversationId(Uuid::from_u128(1)),
            session_type: "lesson".to_owned(),
            started_by: UserId::local(),
            started_at: NOON,
            expires_at: Some(NOON.plus_ms(1)),
            items_imported: 0,
        }))
    };
    // Both of what has rows of its own and of what changes those of others.
    let good = || {
        commit(Stream::Session(session(2)), [opened(2, 1, None)])
            .append(
                Stream::Agent(agent(2)),
                Expected::New,
                vec![new(created(2, "/ada/other", None))],
            )
            .append(Stream::Agent(agent(1)), Expected::Any, vec![taken()])
    };
    let before = everything(&sample.database());
    let position = *sample.durable().borrow();
    for (bad, clash) in [
        (
            good().guard(SessionGuard::Open(session(9))),
            Clash::Guard(Guard::Session(SessionGuard::Open(session(9)))),
        ),
        (
            good().append(
                Stream::Run(run(1)),
                Expected::Version(7),
                vec![new(noise(1))],
            ),
            Clash::Stream(Stream::Run(run(1))),
        ),
        // The last of its events contradicts a row.
        (
            good().append(
                Stream::Agent(agent(3)),
                Expected::New,
                vec![new(created(3, "/ada/assistant", None))],
            ),
            Clash::Row,
        ),
    ] {
        let Err(CommitError::Conflict(conflict)) = sample.commit(bad).await else {
            panic!("it landed")
        };
        assert_eq!(conflict.clash, clash);
        assert_eq!(everything(&sample.database()), before, "{clash:?}");
        assert_eq!(*sample.durable().borrow(), position);
    }
    let landed = sample.commit(good()).await.unwrap();
    assert_eq!(
        (landed.first_position, landed.last_position),
        (position + 1, position + 3)
    );
    let row = sample.agent(1).await;
    assert_eq!(
        row.agent.active_session.map(|active| active.session_id),
        Some(session(2))
    );
    assert_eq!(sample.next_wake().await.unwrap(), Some(NOON.plus_ms(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sees_an_event_sees_what_it_changed_in_the_same_instant() {
    let sample = Sample::begun().await;
    // Another connection to the database looks on, at one moment after the other.
    let over = Arc::new(AtomicBool::new(false));
    let database = sample.database();
    let looker = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let connection = Connection::open_read_only(database).unwrap();
            let text = "SELECT (SELECT position FROM head), (SELECT max(position) FROM events), \
                        (SELECT count(*) FROM events WHERE kind = 'session.opened.v1'), (SELECT \
                        count(*) FROM sessions)";
            let mut seen = std::collections::BTreeSet::new();
            while !over.load(Ordering::Relaxed) {
                let inspect = |row: &sql::Row<'_>| {
                    Ok([row.get::<i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
                };
                let [head, position, opened, sessions] =
                    connection.query_row(text, [], inspect).unwrap();
                assert_eq!((head, opened), (position, sessions));
                seen.insert(position);
            }
            seen.len()
        }
    });
    // Whoever is told a position finds what it changed.
    let mut durable = sample.durable();
    let store = sample.store.clone();
    let follower = tokio::spawn(async move {
        for n in 2..200_u128 {
            let position = u64::try_from(n).unwrap() + 1;
            durable.wait_for(|there| *there >= position).await.unwrap();
            assert!(
                store.session(session(n)).await.unwrap().is_some(),
                "session {n} at {position}"
            );
        }
    });
    for n in 2..200 {
        sample.in_session(n, [opened(n, 1, None)]).await;
    }
    follower.await.unwrap();
    over.store(true, Ordering::Relaxed);
    assert!(
        looker.join().unwrap() > 1,
        "it looked while something happened"
    );
}

#[tokio::test]
async fn a_session_is_one_agents_for_ever() {
    let sample = Sample::begun().await;
    sample.in_agent(2, [created(2, "/ada/other", None)]).await;
    for expected in [Expected::New, Expected::Any] {
        let again = expecting(Stream::Session(session(1)), expected, [opened(1, 2, None)]);
        assert!(
            matches!(sample.commit(again).await, Err(CommitError::Conflict(_))),
            "{expected:?}"
        );
    }
    assert_eq!(sample.session(1).await.agent, agent(1));
}

#[tokio::test]
async fn what_could_not_be_read_again_is_never_stored() {
    let sample = Sample::begun().await;
    let emitted = |data: serde_json::Value| {
        Event::PluginEmitted(PluginEmitted {
            name: "plugin.test".to_owned(),
            data,
        })
    };
    let before = everything(&sample.database());
    let deep = (0..STORED_DEPTH_MAX).fold(serde_json::json!(1), |within, _| {
        serde_json::json!([within])
    });
    let large = serde_json::json!("x".repeat(EVENT_BYTES_MAX));
    for data in [deep, large] {
        // It is the same however often it is tried.
        for _ in 0..2 {
            let refused = sample
                .commit(commit(Stream::Run(run(1)), [emitted(data.clone())]))
                .await;
            assert!(
                matches!(refused, Err(CommitError::Unstorable { .. })),
                "{refused:?}"
            );
        }
        let encoded = commit(Stream::Run(run(1)), [emitted(data)]).encoded_bytes();
        assert!(
            matches!(encoded, Err(CommitError::Unstorable { .. })),
            "{encoded:?}"
        );
    }
    let small = commit(Stream::Run(run(1)), [emitted(serde_json::json!([1]))]);
    assert!(small.encoded_bytes().unwrap() > 0);
    assert_eq!(everything(&sample.database()), before);
    sample.in_run(1, [emitted(serde_json::json!([1]))]).await;
}

fn panicking(n: u64) -> Event {
    let data = serde_json::json!({ "n": n, "words": crate::fault::PANICS_IN_TESTS });
    Event::PluginEmitted(PluginEmitted {
        name: "plugin.test".to_owned(),
        data,
    })
}

/// A commit over which a projection panics is refused for good and the writer lives on.
#[tokio::test]
async fn a_commit_on_which_a_projection_panics_is_refused_and_the_writer_lives_on() {
    let sample = Sample::begun().await;
    let before = everything(&sample.database());
    let head = *sample.durable().borrow();
    for n in 0..2 {
        let bad = commit(
            Stream::Session(session(2)),
            [opened(2, 1, None), panicking(n)],
        )
        .append(Stream::Run(run(1)), Expected::New, vec![new(noise(n))])
        .blob(b"never stored".to_vec())
        .key(key("k", b"request", b"reply"));
        let refused = sample.commit(bad).await;
        let Err(CommitError::Unstorable { source }) = refused else {
            panic!("{refused:?}")
        };
        assert!(
            source.to_string().contains("a test wants a panic"),
            "{source}"
        );
        assert_eq!(
            (everything(&sample.database()), *sample.durable().borrow()),
            (before.clone(), head)
        );
        assert_eq!(
            sample.blob(Digest::of(b"never stored")).await.unwrap(),
            None
        );
    }
    let landed = sample
        .commit(commit(Stream::Run(run(1)), [noise(1)]).key(key("k", b"request", b"reply")))
        .await
        .unwrap();
    assert_eq!(
        landed.first_position,
        head + 1,
        "positions go on without a gap, and the key was not used"
    );
    sample.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_shares_a_transaction_with_a_panicking_projection_is_stored_all_the_same() {
    let sample = Sample::begun().await;
    // While the writer is held up, all of them gather.
    let leased = Arc::new(AtomicBool::new(true));
    let wait = Arc::clone(&leased);
    let store = sample.store.clone();
    let holding = tokio::spawn(async move {
        let until_let_go = move |_: &sql::Sql<'_>| {
            while wait.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        };
        store.in_writer(until_let_go).await
    });
    let ask = |n: u64| {
        let event = if n.is_multiple_of(3) {
            panicking(n)
        } else {
            noise(n)
        };
        let store = sample.store.clone();
        tokio::spawn(async move {
            store
                .commit(commit(Stream::Run(run(u128::from(n) + 1)), [event]))
                .await
        })
    };
    let asked: Vec<_> = (0..12).map(ask).collect();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    leased.store(false, Ordering::Relaxed);
    holding.await.unwrap().unwrap();
    let mut outcomes = Vec::new();
    for one in asked {
        outcomes.push(one.await.unwrap());
    }
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 3 {
            0 => assert!(
                matches!(outcome, Err(CommitError::Unstorable { .. })),
                "{n}: {outcome:?}"
            ),
            _ => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
        }
    }
    assert!(sample.stats().largest_batch > 1, "they shared one");
    sample.is_sound().await;
    assert_eq!(*sample.durable().borrow(), 2 + 8);
}

#[tokio::test]
async fn a_commit_that_rests_on_an_unreadable_row_is_refused_alone_until_that_is_mended() {
    let sample = Sample::begun().await;
    sample.begin_run(1, 1, []).await;
    let step = || {
        let stepped = stepped(
            run(1),
            Vec::new(),
            Vec::new(),
            vec![timer(run(1), "t", NOON)],
        );
        commit(Stream::Run(run(1)), [Event::RunStepped(Box::new(stepped))])
    };
    // A projection reads the first row, and a guard the second one.
    sample
        .execute("UPDATE runs SET session = x'00'; UPDATE agents SET slot = x'00'")
        .await;
    let before = everything(&sample.database());
    let slot = Guard::Agent(AgentGuard::SlotFor {
        agent: agent(1),
        session: session(1),
    });
    for bad in [
        step(),
        step(),
        commit(Stream::Run(run(2)), [noise(1)]).guard(slot),
    ] {
        let refused = sample.commit(bad).await;
        assert!(
            matches!(refused, Err(CommitError::Unreadable { .. })),
            "{refused:?}"
        );
        assert_eq!(
            (everything(&sample.database()), sample.health()),
            (before.clone(), Health::Well)
        );
    }
    sample.in_run(2, [noise(1)]).await;
    sample
        .execute(
            "UPDATE runs SET session = (SELECT id FROM sessions); UPDATE agents SET slot = NULL",
        )
        .await;
    sample.commit(step()).await.unwrap();
    sample.is_sound().await;
}

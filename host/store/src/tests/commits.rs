//! What a commit promises: all or nothing, expected versions, dense positions, one event for a repeated request.

use super::sample::{Sample, agent, begin, commit, created, expecting, new, noise, opened, run, session};
use crate::{Clash, Commit, CommitError, EventFilter, Expected, Guard, Key};
use domain::digest::Digest;
use domain::id::Stream;
use std::collections::HashSet;

fn key(name: &str, request: &[u8], reply: &[u8]) -> Key {
    Key { source: "user:ada".to_owned(), key: name.to_owned(), request: Digest::of(request), reply: reply.to_vec() }
}

#[tokio::test]
async fn a_commit_says_where_its_events_are() {
    let sample = Sample::new();
    let stream = Stream::Run(run(1));
    let first = sample.append(stream, vec![noise(1), noise(2)]).await;
    assert_eq!((first.first_position, first.last_position, first.versions), (1, 2, vec![(stream, 2)]));
    let twice = commit(stream, vec![noise(3)]).append(stream, Expected::Version(3), vec![new(noise(4))]);
    assert_eq!(sample.store.commit(twice).await.unwrap().versions, vec![(stream, 4)]);
    assert_eq!(*sample.store.durable().borrow(), 4);
    let read = sample.store.stream(stream, 2, 10).await.unwrap();
    assert_eq!(read.iter().map(|event| (event.position, event.version)).collect::<Vec<_>>(), [(3, 3), (4, 4)]);
    assert_eq!(read.first().unwrap().event, Some(noise(3)));
}

#[tokio::test]
async fn one_bad_append_rolls_all_of_its_commit_back() {
    let sample = Sample::new();
    begin(&sample).await;
    let before = *sample.store.durable().borrow();
    let blob = b"never stored".to_vec();
    let bad = commit(Stream::Session(session(1)), vec![noise(1)])
        .append(Stream::Agent(agent(2)), Expected::New, vec![new(created(2, "/ada/other", None))])
        .append(Stream::Run(run(1)), Expected::Version(7), vec![new(noise(2))])
        .blob(blob.clone())
        .key(key("k", b"request", b"reply"));
    let Err(CommitError::Conflict(conflict)) = sample.store.commit(bad).await else { panic!("it landed") };
    assert_eq!(conflict.clash, Clash::Stream(Stream::Run(run(1))));
    assert_eq!(*sample.store.durable().borrow(), before);
    assert_eq!(sample.store.agent(agent(2)).await.unwrap(), None);
    assert_eq!(sample.store.blob(Digest::of(&blob)).await.unwrap(), None);
    // Neither is the key remembered, and positions go on without a gap.
    let again = commit(Stream::Run(run(1)), vec![noise(3)]).key(key("k", b"request", b"reply"));
    assert_eq!(sample.store.commit(again).await.unwrap().first_position, before + 1);
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}

#[tokio::test]
async fn an_event_that_contradicts_what_is_stored_is_a_conflict() {
    let sample = Sample::new();
    begin(&sample).await;
    let second = commit(Stream::Agent(agent(2)), vec![created(2, "/ada/assistant", None)]);
    let Err(CommitError::Conflict(conflict)) = sample.store.commit(second).await else { panic!("two agents at one path") };
    assert_eq!(conflict.clash, Clash::Row);
    assert_eq!(sample.store.verify().await.unwrap().events, 2);
}

#[tokio::test]
async fn guards_hold_or_name_themselves() {
    let sample = Sample::new();
    begin(&sample).await;
    let holds = [
        Guard::NoOpenRun(session(1)),
        Guard::Head { session: session(1), head: None, revision: 0 },
        Guard::SlotFor { agent: agent(1), session: session(1) },
        Guard::SessionOpen(session(1)),
        Guard::WaitingAtMost { session: session(1), max: 0 },
        Guard::PathFree("/ada/other".to_owned()),
        Guard::SubCount { agent: agent(1), count: 0 },
    ];
    let mut all = Commit::new();
    all.guards = holds.to_vec();
    sample.store.commit(all).await.unwrap();
    let fails = [
        Guard::NoOpenRun(session(2)),
        Guard::Head { session: session(1), head: None, revision: 1 },
        Guard::SlotFor { agent: agent(2), session: session(1) },
        Guard::SessionOpen(session(2)),
        Guard::PathFree("/ada/assistant".to_owned()),
        Guard::SubCount { agent: agent(1), count: 1 },
        Guard::RunOpen(run(1)),
        Guard::InputWaiting(super::sample::input(1)),
    ];
    for guard in fails {
        let Err(CommitError::Conflict(conflict)) = sample.store.commit(Commit::new().guard(guard.clone())).await else {
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
                tokio::spawn(async move { store.commit(expecting(stream, Expected::Version(round), vec![noise(n as u64)])).await })
            })
            .collect();
        let mut won = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(committed) => {
                    assert_eq!(committed.versions, vec![(stream, round + 1)]);
                    won += 1;
                }
                Err(CommitError::Conflict(conflict)) => assert_eq!(conflict.clash, Clash::Stream(stream)),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won, 1);
    }
    let versions: Vec<u64> = sample.store.stream(stream, 0, 1_000).await.unwrap().iter().map(|event| event.version).collect();
    assert_eq!(versions, (1..=ROUNDS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_conflict_fails_only_its_own_request_of_a_batch() {
    let sample = Sample::new();
    let tasks: Vec<_> = (0..64_u128)
        .map(|n| {
            let store = sample.store.clone();
            let expected = if n % 3 == 0 { Expected::Version(9) } else { Expected::New };
            tokio::spawn(async move { store.commit(expecting(Stream::Run(run(n)), expected, vec![noise(1), noise(2)])).await.is_ok() })
        })
        .collect();
    let mut landed = 0;
    for (n, task) in tasks.into_iter().enumerate() {
        let ok = task.await.unwrap();
        assert_eq!(ok, n % 3 != 0, "commit {n}");
        landed += u64::from(ok);
    }
    let verified = sample.store.verify().await.unwrap();
    assert_eq!((verified.events, verified.fault), (landed * 2, None));
    assert!(sample.store.stats().largest_batch > 1, "they shared transactions");
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
                    store.commit(commit(Stream::Run(run(n)), vec![noise(event)])).await.unwrap();
                }
            })
        })
        .collect();
    let mut durable = sample.store.durable();
    let mut seen = 0;
    while seen < WRITERS as u64 * EACH {
        let through = *durable.wait_for(|position| *position > seen).await.unwrap();
        while seen < through {
            let events = sample.store.events(seen, EventFilter::default(), 10).await.unwrap();
            assert!(!events.is_empty(), "position {through} was published and {} is not there", seen + 1);
            for event in events {
                assert_eq!(event.position, seen + 1);
                seen = event.position;
            }
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
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
            let copy = commit(stream, vec![noise(1)]).key(key("update-7", b"body", &reply));
            tokio::spawn(async move { (store.commit(copy).await, reply) })
        })
        .collect();
    let (mut landed, mut replies) = (Vec::new(), HashSet::new());
    for task in tasks {
        match task.await.unwrap() {
            (Ok(_), reply) => landed.push(reply),
            (Err(CommitError::Replayed { reply }), _) => assert!(replies.insert(reply) || replies.len() == 1),
            (Err(error), _) => panic!("{error}"),
        }
    }
    assert_eq!(landed.len(), 1);
    assert_eq!(replies.into_iter().collect::<Vec<_>>(), landed);

    let sample = sample.reopen().await;
    let copy = commit(stream, vec![noise(1)]).key(key("update-7", b"body", b"another reply"));
    let Err(CommitError::Replayed { reply }) = sample.store.commit(copy).await else { panic!("forgotten after a restart") };
    assert_eq!(Some(&reply), landed.first());
    let other = commit(stream, vec![noise(2)]).key(key("update-7", b"another body", b"reply"));
    assert!(matches!(sample.store.commit(other).await, Err(CommitError::KeyReused)));
    let mut someone_else = key("update-7", b"another body", b"reply");
    someone_else.source = "user:bob".to_owned();
    sample.store.commit(commit(stream, vec![noise(3)]).key(someone_else)).await.unwrap();
    assert_eq!(sample.store.stream(stream, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_is_forgotten_after_seven_days() {
    let sample = Sample::new();
    let at = |days: u64, name: &str| {
        let mut event = new(noise(days));
        event.time = event.time.plus_ms(days * 24 * 3_600_000);
        Commit::new().append(Stream::Run(run(1)), Expected::Any, vec![event]).key(key(name, b"request", b"reply"))
    };
    sample.store.commit(at(0, "a")).await.unwrap();
    assert!(matches!(sample.store.commit(at(6, "a")).await, Err(CommitError::Replayed { .. })));
    sample.store.commit(at(8, "a")).await.unwrap();
    assert_eq!(*sample.store.durable().borrow(), 2);
}

#[tokio::test]
async fn blobs_and_snapshots_are_kept_with_their_commit() {
    let sample = Sample::new();
    let stream = Stream::Session(session(1));
    let snapshot = |version| crate::Snapshot { version, format: 1, state: format!("state {version}").into_bytes() };
    let both = commit(stream, vec![opened(1, 1, None)]).blob(b"content".to_vec()).snapshot(stream, snapshot(5));
    sample.store.commit(both).await.unwrap();
    assert_eq!(sample.store.blob(Digest::of(b"content")).await.unwrap(), Some(b"content".to_vec()));
    assert_eq!(sample.store.blob(Digest::of(crate::EMPTY_STATE)).await.unwrap(), Some(crate::EMPTY_STATE.to_vec()));
    sample.store.commit(Commit::new().snapshot(stream, snapshot(4)).blob(b"content".to_vec())).await.unwrap();
    assert_eq!(sample.store.snapshot(stream).await.unwrap(), Some(snapshot(5)), "an older one does not replace it");
}

#[tokio::test]
async fn a_closed_store_takes_and_gives_nothing() {
    let sample = Sample::new();
    sample.store.close().await;
    assert!(matches!(sample.store.commit(Commit::new()).await, Err(CommitError::Closed)));
    assert!(matches!(sample.store.agent(agent(1)).await, Err(crate::ReadError::Closed)));
}

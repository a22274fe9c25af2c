//! Bytes that came with an API key: counted for it alone, refused by its guard, given back with
//! what is erased.

use super::commits::key;
use super::key_rows::bytes_of_rows;
use super::purging::purged;
use super::sample::{
    NOON, Sample, ada, agent, commit, created, new, noise, opened, run, session, take_turn,
};
use crate::{Clash, Commit, CommitError, Committed, Expected, Guard, Key, KeyGuard, under_api_key};
use domain::event::{Event, NewEvent, SessionRenamed};
use domain::id::Stream;
use domain::key::KeyId;

fn id(n: u8) -> KeyId {
    KeyId::of([n; 12])
}

async fn commit_with(sample: &Sample, key: u8, commit: Commit) -> Result<Committed, CommitError> {
    under_api_key(Some(id(key)), sample.commit(commit)).await
}

async fn stored_with(sample: &Sample, key: u8) -> u64 {
    sample.stored_bytes_with(&id(key)).await.unwrap()
}

/// Names a session, by a request that brings content along.
fn naming(n: u128, name: &str) -> Commit {
    let renamed = Event::SessionRenamed(SessionRenamed {
        session: session(n),
        name: Some(name.to_owned()),
        time: NOON,
    });
    commit(Stream::Session(session(n)), [renamed])
        .blob(format!("content of {name}").into_bytes())
        .key(Key {
            about: Some(session(n)),
            ..key(name, b"request", b"reply")
        })
}

fn rows_with(sample: &Sample, key: u8) -> u64 {
    bytes_of_rows(&sample.database(), &id(key))
}

#[tokio::test]
async fn what_came_with_a_key_is_counted_for_it_alone() {
    let sample = Sample::begun().await;
    assert_eq!(stored_with(&sample, 1).await, 0, "nothing came with a key");
    let before = sample.stored_bytes(&ada()).await.unwrap();
    commit_with(&sample, 1, naming(1, "one")).await.unwrap();
    let one = stored_with(&sample, 1).await;
    let after = sample.stored_bytes(&ada()).await.unwrap();
    assert_eq!(one, after - before, "event, content and reply");
    assert!(one > "content of one".len() as u64);
    commit_with(&sample, 2, naming(1, "another")).await.unwrap();
    sample.commit(naming(1, "without")).await.unwrap();
    let of_host = NewEvent {
        actor: "host".to_owned(),
        ..new(noise(1))
    };
    let of_host = Commit::new().append(Stream::Run(run(1)), Expected::Any, vec![of_host]);
    commit_with(&sample, 2, of_host).await.unwrap();
    let two = stored_with(&sample, 2).await;
    assert_eq!((one, two), (rows_with(&sample, 1), rows_with(&sample, 2)));
    assert!(two > 0);

    // They are no projection, and stay as they are.
    sample.rebuild().await.unwrap();
    let sample = sample.reopen().await;
    assert_eq!(
        (stored_with(&sample, 1).await, stored_with(&sample, 2).await),
        (one, two)
    );
    sample.is_sound().await;
}

#[tokio::test]
async fn a_limit_on_a_keys_bytes_counts_those_of_the_same_transaction_and_no_other_keys() {
    let sample = Sample::begun().await;
    let below = |n: u8, name: String| {
        naming(1, &name).guard(KeyGuard::StoredBelow {
            key: id(n),
            bytes: 1,
        })
    };
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let store = sample.store.clone();
            let commit = below(1, format!("name {n}"));
            let committing = async move { store.commit(commit).await.is_ok() };
            tokio::spawn(under_api_key(Some(id(1)), committing))
        })
        .collect();
    let mut landed = 0;
    for task in tasks {
        landed += u64::from(task.await.unwrap());
    }
    assert_eq!(landed, 1);
    match commit_with(&sample, 1, below(1, "later".to_owned())).await {
        Err(CommitError::Conflict(conflict)) => assert!(matches!(
            conflict.clash,
            Clash::Guard(Guard::Key(KeyGuard::StoredBelow { .. }))
        )),
        received => panic!("{received:?}"),
    }
    commit_with(&sample, 2, below(2, "other".to_owned()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_purge_gives_back_what_came_with_each_key() {
    let sample = Sample::begun().await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    commit_with(&sample, 1, naming(2, "stays")).await.unwrap();
    // A blob goes with the next purge if nothing names it.
    let unnamed = "content of stays".len() as u64;
    let stays = stored_with(&sample, 1).await - unnamed;
    let alone = stored_with(&sample, 2).await;
    commit_with(&sample, 1, naming(1, "goes")).await.unwrap();
    commit_with(&sample, 2, naming(1, "goes too"))
        .await
        .unwrap();
    purged(&sample, 1).await;
    assert_eq!(
        (stored_with(&sample, 1).await, stored_with(&sample, 2).await),
        (stays, alone)
    );
    assert_eq!(
        (stays, alone),
        (rows_with(&sample, 1), rows_with(&sample, 2))
    );
}

/// The reply was remembered for a request with one key, and is replaced by one with another.
#[tokio::test]
async fn a_request_that_comes_again_late_gives_its_bytes_back_to_its_first_key() {
    let sample = Sample::new();
    let asking = |days: u64| {
        let event = NewEvent {
            time: NOON.plus_ms(days * 24 * 3_600_000),
            ..new(noise(days))
        };
        Commit::new()
            .append(Stream::Run(run(1)), Expected::Any, vec![event])
            .key(key("a", b"request", b"a long reply"))
    };
    commit_with(&sample, 1, asking(0)).await.unwrap();
    let before = stored_with(&sample, 1).await;
    commit_with(&sample, 2, asking(8)).await.unwrap();
    let given_back = "a long reply".len() as u64;
    assert_eq!(stored_with(&sample, 1).await, before - given_back);
    assert_eq!(
        stored_with(&sample, 2).await,
        rows_with(&sample, 2),
        "the reply is the other key's"
    );
}

#[tokio::test]
async fn a_key_whose_first_commit_was_undone_is_counted_from_the_next_one_on() {
    let sample = Sample::begun().await;
    // There is an agent at this path already, which shows when its row is written.
    let taken = commit(
        Stream::Agent(agent(2)),
        [created(2, "/ada/assistant", None)],
    );
    let refused = commit_with(&sample, 1, taken).await;
    assert!(
        matches!(&refused, Err(CommitError::Conflict(conflict)) if conflict.clash == Clash::Row),
        "{refused:?}"
    );
    assert_eq!(stored_with(&sample, 1).await, 0);
    commit_with(&sample, 2, naming(1, "two")).await.unwrap();
    commit_with(&sample, 1, naming(1, "one")).await.unwrap();
    for key in [1, 2] {
        let stored = stored_with(&sample, key).await;
        assert_eq!(stored, rows_with(&sample, key));
        assert!(stored > 0);
    }
}

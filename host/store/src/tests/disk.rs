//! Full disks, databases locked by others and full queues: a commit is refused, never lost, and
//! works again afterwards.

use super::sample::{Sample, commit, noise, open, run, session};
use crate::sql::Connection;
use crate::{CommitError, Health, Options, Store};
use domain::id::Stream;
use std::time::Duration;

#[tokio::test]
async fn a_full_disk_refuses_commits_and_loses_nothing() {
    let sample = Sample::begun().await;
    let before = sample
        .events(0, crate::EventFilter::default(), 100)
        .await
        .unwrap();
    // SQLite answers just as it does when the disk is full.
    sample.execute("PRAGMA max_page_count = 1").await;
    let large = || commit(Stream::Run(run(1)), [noise(1)]).blob(vec![7; 1 << 20]);
    for _ in 0..5 {
        assert!(matches!(
            sample.commit(large()).await,
            Err(CommitError::Full)
        ));
        assert_eq!(sample.health(), Health::Full);
        assert_eq!(
            sample
                .events(0, crate::EventFilter::default(), 100)
                .await
                .unwrap(),
            before,
            "reads go on"
        );
    }
    sample.execute("PRAGMA max_page_count = 1000000").await;
    let mut tries = 0;
    while let Err(error) = sample.commit(large()).await {
        assert!(matches!(error, CommitError::Full), "{error}");
        tries += 1;
        assert!(tries <= 2, "it does not take commits again");
    }
    assert!(sample.dir.path().join("ballast").exists() && sample.health() == Health::Well);
    let verified = sample.verify().await.unwrap();
    assert_eq!((verified.events, verified.fault), (3, None));
}

#[tokio::test]
async fn a_ballast_that_cannot_be_put_back_keeps_the_store_from_writing() {
    let sample = Sample::new();
    sample.execute("PRAGMA max_page_count = 1").await;
    let one = || commit(Stream::Run(run(1)), [noise(1)]).blob(vec![7; 1 << 20]);
    assert!(matches!(sample.commit(one()).await, Err(CommitError::Full)));
    sample.execute("PRAGMA max_page_count = 1000000").await;
    let reserved_space = sample.dir.path().join("ballast");
    std::fs::create_dir(&reserved_space).unwrap();
    for _ in 0..4 {
        assert!(matches!(sample.commit(one()).await, Err(CommitError::Full)));
    }
    std::fs::remove_dir(&reserved_space).unwrap();
    let _ = sample.commit(one()).await;
    sample.commit(one()).await.unwrap();
}

#[tokio::test]
async fn a_store_that_opens_on_a_full_disk_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let reserved_space = dir.path().join("ballast");
    open(dir.path()).close().await;
    std::fs::remove_file(&reserved_space).unwrap();
    // What keeps it from taking the space is that something else is there.
    std::fs::create_dir(&reserved_space).unwrap();
    let store = open(dir.path());
    assert_eq!(
        store.health(),
        Health::Full,
        "before anybody was refused anything"
    );
    let one = || commit(Stream::Run(run(1)), [noise(1)]);
    assert!(matches!(store.commit(one()).await, Err(CommitError::Full)));
    std::fs::remove_dir(&reserved_space).unwrap();
    let recovered = async {
        while store.health() == Health::Full {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), recovered)
        .await
        .expect("it looks by itself whether there is space");
    store.commit(one()).await.unwrap();
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_waited_for_and_then_reported() {
    let sample = Sample::begun().await;
    let outsider = sample.connection();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = sample.commit(commit(Stream::Run(run(1)), [noise(1)])).await;
    assert!(matches!(refused, Err(CommitError::Unavailable { .. })));
    assert!(
        sample.store.session(session(1)).await.unwrap().is_some(),
        "reads go on"
    );
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(
        sample.health(),
        Health::Failing,
        "as long as the lock is there, whether anybody asks or not"
    );
    outsider.execute_batch("ROLLBACK").unwrap();
    let recovered = async {
        while sample.health() == Health::Failing {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), recovered)
        .await
        .expect("it looks by itself whether the lock is gone");
    sample
        .commit(commit(Stream::Run(run(1)), [noise(1)]))
        .await
        .unwrap();
    assert_eq!(sample.verify().await.unwrap().events, 3);
}

#[tokio::test]
async fn more_commits_than_may_wait_are_refused_as_busy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        Options {
            queue_max: 4,
            ..super::sample::options()
        },
    )
    .unwrap();
    let outsider = Connection::open(dir.path().join("store.db")).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(commit(Stream::Run(run(n)), [noise(1)])).await })
        })
        .collect();
    while store.stats().busy == 0 {
        tokio::task::yield_now().await;
    }
    outsider.execute_batch("ROLLBACK").unwrap();
    let mut landed = 0;
    let mut busy = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => landed += 1,
            Err(CommitError::Busy) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(store.stats().busy, busy);
    store.close().await;
    drop(store);
    assert_eq!(open(dir.path()).verify().await.unwrap().events, landed);
}

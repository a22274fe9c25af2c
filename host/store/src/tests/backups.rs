//! Backups under load, and stores made from them.

use super::sample::{NOON, Sample, commit, new, noise, open, run, session, take_turn};
use crate::{BackupError, Commit, Expected, OpenError, RestoreError, Store, restore};
use domain::event::{Event, HostRestored, RestoreChoice};
use domain::id::Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_under_load_is_a_consistent_beginning() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    let enough = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (10..14)
        .map(|n| {
            let store = sample.store.clone();
            let enough = Arc::clone(&enough);
            tokio::spawn(async move {
                while !enough.load(Ordering::Relaxed) {
                    store
                        .commit(
                            commit(Stream::Run(run(n)), [noise(1), noise(2)]).blob(vec![7; 10_000]),
                        )
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    let files = tempfile::tempdir().unwrap();
    let backup = files.path().join("backup.db");
    let mut durable = sample.durable();
    durable.wait_for(|position| *position > 100).await.unwrap();
    let before = *durable.borrow_and_update();
    sample.backup(&backup).await.unwrap();
    let after = *durable.borrow_and_update();
    enough.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(
        std::fs::read_dir(files.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );

    let target = files.path().join("restored");
    let restored = restore(&backup, &target).unwrap();
    assert!(
        (before..=after).contains(&restored.events),
        "{before} {} {after}",
        restored.events
    );
    let copy = open(&target);
    assert_eq!(copy.verify().await.unwrap().head, restored.head);
    assert_eq!(
        copy.session(session(1)).await.unwrap(),
        sample.store.session(session(1)).await.unwrap()
    );
    let shared = usize::try_from(restored.events).unwrap();
    let all = crate::EventFilter::default();
    assert_eq!(
        copy.events(0, all, shared).await.unwrap(),
        sample.events(0, all, shared).await.unwrap()
    );
    copy.commit(commit(Stream::Run(run(99)), [noise(1)]))
        .await
        .unwrap();
    assert!(matches!(
        sample.backup(&backup).await,
        Err(BackupError::Exists { .. })
    ));
}

#[tokio::test]
async fn a_store_is_restored_only_from_an_intact_backup_into_an_empty_directory() {
    let sample = Sample::begun().await;
    let files = tempfile::tempdir().unwrap();
    let backup = files.path().join("backup.db");
    sample.backup(&backup).await.unwrap();
    let target = || files.path().join("restored");

    assert!(matches!(
        restore(&backup, sample.dir.path()),
        Err(RestoreError::Target {
            source: OpenError::Locked { .. }
        })
    ));
    sample.close().await;
    assert!(matches!(
        restore(&backup, sample.dir.path()),
        Err(RestoreError::NotEmpty { .. })
    ));

    let intact = std::fs::read(&backup).unwrap();
    let at = intact
        .windows(9)
        .position(|bytes| bytes == b"Assistant")
        .unwrap();
    let mut flipped = intact.clone();
    flipped[at] ^= 1;
    let truncated = &intact[..intact.len() / 2];
    for damaged in [flipped.as_slice(), truncated, b"not a database at all", b""] {
        std::fs::write(&backup, damaged).unwrap();
        assert!(
            matches!(
                restore(&backup, &target()),
                Err(RestoreError::Damaged { .. })
            ),
            "{} bytes",
            damaged.len()
        );
        assert_eq!(
            std::fs::read_dir(target()).unwrap().count(),
            0,
            "nothing is left behind"
        );
    }
    std::fs::write(&backup, &intact).unwrap();
    assert_eq!(restore(&backup, &target()).unwrap().events, 2);
    Store::open(&target(), super::sample::options()).unwrap();
}

#[tokio::test]
async fn a_store_that_was_made_from_a_backup_says_so_until_it_was_seen_to() {
    let sample = Sample::begun().await;
    let files = tempfile::tempdir().unwrap();
    let backup = files.path().join("backup.db");
    sample.backup(&backup).await.unwrap();
    assert_eq!(
        sample.backup_mark().await.unwrap(),
        None,
        "it is the copy that is marked"
    );

    let dir = files.path().join("restored");
    restore(&backup, &dir).unwrap();
    let store = open(&dir);
    let mark = store.backup_mark().await.unwrap().unwrap();
    assert!(mark.position == 2 && mark.made_at > NOON, "{mark:?}");
    // It stays, whatever else is stored and however often it is opened and folded again.
    store
        .commit(commit(Stream::Run(run(1)), [noise(1)]))
        .await
        .unwrap();
    store.rebuild().await.unwrap();
    store.close().await;
    let store = open(&dir);
    assert_eq!(store.backup_mark().await.unwrap(), Some(mark));

    let seen_to = HostRestored {
        made_at: mark.made_at,
        choice: RestoreChoice::Resumed,
        turns: 0,
        operations: 0,
        inputs: 0,
        time: NOON,
    };
    let refused = Commit::new().append(
        Stream::Host,
        Expected::Version(7),
        vec![new(Event::HostRestored(seen_to.clone()))],
    );
    store.commit(refused).await.unwrap_err();
    assert_eq!(store.backup_mark().await.unwrap(), Some(mark));
    store
        .commit(commit(Stream::Host, [Event::HostRestored(seen_to)]))
        .await
        .unwrap();
    assert_eq!(store.backup_mark().await.unwrap(), None);
    // A backup of it has a mark of its own, also after the event that took the first one away is
    // folded again.
    let again = files.path().join("again.db");
    store.backup(&again).await.unwrap();
    let dir = files.path().join("again");
    restore(&again, &dir).unwrap();
    let store = open(&dir);
    store.rebuild().await.unwrap();
    assert_eq!(store.backup_mark().await.unwrap().unwrap().position, 4);
}

#[tokio::test]
async fn a_backup_put_in_place_or_copied_by_hand_is_known_too() {
    let sample = Sample::begun().await;
    let files = tempfile::tempdir().unwrap();
    let backup = files.path().join("backup.db");
    sample.backup(&backup).await.unwrap();
    let by_hand = files.path().join("by-hand");
    std::fs::create_dir(&by_hand).unwrap();
    std::fs::copy(&backup, by_hand.join("store.db")).unwrap();
    assert!(open(&by_hand).backup_mark().await.unwrap().is_some());

    crate::sql::Connection::open(&backup)
        .unwrap()
        .execute("DELETE FROM meta WHERE name = 'backup'", [])
        .unwrap();
    let copied = files.path().join("copied");
    restore(&backup, &copied).unwrap();
    let mark = open(&copied).backup_mark().await.unwrap().unwrap();
    assert_eq!((mark.made_at, mark.position), (NOON, 2));
}

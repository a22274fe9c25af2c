//! A purge costs what it erases, however much else is stored.

use super::super::commits::key;
use super::super::recalling::note;
use super::super::sample::{Sample, agent, commit, noise, opened, run, session, take_turn};
use super::{MARK, filled, holders, is_sound, purged};
use crate::sql::STEPS;
use crate::{Piece, Rewritten};
use domain::digest::Digest;
use domain::id::Stream;
use std::path::PathBuf;

/// A store with so many other sessions, each with words, remembered requests, notes and blobs of
/// its own.
async fn beside(others: u128) -> Sample {
    let sample = Sample::new();
    filled(&sample).await;
    for n in 1_000..1_000 + others {
        sample
            .append(Stream::Session(session(n)), vec![opened(n, 1, None)])
            .await;
        take_turn(
            &sample.store,
            n,
            None,
            n,
            "what others say",
            "and what they are told",
        )
        .await;
        sample
            .append(Stream::Agent(agent(1)), vec![note(n, "likes others")])
            .await;
        let mut asked = commit(Stream::Run(run(n)), vec![noise(1)]).blob(n.to_be_bytes().to_vec());
        asked.key = Some(crate::Key {
            about: Some(session(n)),
            ..key(&n.to_string(), b"r", b"others")
        });
        sample.store.commit(asked).await.unwrap();
    }
    // What no event of theirs names is gone before.
    while !sample
        .store
        .erase(Stream::Session(session(1)), Piece::Blobs)
        .await
        .unwrap()
    {}
    sample
}

/// Returns the cost of purging one session beside so many others, in steps of SQLite's virtual
/// machine.
async fn steps_beside(others: u128) -> u64 {
    let sample = beside(others).await;
    let steps = || sample.store.in_writer(|_| Ok(STEPS.get()));
    let before = steps().await.unwrap();
    purged(&sample, 1).await;
    let took = steps().await.unwrap() - before;
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    is_sound(&sample).await;
    took
}

#[tokio::test]
async fn a_purge_does_no_more_in_a_store_that_is_ten_times_larger() {
    let small = steps_beside(20).await;
    let large = steps_beside(200).await;
    assert!(
        large <= small + small / 4,
        "{small} steps beside 20 sessions, {large} beside 200"
    );
}

#[tokio::test]
async fn blobs_are_looked_at_and_deleted_a_few_at_a_time() {
    let sample = Sample::new();
    let purge = Stream::Session(session(1));
    for n in 0..600_u32 {
        let stray = commit(Stream::Run(run(9)), vec![noise(1)]).blob(n.to_be_bytes().to_vec());
        sample.store.commit(stray).await.unwrap();
    }
    let mut pieces = 1;
    while !sample.store.erase(purge, Piece::Blobs).await.unwrap() {
        pieces += 1;
    }
    assert_eq!(pieces, 3);
    assert_eq!(sample.store.unnamed_blobs(10).await.unwrap(), []);
    // Large ones by their bytes.
    for n in 0..3_u8 {
        let stray = commit(Stream::Run(run(9)), vec![noise(1)]).blob(vec![n; 17 << 20]);
        sample.store.commit(stray).await.unwrap();
    }
    assert!(!sample.store.erase(purge, Piece::Blobs).await.unwrap());
    assert_eq!(sample.store.unnamed_blobs(10).await.unwrap().len(), 2);
    assert_eq!(sample.store.blob(Digest::of(&[9])).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_that_an_older_version_wrote_is_written_anew_by_command() {
    let sample = Sample::new();
    filled(&sample).await;
    sample
        .store
        .execute("INSERT INTO meta (name, value) VALUES ('leavings', 'of an older version')")
        .await;
    let told = sample.store.rewrite_erased().await.unwrap();
    assert!(
        matches!(&told, Rewritten::NotYet { reason } if reason.contains("vacuum")),
        "{told:?}"
    );
    assert_eq!(sample.store.vacuum().await.unwrap(), Rewritten::Yes);
    assert_eq!(sample.store.rewrite_erased().await.unwrap(), Rewritten::Yes);
    is_sound(&sample).await;
}

#[tokio::test]
async fn words_leave_every_file_wherever_the_database_moved_them() {
    let sample = Sample::new();
    filled(&sample).await;
    // So many rows in no order that pages are split and joined again and again.
    for n in 0..300_u128 {
        let id = 5_000 + (n * 7_919) % 1_009;
        sample
            .append(Stream::Session(session(id)), vec![opened(id, 1, None)])
            .await;
        let words = if n % 3 == 0 { MARK } else { "what stays" };
        take_turn(&sample.store, id, None, id, &format!("{words} {n}"), words).await;
    }
    purged(&sample, 1).await;
    for n in (0..300_u128).step_by(3) {
        purged(&sample, 5_000 + (n * 7_919) % 1_009).await;
    }
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    is_sound(&sample).await;
}

//! Purges of runs that have much beside their events, and that are begun anew after a crash.

use super::super::blobs::part;
use super::super::buckets::{place, written};
use super::super::sample::{
    NOON, Sample, begin, commit, message, noise, run, run_ended, run_started, session, stepped,
    timer,
};
use super::{begun, deleted, erase_all, finished, is_sound};
use crate::Piece;
use crate::sql::Columns;
use domain::digest::Digest;
use domain::event::Event;
use domain::grant::BucketScope;
use domain::id::{Stream, TurnId};
use domain::message::{Message, Role};
use domain::operation::{Continuation, Pause};
use rusqlite::Connection;

fn piece() -> Piece {
    Piece::Run {
        run: run(1),
        committed: None,
    }
}

/// A step that heard so many messages, each of which shows a blob of its own.
fn heard(contents: &[[u8; 4]]) -> Event {
    let shows = |(content, id): (&[u8; 4], u64)| {
        let mut said = message(id, Role::User, "see here");
        said.parts.push(part(content));
        said
    };
    let said: Vec<Message> = contents.iter().zip(1..).map(shows).collect();
    Event::RunStepped(Box::new(stepped(run(1), said, Vec::new(), Vec::new())))
}

/// Counts the messages and the references to blobs.
fn rows(sample: &Sample) -> u64 {
    Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM blob_references)",
            [],
            |row| row.uint(0),
        )
        .unwrap()
}

#[tokio::test]
async fn messages_and_blobs_of_a_run_go_a_few_at_a_time() {
    let sample = Sample::new();
    begin(&sample).await;
    let contents: Vec<[u8; 4]> = (0..600_u32).map(u32::to_be_bytes).collect();
    let events = vec![
        run_started(run(1), 1, None, Vec::new()),
        heard(&contents),
        run_ended(run(1), 1, TurnId(Digest([0; 32]))),
    ];
    let mut said = commit(Stream::Run(run(1)), events);
    for content in &contents {
        said = said.blob(content.to_vec());
    }
    sample.store.commit(said).await.unwrap();
    sample
        .append(Stream::Session(session(1)), vec![deleted(1)])
        .await;
    let purge = Stream::Session(session(9));
    let mut before = rows(&sample);
    assert!(before >= 1_200, "{before} rows");
    let mut after = Some(0);
    while let Some(from) = after {
        after = sample.store.erase(purge, piece(), from).await.unwrap();
        let now = rows(&sample);
        assert!(before - now <= 512, "{before} rows before, then {now}");
        before = now;
    }
    assert_eq!(before, 0);
    is_sound(&sample).await;
    erase_all(&sample.store, purge, Piece::Blobs).await;
    for content in &contents {
        let found = sample.store.blob(Digest::of(content)).await.unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test]
async fn a_run_whose_purge_begins_anew_each_time_moves_its_usage_once() {
    let sample = Sample::new();
    begin(&sample).await;
    let of_run = Stream::Run(run(1));
    let worked = Event::OperationContinued(Continuation {
        operation: timer(run(1), "call", NOON).id,
        segment: 1,
        state: Vec::new(),
        pause: Pause::None,
        active_ms: 1,
    });
    let of_user = place("shelf", BucketScope::User, "ada");
    let contents: Vec<[u8; 4]> = (0..300_u32).map(u32::to_be_bytes).collect();
    let mut events = vec![run_started(run(1), 1, None, Vec::new()), heard(&contents)];
    for n in 0..300 {
        let kept = written(&of_user, &[("kept", Some(b"v"))]);
        events.extend([noise(n), worked.clone(), kept]);
    }
    events.push(run_ended(run(1), 1, TurnId(Digest([0; 32]))));
    let mut all = commit(of_run, events);
    for content in &contents {
        all = all.blob(content.to_vec());
    }
    sample.store.commit(all).await.unwrap();
    let purge = Stream::Session(session(1));
    sample.append(purge, vec![deleted(1)]).await;
    begun(&sample.store, 1).await;
    let mut transactions = 1;
    // Each is the first one after a crash.
    while sample
        .store
        .erase(purge, piece(), 0)
        .await
        .unwrap()
        .is_some()
    {
        transactions += 1;
    }
    assert!(transactions > 3, "{transactions} transactions");
    erase_all(&sample.store, purge, piece()).await;
    let tally = finished(&sample.store, 1).await;
    let worked: u64 = tally.usage.iter().map(|share| share.sum.active_ms).sum();
    assert_eq!(
        (worked, tally.kept.bucket_writes, tally.erased.messages),
        (300, 300, 300)
    );
    let kept = sample.store.bucket_value(&of_user, "kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"v"[..]));
    is_sound(&sample).await;
}

//! Data folders of every layout that was released open, and hold what they held.
//!
//! `released/<version>.db.gz` is a database that a program of that layout wrote when it was told
//! `released/story.json`. `released/<version>.json` notes how many events it has, their last hash,
//! and the digest of all that follows from them. `AGENT_HOST_ACCEPT=1` makes the file of the newest
//! layout if there is none, and notes what follows from the events anew; it never changes a file, a
//! count or a hash, but for those of the baseline while that is not fixed.
//!
//! The way of a database from one layout to the next is tested with a made-up layout.

use super::projections::everything;
use super::sample::{NOON, Sample, commit, noise, open, options, run, session, take_turn};
use crate::schema::{self, FIRST, migrate_by};
use crate::sql::Connection;
use crate::{Commit, Expected, OpenError, Store};
use domain::digest::{Digest, Salt};
use domain::event::{Event, NewEvent, Recorded, Subject, kinds};
use domain::id::{EventId, Stream};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// True from the first release on. Until then the baseline, which is layout 1, is what the present
/// program writes.
const BASELINE_IS_FIXED: bool = false;
/// A made-up next layout: it has another table, and has lost rows that follow from events.
const NEXT: &str = "CREATE TABLE moods (mood TEXT NOT NULL) STRICT; DELETE FROM sessions;";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/released")
}

fn accepts() -> bool {
    std::env::var("AGENT_HOST_ACCEPT").is_ok_and(|value| value == "1")
}

/// One commit of the story: a stream, what happens in it, and the blobs that it names.
#[derive(Deserialize)]
struct Chapter {
    stream: String,
    blobs: Vec<String>,
    events: Vec<Value>,
}

/// Tells the story to a store; which kinds of it there are no more, or not yet.
async fn tell(store: &Store) -> BTreeSet<String> {
    let mut left_out = BTreeSet::new();
    let mut reported = 0_u8;
    let story: Vec<Chapter> =
        serde_json::from_slice(&fs::read(folder().join("story.json")).unwrap()).unwrap();
    for chapter in story {
        let stream: Stream = chapter.stream.parse().unwrap();
        let mut events = Vec::new();
        for event in chapter.events {
            let kind = event["type"].as_str().unwrap().to_owned();
            if !kinds().contains(&kind.as_str()) {
                left_out.insert(kind);
                continue;
            }
            reported += 1;
            events.push(NewEvent {
                id: EventId(Uuid::from_u128(u128::from(reported))),
                event: serde_json::from_value::<Event>(event)
                    .unwrap_or_else(|error| panic!("{kind}: {error}")),
                subject: Subject::default(),
                actor: "user:ada".to_owned(),
                causation: None,
                correlation: None,
                time: NOON.plus_ms(u64::from(reported)),
                salt: Salt([reported; 16]),
            });
        }
        let mut commit = Commit::new().append(stream, Expected::Any, events);
        commit.blobs = chapter.blobs.into_iter().map(String::into_bytes).collect();
        store.commit(commit).await.unwrap();
    }
    left_out
}

#[tokio::test]
async fn every_kind_of_event_occurs_in_the_story() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let left_out = tell(&store).await;
    assert!(
        left_out
            .iter()
            .all(|kind| domain::event::upcast::is_retired(kind)),
        "{left_out:?}"
    );
    let events = store
        .events(0, crate::EventFilter::default(), 1_000)
        .await
        .unwrap();
    let reported: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        reported,
        kinds().iter().copied().collect::<BTreeSet<_>>(),
        "tell it in `released/story.json`"
    );
    assert_eq!(store.verify().await.unwrap().fault, None);
}

/// Tells the story to a new store, and returns its folder.
async fn reported() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    tell(&store).await;
    store.close().await;
    dir
}

/// Keeps the database of a folder.
fn keep(dir: &Path, file: &Path) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed
        .write_all(&fs::read(dir.join("store.db")).unwrap())
        .unwrap();
    fs::write(file, packed.finish().unwrap()).unwrap();
}

/// A data folder with a database that was kept.
fn unpacked(file: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut database = Vec::new();
    GzDecoder::new(fs::File::open(file).unwrap())
        .read_to_end(&mut database)
        .unwrap();
    fs::write(dir.path().join("store.db"), database).unwrap();
    let connection = Connection::open(dir.path().join("store.db")).unwrap();
    let id = schema::store_id(&connection).unwrap().unwrap();
    fs::write(dir.path().join("store-id"), id).unwrap();
    dir
}

/// The note of the database of a data folder.
async fn noted(dir: &Path) -> Value {
    let store = open(dir);
    let verified = store.verify().await.unwrap();
    store.close().await;
    assert_eq!(verified.fault, None);
    let projections = Digest::of(everything(&dir.join("store.db")).join("\n").as_bytes());
    json!({ "events": verified.events, "turns": verified.turns, "head": verified.head, "projections": projections })
}

fn note_of(file: &Path) -> Value {
    let note = fs::read(file.with_extension("").with_extension("json"));
    note.map_or(Value::Null, |note| serde_json::from_slice(&note).unwrap())
}

/// Overwrites the baseline with what the present program writes, where that is something else.
async fn overwrite_baseline() {
    let file = folder().join("0001.db.gz");
    let dir = reported().await;
    if file.exists() {
        let kept = unpacked(&file);
        match Store::open(kept.path(), options()) {
            Err(OpenError::Before { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(store) => {
                let every = store.events(0, crate::EventFilter::default(), 1_000).await;
                let fault = store.verify().await.unwrap().fault;
                assert!(
                    every.is_ok() && fault.is_none(),
                    "this program does not read what it wrote before: raise the number of the \
                     baseline, in the second line of `schema/0001.sql`, so that it refuses that"
                );
                store.close().await;
                if note_of(&file) == noted(dir.path()).await {
                    return;
                }
            }
        }
    }
    keep(dir.path(), &file);
    let note = file.with_file_name("0001.json");
    fs::write(note, format!("{}\n", noted(dir.path()).await)).unwrap();
}

#[tokio::test]
async fn data_folders_of_every_version_open_and_fold_to_the_same() {
    if accepts() && !BASELINE_IS_FIXED {
        overwrite_baseline().await;
    }
    let newest = folder().join(format!("{:04}.db.gz", schema::newest()));
    if accepts() && !newest.exists() {
        keep(reported().await.path(), &newest);
    }
    assert!(
        newest.exists(),
        "no data folder of the newest layout is kept: run the tests with AGENT_HOST_ACCEPT=1"
    );
    if !BASELINE_IS_FIXED {
        assert_eq!(
            note_of(&newest),
            noted(reported().await.path()).await,
            "this program writes something else: until the first release the baseline is \
             overwritten with AGENT_HOST_ACCEPT=1"
        );
    }
    for version in 1..=schema::newest() {
        let file = folder().join(format!("{version:04}.db.gz"));
        assert!(
            fs::metadata(&file).is_ok_and(|file| file.len() < 100 << 10),
            "{version}"
        );
        let dir = unpacked(&file);
        let database = dir.path().join("store.db");
        assert_eq!(
            schema::version(&Connection::open(&database).unwrap()).unwrap(),
            version
        );
        let found = noted(dir.path()).await;
        let before = note_of(&file);
        for name in ["events", "turns", "head"] {
            assert!(
                before.is_null() || before[name] == found[name],
                "{version}: {name} were {} and are {}",
                before[name],
                found[name]
            );
        }
        if accepts() {
            let note = file.with_file_name(format!("{version:04}.json"));
            fs::write(note, format!("{found}\n")).unwrap();
        } else {
            assert_eq!(
                before, found,
                "{version}: what follows from the events has changed. Where that is meant: \
                 AGENT_HOST_ACCEPT=1"
            );
        }

        let store = open(dir.path());
        let rebuilt = store.rebuild().await.unwrap();
        assert_eq!(
            (rebuilt.replaced, rebuilt.index_replaced),
            (Vec::new(), false),
            "{version}"
        );
        let every = store
            .events(0, crate::EventFilter::default(), 1_000)
            .await
            .unwrap();
        // The story removes a definition, and with it the words of the event that made it.
        let erased = |kind: &str| kind == "user.definition.made.v1";
        let is_read = |event: &Recorded| event.event.is_some() || erased(&event.kind);
        assert!(every.iter().all(is_read), "{version}");
        // It goes on from there.
        store
            .commit(commit(Stream::Run(run(1)), [noise(1)]))
            .await
            .unwrap();
        store.close().await;
        assert_eq!(
            json!(open(dir.path()).verify().await.unwrap().events),
            json!(every.len() + 1),
            "{version}"
        );
    }
}

/// A store with a turn in it, closed.
async fn filled() -> Sample {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    sample.close().await;
    sample
}

#[tokio::test]
async fn the_next_layout_keeps_the_events_and_folds_what_follows_from_them_again() {
    let sample = filled().await;
    let before = everything(&sample.database());
    let connection = sample.connection();
    let id = schema::store_id(&connection).unwrap();
    migrate_by(&[FIRST, NEXT], &connection, "another").unwrap();
    assert_eq!(schema::version(&connection).unwrap(), 2);
    assert_eq!(schema::store_id(&connection).unwrap(), id);
    // Nothing is left to do for the next program; this one does not know the layout.
    migrate_by(&[FIRST, NEXT], &connection, "another").unwrap();
    let refused = Store::open(sample.dir.path(), options());
    assert!(
        matches!(refused, Err(OpenError::Newer { found: 2, known: 1 })),
        "{refused:?}"
    );
    connection
        .execute_batch("DROP TABLE moods; PRAGMA user_version = 1")
        .unwrap();
    drop(connection);
    assert_eq!(everything(&sample.database()), before);
    let store = open(sample.dir.path());
    assert_eq!(store.verify().await.unwrap().fault, None);
    assert!(store.session(session(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_database_as_it_was() {
    let sample = filled().await;
    let before = everything(&sample.database());
    let connection = sample.connection();
    let broken = format!("{NEXT} INSERT INTO nowhere VALUES (1);");
    migrate_by(&[FIRST, &broken], &connection, "").unwrap_err();
    assert_eq!(schema::version(&connection).unwrap(), 1);
    drop(connection);
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(open(sample.dir.path()).verify().await.unwrap().fault, None);
}

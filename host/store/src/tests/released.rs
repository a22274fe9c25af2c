//! Data folders of every version that the layout has had open, and hold what they held.
//!
//! `released/<version>.db.gz` is a database that a program of that layout wrote when it was told
//! `released/story.json`, as far as it knew what is in it; 2 and 3 are what the migrations made of
//! 1, because no program ever stopped there. `released/<version>.json` notes how many events it
//! has, their last hash, and the digest of all that follows from them. `AGENT_HOST_ACCEPT=1` makes
//! the file of the newest layout if there is none, and notes what follows from the events anew; it
//! never changes a file, a count or a hash.

use super::projections::everything;
use super::sample::{NOON, commit, noise, open, run};
use crate::sql::{Columns, Connection};
use crate::{Commit, Expected, Store, schema};
use domain::digest::{Digest, Salt};
use domain::event::{AgentCreated, Event, NewEvent, Subject, kinds};
use domain::id::{EventId, Stream};
use domain::path::AgentPath;
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
    let mut told = 0_u8;
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
            told += 1;
            events.push(NewEvent {
                id: EventId(Uuid::from_u128(u128::from(told))),
                event: serde_json::from_value::<Event>(event)
                    .unwrap_or_else(|error| panic!("{kind}: {error}")),
                subject: Subject::default(),
                actor: "user:ada".to_owned(),
                causation: None,
                correlation: None,
                time: NOON.plus_ms(u64::from(told)),
                salt: Salt([told; 16]),
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
    let told: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        told,
        kinds().iter().copied().collect::<BTreeSet<_>>(),
        "tell it in `released/story.json`"
    );
    assert_eq!(store.verify().await.unwrap().fault, None);
}

/// Makes the file of the newest layout.
async fn make(file: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    tell(&store).await;
    store.close().await;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed
        .write_all(&fs::read(dir.path().join("store.db")).unwrap())
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
    let id: String = connection
        .query_row(
            "SELECT value FROM meta WHERE name = 'store_id'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    fs::write(dir.path().join("store-id"), id).unwrap();
    dir
}

#[tokio::test]
async fn data_folders_of_every_version_open_and_fold_to_the_same() {
    let newest = folder().join(format!("{:04}.db.gz", schema::newest()));
    if accepts() && !newest.exists() {
        make(&newest).await;
    }
    assert!(
        newest.exists(),
        "no data folder of the newest layout is kept: run the tests with AGENT_HOST_ACCEPT=1"
    );
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

        let store = open(dir.path());
        let verified = store.verify().await.unwrap();
        assert_eq!(verified.fault, None, "{version}");
        let projections = Digest::of(everything(&database).join("\n").as_bytes());
        let found = json!({ "events": verified.events, "turns": verified.turns, "head": verified.head, "projections": projections });
        let note = file.with_file_name(format!("{version:04}.json"));
        let noted = fs::read(&note)
            .ok()
            .map_or(Value::Null, |noted| serde_json::from_slice(&noted).unwrap());
        for name in ["events", "turns", "head"] {
            assert!(
                noted.is_null() || noted[name] == found[name],
                "{version}: {name} were {} and are {}",
                noted[name],
                found[name]
            );
        }
        if accepts() {
            fs::write(&note, format!("{found}\n")).unwrap();
        } else {
            assert_eq!(
                noted, found,
                "{version}: what follows from the events has changed. Where that is meant: \
                 AGENT_HOST_ACCEPT=1"
            );
        }

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
        assert!(every.iter().all(|event| event.event.is_some()), "{version}");
        // It goes on from there.
        store
            .commit(commit(Stream::Run(run(1)), vec![noise(1)]))
            .await
            .unwrap();
        store.close().await;
        assert_eq!(
            open(dir.path()).verify().await.unwrap().events,
            verified.events + 1,
            "{version}"
        );
    }
}

/// Agents of stores from before paths had kinds are found by their paths, with the kinds that those
/// say.
#[tokio::test]
async fn agents_from_before_kinds_are_found_by_their_paths_with_a_kind_and_a_parent() {
    let mut without_kind = 0;
    for version in 1..=schema::newest() {
        let dir = unpacked(&folder().join(format!("{version:04}.db.gz")));
        let store = open(dir.path());
        let events = store
            .events(0, crate::EventFilter::default(), 1_000)
            .await
            .unwrap();
        let created: Vec<AgentCreated> = events
            .into_iter()
            .filter_map(|recorded| match recorded.event {
                Some(Event::AgentCreated(created)) => Some(created),
                _ => None,
            })
            .collect();
        assert!(!created.is_empty(), "{version}");
        for created in created {
            without_kind += usize::from(created.kind.is_none());
            let Ok(path) = created.path.parse::<AgentPath>() else {
                continue;
            };
            // None for one that the story purged.
            let Some(row) = store.agent(created.agent).await.unwrap() else {
                continue;
            };
            assert_eq!(
                (row.kind, row.parent),
                (path.kind(), created.parent),
                "{version}: {path}"
            );
            if row.active {
                let there = store.agent_at(&created.path).await.unwrap();
                assert_eq!(
                    there.map(|there| there.agent.id),
                    Some(created.agent),
                    "{version}: {path}"
                );
            }
        }
        store.close().await;
    }
    assert!(without_kind > 0, "some are from before kinds were stored");
}

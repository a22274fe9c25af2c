//! Purges of buckets that hold much.

use super::super::buckets::{place, written};
use super::super::sample::{
    Sample, agent, commit, created, opened, run, run_started, session, take_turn,
};
use super::items::{agent_begun, agent_purged};
use super::{MARK, begun, deleted, erase_all, finished, is_nowhere, is_sound, purged};
use crate::sql::{Columns, Connection};
use crate::{PurgeItem, Store};
use domain::event::Event;
use domain::grant::{BucketPlace, BucketScope};
use domain::id::Stream;

/// Bytes that one transaction may erase before it takes no further value, and no further event.
pub(super) const BYTES_MAX: u64 = 16 << 20;
/// Bytes of a large value.
pub(super) const LARGE_BYTES: usize = 9 << 20;

/// A write of so many keys.
fn many(place: &BucketPlace, keys: usize) -> Event {
    let keys: Vec<String> = (0..keys).map(|n| format!("key {n}")).collect();
    let entries: Vec<(&str, Option<&[u8]>)> = keys
        .iter()
        .map(|key| (key.as_str(), Some(&b"v"[..])))
        .collect();
    written(place, &entries)
}

/// Writes of three values of which two fill a transaction.
fn large(place: &BucketPlace) -> [Event; 3] {
    let value = vec![b'v'; LARGE_BYTES];
    ["a", "b", "c"].map(|key| written(place, &[(key, Some(value.as_slice()))]))
}

/// Fills buckets of one owner in a run of agent 1 that begins with some events; how many keys they
/// have.
async fn fill(store: &Store, begins: Vec<Event>, scope: BucketScope, of: &str) -> u64 {
    let [shelf, chest, tin] = ["shelf", "chest", "tin"].map(|name| place(name, scope, of));
    let mut events = begins;
    events.extend([many(&shelf, 600), many(&tin, 1)]);
    events.extend(large(&chest));
    let mut all = commit(Stream::Run(run(1)), events);
    for new in all.appends.iter_mut().flat_map(|append| &mut append.events) {
        new.subject.agent = Some(agent(1));
    }
    store.commit(all).await.unwrap();
    604
}

/// Keys, and bytes of the values, that all buckets hold.
fn leased(sample: &Sample) -> (u64, u64) {
    Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT count(*), coalesce(sum(length(value)), 0) FROM bucket_entries",
            [],
            |row| Ok((row.uint(0)?, row.uint(1)?)),
        )
        .unwrap()
}

/// Bytes of the payloads of all events, and of the longest of them.
pub(super) fn payloads(sample: &Sample) -> (u64, u64) {
    Connection::open(sample.database())
        .unwrap()
        .query_row(
            "SELECT ifnull(sum(bytes), 0), ifnull(max(bytes), 0) FROM events",
            [],
            |row| Ok((row.uint(0)?, row.uint(1)?)),
        )
        .unwrap()
}

/// Erases a chunk to its end, and asserts that no transaction deletes more than it may.
pub(super) async fn erase_a_few_at_a_time(sample: &Sample, purge: Stream, item: PurgeItem) {
    let mut before = leased(sample);
    let mut after = Some(0);
    while let Some(from) = after {
        let (stored, longest) = payloads(sample);
        let erased = sample.erase(purge, item.clone(), from).await;
        after = erased.unwrap();
        let written = stored - payloads(sample).0;
        assert!(
            written < BYTES_MAX + longest,
            "{written} bytes of payloads in one transaction"
        );
        let now = leased(sample);
        let keys = before.0 - now.0;
        let bytes = before.1 - now.1;
        assert!(keys <= 256, "{keys} keys in one transaction");
        assert!(
            bytes < BYTES_MAX + LARGE_BYTES as u64,
            "{bytes} bytes in one transaction"
        );
        before = now;
    }
}

#[tokio::test]
async fn the_buckets_of_a_session_are_emptied_a_few_keys_at_a_time() {
    let sample = Sample::begun().await;
    let begins = vec![run_started(run(1), 1, None, Vec::new())];
    let owner = session(1).to_string();
    let keys = fill(&sample.store, begins, BucketScope::Session, &owner).await;
    let stream = Stream::Session(session(1));
    sample.append(stream, [deleted(1)]).await;
    begun(&sample.store, 1).await;
    let plan = sample.purge_plan(agent(1), session(1)).await.unwrap();
    for item in plan.items {
        erase_a_few_at_a_time(&sample, stream, item).await;
    }
    assert_eq!(leased(&sample), (0, 0));
    let tally = finished(&sample.store, 1).await;
    assert_eq!(tally.erased.bucket_keys, keys);
    is_sound(&sample).await;
}

#[tokio::test]
async fn the_buckets_of_an_agent_are_emptied_a_few_keys_at_a_time() {
    let sample = Sample::new();
    let stream = Stream::Agent(agent(1));
    sample
        .append(stream, [created(1, "/ada/assistant", None)])
        .await;
    let owner = agent(1).to_string();
    let keys = fill(&sample.store, Vec::new(), BucketScope::Agent, &owner).await;
    sample.append(stream, [agent_begun()]).await;
    erase_a_few_at_a_time(&sample, stream, PurgeItem::AgentBuckets(agent(1))).await;
    assert_eq!(leased(&sample), (0, 0));
    let tally = sample.purge_tally(stream).await.unwrap();
    assert_eq!(tally.erased.bucket_keys, keys);
    erase_all(&sample.store, stream, PurgeItem::Agent(agent(1))).await;
    sample.append(stream, [agent_purged()]).await;
    is_sound(&sample).await;
}

#[tokio::test]
async fn what_a_tool_keeps_for_a_session_stays_when_its_turn_goes_with_a_fork() {
    let sample = Sample::begun().await;
    let [origin, fork] = [2, 3].map(|n| Stream::Session(session(n)));
    sample.append(origin, [opened(2, 1, None)]).await;
    let turn = take_turn(&sample.store, 2, None, 100, "a word", "and a reply").await;
    let own = place("shelf", BucketScope::Session, &session(2).to_string());
    let write = written(&own, &[("key", Some(MARK.as_bytes()))]);
    let mut write = commit(Stream::Run(run(100)), [write]);
    for new in write
        .appends
        .iter_mut()
        .flat_map(|append| &mut append.events)
    {
        new.subject.session = Some(session(2));
    }
    sample.commit(write).await.unwrap();
    sample.append(fork, [opened(3, 1, Some(turn.id))]).await;
    sample.append(origin, [deleted(2)]).await;
    let tally = purged(&sample, 3).await;
    assert_eq!(
        (
            tally.erased.turns,
            tally.erased.bucket_keys,
            tally.kept.bucket_writes
        ),
        (1, 0, 1)
    );
    let kept = sample.bucket_value(&own, "key").await.unwrap();
    assert_eq!(kept.as_deref(), Some(MARK.as_bytes()));
    is_sound(&sample).await;
    begun(&sample.store, 2).await;
    let tally = finished(&sample.store, 2).await;
    assert_eq!((tally.erased.bucket_keys, tally.kept.bucket_writes), (1, 0));
    is_nowhere(&sample);
    is_sound(&sample).await;
}

//! Purging: nothing of what was said is left in any file, what others point to stays, and what is
//! left is what the events say.

mod buckets;
mod inputs;
mod items;
mod long;
mod outside;
mod runs;
mod unknown_senders;

use super::buckets::{place, written};
use super::commits::key;
use super::opening::{DIR, in_another_process};
use super::projections::everything;
use super::recalling::note;
use super::sample::{
    NOON, Sample, accepted, ada, agent, begin, commit, message, open, opened, run, run_started,
    session, take_turn, turn_after,
};
use crate::purge::EVENTS_PER_COMMIT_MAX;
use crate::{CRASH_POINTS, PurgeItem, RebuildError, Rewritten, Store, Tally};
use domain::digest::Digest;
use domain::event::{
    Event, ImportedTurn, PurgeBegun, Purged, Remains, ResponseReceived, SessionDeleted,
    SessionRenamed, SlotCompleted, SlotTaken, Source, TurnsImported,
};
use domain::grant::BucketScope;
use domain::id::{ConversationId, OperationId, Stream};
use domain::message::Role;
use domain::operation::Kept;
use domain::turn::TurnNode;
use domain::user::UserId;
use std::fs;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// A word that is said nowhere but in what is purged.
const MARK: &str = "xylophonist";
/// An answer of a client that is too long for an event.
const ANSWER: &[u8] = b"\"of the xylophonist\"";

fn deleted(n: u128) -> Event {
    Event::SessionDeleted(SessionDeleted {
        session: session(n),
        deleted_by: ada(),
        time: NOON,
    })
}

async fn begun(store: &Store, n: u128) {
    let row = store.session(session(n)).await.unwrap().unwrap();
    let remains = Remains::Session {
        session: session(n),
        session_type: row.session_type,
        conversation: ConversationId(Uuid::nil()),
        started_by: row.started_by,
        user_id: row.user_id,
        head: row.head,
        created_at: row.created_at,
    };
    let begun = Event::PurgeBegun(PurgeBegun {
        agent: agent(1),
        remains,
        begun_by: UserId::local(),
        time: NOON,
    });
    store
        .commit(commit(Stream::Session(session(n)), [begun]))
        .await
        .unwrap();
}

/// So many events about session 1 in its agent's stream, as of a structured one. One of the first
/// names the answer.
fn of_slot(events: usize) -> Vec<Event> {
    let answered = Event::ResponseReceived(ResponseReceived {
        agent: agent(1),
        session_id: session(1),
        tool_call_id: OperationId::mint(run(1), 0, "asked"),
        response_data: Kept::Blob(Digest::of(ANSWER)),
        received_at: NOON,
    });
    let taken = Event::SlotTaken(SlotTaken {
        agent: agent(1),
        session_id: session(1),
        conversation_id: ConversationId(Uuid::nil()),
        session_type: "lesson".to_owned(),
        started_by: ada(),
        started_at: NOON,
        expires_at: None,
        items_imported: 0,
    });
    let completed = Event::SlotCompleted(SlotCompleted {
        agent: agent(1),
        session_id: session(1),
        summary: MARK.into(),
        completed_at: NOON,
    });
    let mut all = vec![answered];
    all.resize(events - 1, taken);
    all.push(completed);
    all
}

/// Erases a chunk of a purge to its end; in how many transactions.
pub(super) async fn erase_all(store: &Store, purge: Stream, item: PurgeItem) -> usize {
    let mut transactions = 0;
    let mut after = Some(0);
    while let Some(from) = after {
        after = store.erase(purge, item.clone(), from).await.unwrap();
        transactions += 1;
    }
    transactions
}

/// Brings a purge that was begun to its end.
async fn finished(store: &Store, n: u128) -> Tally {
    let _purging = store.begin_purging().unwrap();
    let stream = Stream::Session(session(n));
    let plan = store.purge_plan(agent(1), session(n)).await.unwrap();
    for place in plan.places {
        let stream = Stream::Session(place.session);
        store
            .commit(commit(stream, [Event::TurnsImported(place)]))
            .await
            .unwrap();
    }
    for item in plan.items {
        erase_all(store, stream, item).await;
    }
    let mut tally = store.purge_tally(stream).await.unwrap();
    tally.kept.turns += plan.kept_turns;
    let erased = tally.erased;
    let kept = tally.kept;
    let done = Purged {
        agent: agent(1),
        session: Some(session(n)),
        purged_by: UserId::local(),
        erased,
        kept,
        usage: tally.usage.clone(),
        time: NOON,
    };
    store
        .commit(commit(stream, [Event::Purged(done)]))
        .await
        .unwrap();
    assert_eq!(store.rewrite_erased().await.unwrap(), Rewritten::Yes);
    tally
}

pub(super) async fn purged(sample: &Sample, n: u128) -> Tally {
    sample.in_session(n, [deleted(n)]).await;
    begun(&sample.store, n).await;
    finished(&sample.store, n).await
}

/// In which files of a folder something stands.
fn holders(folder: &Path, mark: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        if bytes
            .windows(mark.len())
            .any(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
        {
            found.push(entry.path());
        }
    }
    found
}

/// Checks that the mark stands in no file of the store.
fn is_nowhere(sample: &Sample) {
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
}

/// A session full of the mark, beside another one.
async fn filled(sample: &Sample) -> Vec<TurnNode> {
    begin(sample).await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    take_turn(&sample.store, 2, None, 100, "a word to stay", "and a reply").await;
    let named = Event::SessionRenamed(SessionRenamed {
        session: session(1),
        name: Some(format!("the {MARK}")),
        time: NOON,
    });
    let mut asked = commit(Stream::Session(session(1)), [named]);
    asked.key = Some(crate::Key {
        about: Some(session(1)),
        ..key("k", b"r", format!("the {MARK}").as_bytes())
    });
    sample.commit(asked).await.unwrap();
    let mut turns: Vec<TurnNode> = Vec::new();
    for n in 1..=5 {
        turns.push(
            take_turn(
                &sample.store,
                1,
                turns.last(),
                n,
                &format!("{MARK} {n}"),
                &format!("answers the {MARK}"),
            )
            .await,
        );
    }
    let own = place("shelf", BucketScope::Session, &session(1).to_string());
    let others = place("shelf", BucketScope::Agent, "a");
    let writes = vec![
        run_started(run(50), 1, None, Vec::new()),
        written(&own, &[(MARK, Some(b"v"))]),
        written(&others, &[("kept", Some(b"v"))]),
    ];
    sample.in_run(50, writes).await;
    sample
        .in_agent(1, [note(1, &format!("likes the {MARK}"))])
        .await;
    let input = commit(
        Stream::Session(session(1)),
        [accepted(60, 1, Source::Api, MARK)],
    );
    sample
        .commit(input.blob(format!("no event names this {MARK}").into_bytes()))
        .await
        .unwrap();
    turns
}

/// Asserts that the remaining data is what the events say.
async fn is_sound(sample: &Sample) {
    let found = sample.verify().await.unwrap();
    assert_eq!(found.fault, None);
    let before = everything(&sample.database());
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        (rebuilt.replaced, rebuilt.index_replaced),
        (Vec::new(), false)
    );
    assert_eq!(everything(&sample.database()), before);
}

#[tokio::test]
async fn what_is_purged_is_in_no_file_and_what_is_left_is_what_the_events_say() {
    let sample = Sample::new();
    filled(&sample).await;
    assert!(!holders(sample.dir.path(), MARK).is_empty());
    let tally = purged(&sample, 1).await;
    is_nowhere(&sample);
    assert_eq!(
        (
            tally.erased.turns,
            tally.erased.messages,
            tally.erased.blobs,
            tally.erased.requests
        ),
        (5, 10, 1, 1)
    );
    assert_eq!(
        (
            tally.erased.bucket_keys,
            tally.kept.bucket_writes,
            tally.kept.turns
        ),
        (1, 1, 0)
    );
    let verified = sample.verify().await.unwrap();
    assert_eq!(
        (verified.erased, verified.fault.clone()),
        (tally.erased.events, None)
    );
    is_sound(&sample).await;
    assert!(sample.open_purges().await.unwrap().is_empty());
    let row = sample.session(1).await;
    assert!(row.purged && row.name.is_none() && row.last_snippet.is_none());
    assert_eq!(sample.recall(1, MARK, 10).await, []);
    assert_eq!(sample.recall(1, "stay", 10).await.len(), 1);
    assert_eq!(
        sample
            .bucket_value(&place("shelf", BucketScope::Agent, "a"), "kept")
            .await
            .unwrap()
            .as_deref(),
        Some(&b"v"[..])
    );
    // Neither does what is made of it later.
    let copy = sample.dir.path().join("copy.sqlite");
    sample.backup(&copy).await.unwrap();
    is_nowhere(&sample);
    let sample = sample.reopen().await;
    is_sound(&sample).await;
}

#[tokio::test]
async fn what_the_thread_of_another_session_has_stays_until_that_is_purged_too() {
    let sample = Sample::new();
    let turns = filled(&sample).await;
    sample
        .in_session(3, [opened(3, 1, Some(turns[2].id))])
        .await;
    let own = take_turn(
        &sample.store,
        3,
        Some(&turns[2]),
        300,
        "and then?",
        "nothing",
    )
    .await;
    let tally = purged(&sample, 1).await;
    assert_eq!((tally.erased.turns, tally.kept.turns), (2, 3));
    let left = sample.messages(Some(own.id), 1, 100).await.unwrap();
    assert_eq!(left.len(), 8);
    assert!(left[0].text().contains(MARK));
    is_sound(&sample).await;
    // Those that were only its own are gone.
    assert_eq!(sample.messages(Some(turns[4].id), 7, 10).await.unwrap(), []);
    let tally = purged(&sample, 3).await;
    assert_eq!(
        (tally.erased.turns, tally.kept.turns),
        (4, 0),
        "its own, and those that it pointed to"
    );
    is_nowhere(&sample);
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_deleted_fork_shows_nothing_of_turns_that_are_purged_with_another_session() {
    let sample = Sample::new();
    let turns = filled(&sample).await;
    let fork = Stream::Session(session(3));
    sample
        .append(fork, [opened(3, 1, Some(turns[2].id)), deleted(3)])
        .await;
    let snippet = async || {
        let row = sample.store.session(session(3)).await.unwrap();
        row.unwrap().last_snippet
    };
    assert_eq!(snippet().await.as_deref(), Some("answers the xylophonist"));
    purged(&sample, 1).await;
    assert_eq!(snippet().await, None);
    is_nowhere(&sample);
    is_sound(&sample).await;
}

#[tokio::test]
async fn imported_turns_keep_their_places_when_what_was_said_in_them_is_purged() {
    let sample = Sample::new();
    filled(&sample).await;
    let said = [
        message(1, Role::User, MARK),
        message(2, Role::Assistant, "imported"),
    ];
    let node = turn_after(&sample.store, None, run(400), &said).await;
    let turn = ImportedTurn {
        turn: node.clone(),
        committed: NOON,
        messages: said.into_iter().map(Some).collect(),
    };
    let imported = TurnsImported {
        session: session(4),
        agent: agent(1),
        turns: vec![turn],
        erased: None,
        time: NOON,
    };
    sample
        .in_session(
            4,
            [Event::TurnsImported(imported), opened(4, 1, Some(node.id))],
        )
        .await;
    let on_top = take_turn(&sample.store, 4, Some(&node), 401, "go on", MARK).await;
    let before = sample.verify().await.unwrap().turns;
    purged(&sample, 1).await;
    assert!(!holders(sample.dir.path(), MARK).is_empty());
    purged(&sample, 4).await;
    is_nowhere(&sample);
    assert_eq!(sample.turn(node.id).await.unwrap(), Some(node));
    assert_eq!(sample.turn(on_top.id).await.unwrap(), Some(on_top));
    is_sound(&sample).await;
    assert_eq!(
        sample.verify().await.unwrap().turns + 1,
        before,
        "the one that was imported is not there to be counted"
    );
}

#[tokio::test]
async fn nothing_is_folded_again_while_something_is_purged_and_the_other_way_round() {
    let sample = Sample::new();
    filled(&sample).await;
    let purging = sample.begin_purging().unwrap();
    assert!(sample.begin_purging().is_none());
    assert!(matches!(sample.rebuild().await, Err(RebuildError::Purging)));
    drop(purging);
    let rebuilding = sample.begin_rebuild().unwrap();
    assert!(sample.begin_purging().is_none());
    rebuilding.await.unwrap().unwrap();
    assert!(sample.begin_purging().is_some());
}

#[tokio::test]
async fn a_blob_that_nobody_names_goes_and_the_empty_state_stays() {
    let sample = Sample::begun().await;
    let purge = Stream::Session(session(1));
    let stray = commit(Stream::Run(run(9)), [super::sample::noise(1)]).blob(b"stray".to_vec());
    sample.commit(stray).await.unwrap();
    assert_eq!(erase_all(&sample.store, purge, PurgeItem::Blobs).await, 1);
    assert_eq!(sample.blob(Digest::of(b"stray")).await.unwrap(), None);
    assert!(
        sample
            .blob(Digest::of(crate::EMPTY_STATE))
            .await
            .unwrap()
            .is_some()
    );
}

/// Purges until it dies.
#[tokio::test]
async fn purges_until_it_dies() {
    let Ok(dir) = std::env::var(DIR) else { return };
    finished(&open(&PathBuf::from(dir).join("data")), 1).await;
}

#[tokio::test]
async fn a_purge_that_dies_anywhere_is_open_and_comes_to_its_end_later() {
    let first = CRASH_POINTS
        .iter()
        .filter(|point| point.starts_with("store.purge."))
        .map(|point| (*point).to_owned());
    for point in first.chain(
        [
            "store.purge.unsaved:4",
            "store.purge.erased:6",
            "store.purge.erased:7",
            "store.purge.erased:9",
            "store.purge.erased:10",
            "store.purge.erased:11",
            "store.purge.erased:12",
        ]
        .map(str::to_owned),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let sample = Sample::new();
        filled(&sample).await;
        // With the note as many as one transaction erases, so that the one after it finds none.
        let slot = of_slot(EVENTS_PER_COMMIT_MAX - 1);
        let slot = commit(Stream::Agent(agent(1)), slot).blob(ANSWER.to_vec());
        sample.commit(slot).await.unwrap();
        sample.in_session(1, [deleted(1)]).await;
        begun(&sample.store, 1).await;
        sample.close().await;
        fs::rename(sample.dir.path(), &data).unwrap();
        let died = in_another_process("tests::purging::purges_until_it_dies", dir.path(), &point);
        assert!(!died.status.success(), "{point} was never passed");
        let store = open(&data);
        assert_eq!(store.verify().await.unwrap().fault, None, "{point}");
        if point == "store.purge.rewritten" {
            assert_eq!(store.rewrite_erased().await.unwrap(), Rewritten::Yes);
        } else {
            assert_eq!(
                store.open_purges().await.unwrap(),
                [Stream::Session(session(1))],
                "{point}"
            );
            let tally = finished(&store, 1).await;
            assert_eq!(
                (
                    tally.erased.turns,
                    tally.erased.messages,
                    tally.kept.bucket_writes
                ),
                (5, 10, 1),
                "{point}"
            );
        }
        assert_eq!(holders(&data, MARK), Vec::<PathBuf>::new(), "{point}");
        assert_eq!(store.verify().await.unwrap().fault, None, "{point}");
        assert_eq!(store.rebuild().await.unwrap().replaced, [], "{point}");
    }
}

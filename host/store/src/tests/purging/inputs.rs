//! Purges of inputs with the runs that took them in, and of work handed over by runs that are gone.

use super::super::blobs::part;
use super::super::sample::{
    NOON, Sample, accepted, agent, commit, created, dead, input, opened, requeued, run, run_ended,
    run_started, session,
};
use super::super::spawned::{dispatch, spawn};
use super::{deleted, erase_all, is_sound, purged};
use crate::PurgeItem;
use crate::sql::{Columns, Connection};
use domain::digest::Digest;
use domain::event::{Event, InputAccepted, SessionOpened, Source};
use domain::id::{OperationId, RunId, Stream, TurnId};
use domain::operation::ReplyTo;

fn handed_over_by(run: RunId) -> Source {
    dispatch(Some(ReplyTo {
        run,
        operation: OperationId::mint(run, 0, "a"),
        attached: true,
    }))
}

/// Column 0 of a row.
fn one(sample: &Sample, text: &str) -> Option<String> {
    Connection::open(sample.database())
        .unwrap()
        .query_row(text, [], |row| row.get(0))
        .unwrap()
}

/// The purge that runs and their inputs go with.
fn purge() -> Stream {
    Stream::Session(session(9))
}

/// Erases a run as a purge does.
async fn erase(sample: &Sample, gone: RunId) {
    let item = PurgeItem::Run {
        run: gone,
        committed: None,
    };
    erase_all(&sample.store, purge(), item).await;
}

#[tokio::test]
async fn work_of_a_run_that_is_purged_counts_against_whoever_does_it() {
    let sample = Sample::begun().await;
    sample.begin_run(1, 1, []).await;
    spawn(&sample, 3, 1, "/ada/1/sub/0", "ada").await;
    spawn(&sample, 4, 1, "/bob/other", "bob").await;
    let trees =
        "SELECT group_concat(lower(hex(tree))) FROM (SELECT tree FROM inputs ORDER BY position)";
    let tree_of = |n| agent(n).0.simple().to_string();
    assert_eq!(
        one(&sample, trees),
        Some([tree_of(1), tree_of(1)].join(","))
    );
    purged(&sample, 1).await;
    // The one that belongs to nobody else is the top of its own tree.
    assert_eq!(
        one(&sample, trees),
        Some([tree_of(1), tree_of(4)].join(","))
    );
    assert_eq!(
        one(&sample, "SELECT group_concat(session) FROM spawned"),
        None
    );
    is_sound(&sample).await;
}

/// The end of a run of session 2.
fn ended(n: u128) -> Event {
    run_ended(run(n), 2, TurnId(Digest([0; 32])))
}

/// Makes a session that an agent opened, with work of two runs of other sessions. It has taken in
/// the work of the first.
async fn handed_two() -> Sample {
    let sample = Sample::begun().await;
    for n in [1, 3] {
        if n > 1 {
            sample.in_session(n, [opened(n, 1, None)]).await;
        }
        sample.begin_run(n, n, []).await;
    }
    sample.in_agent(2, [created(2, "/ada/2", None)]).await;
    let Event::SessionOpened(begun) = opened(2, 2, None) else {
        panic!("a session")
    };
    let begun = Event::SessionOpened(SessionOpened {
        started_by: "agent:/ada".to_owned(),
        ..begun
    });
    let work = [(60, 1), (61, 3)].map(|(n, by)| accepted(n, 2, handed_over_by(run(by)), "work"));
    sample
        .in_session(2, [vec![begun], work.to_vec()].concat())
        .await;
    sample
        .in_run(
            70,
            [run_started(run(70), 2, None, vec![input(60)]), ended(70)],
        )
        .await;
    sample
}

#[tokio::test]
async fn the_first_input_of_a_session_is_the_one_that_is_left() {
    let sample = handed_two().await;
    let begun_by = format!(
        "SELECT lower(hex(by_session)) FROM spawned WHERE session = x'{}'",
        session(2).0.simple()
    );
    let first = format!(
        "SELECT lower(hex(first_input)) FROM sessions WHERE id = x'{}'",
        session(2).0.simple()
    );
    assert_eq!(
        (one(&sample, &begun_by), one(&sample, &first)),
        (
            Some(session(1).0.simple().to_string()),
            Some(input(60).0.simple().to_string())
        )
    );
    sample.in_session(2, [deleted(2)]).await;
    erase(&sample, run(70)).await;
    assert_eq!(
        (one(&sample, &begun_by), one(&sample, &first)),
        (
            Some(session(3).0.simple().to_string()),
            Some(input(61).0.simple().to_string())
        )
    );
    is_sound(&sample).await;
}

#[tokio::test]
async fn an_input_that_goes_with_its_run_wakes_nobody_any_more() {
    let sample = handed_two().await;
    let reminder = Source::Reminder {
        due: NOON.plus_ms(9),
        depth: 0,
        spawn_depth: 0,
        hops: 0,
        denies: Default::default(),
        permissions: Default::default(),
        accounts: Default::default(),
        deadline: None,
    };
    let stream = Stream::Session(session(2));
    sample
        .append(stream, [accepted(62, 2, reminder, "soon")])
        .await;
    sample
        .in_run(
            71,
            [run_started(run(71), 2, None, vec![input(62)]), ended(71)],
        )
        .await;
    let dead = dead(62, 2, "no");
    let again = requeued(62, 2, None);
    sample.append(stream, [dead, again, deleted(2)]).await;
    let wakes = "SELECT group_concat(kind) FROM wakes";
    assert_eq!(one(&sample, wakes).as_deref(), Some("reminder"));
    erase(&sample, run(71)).await;
    assert_eq!(one(&sample, wakes), None);
    is_sound(&sample).await;
}

/// An input of session 1 that names some content.
pub(super) fn naming(n: u128, contents: &[&[u8]]) -> Event {
    let mut event = accepted(n, 1, Source::Api, "see here");
    if let Event::InputAccepted(InputAccepted {
        message: Some(draft),
        ..
    }) = &mut event
    {
        draft
            .parts
            .extend(contents.iter().map(|content| part(content)));
    }
    event
}

#[tokio::test]
async fn a_blob_goes_with_the_last_input_that_names_it() {
    let sample = Sample::begun().await;
    let stream = Stream::Session(session(1));
    let inputs = vec![naming(1, &[b"own", b"shared"]), naming(2, &[b"shared"])];
    let commit = commit(stream, inputs)
        .blob(b"own".to_vec())
        .blob(b"shared".to_vec());
    sample.commit(commit).await.unwrap();
    for n in [1, 2] {
        let turn = TurnId(Digest([0; 32]));
        let events = vec![
            run_started(run(n), 1, None, vec![input(n)]),
            run_ended(run(n), 1, turn),
        ];
        sample.in_run(n, events).await;
    }
    sample.append(stream, [deleted(1)]).await;
    for (n, own, shared) in [(1, None, Some(&b"shared"[..])), (2, None, None)] {
        erase(&sample, run(n)).await;
        erase_all(&sample.store, purge(), PurgeItem::Streams).await;
        is_sound(&sample).await;
        assert_eq!(erase_all(&sample.store, purge(), PurgeItem::Blobs).await, 1);
        for (content, left) in [(&b"own"[..], own), (&b"shared"[..], shared)] {
            let found = sample.blob(Digest::of(content)).await.unwrap();
            assert_eq!(found.as_deref(), left, "after {n}");
        }
    }
}

//! Tests of the references to blobs: those that a thread shows, and those that nothing names.

use super::sample::{
    NOON, Sample, commit, expecting, message, new, noise, opened, run, run_ended, run_started,
    session, step, turn_after, turn_committed,
};
use crate::projections::blobs_named;
use crate::{EMPTY_STATE, Expected, Store};
use domain::basis::ResolvedConfigDigests;
use domain::digest::Digest;
use domain::event::{Event, RunSettled};
use domain::id::{OperationId, Stream};
use domain::message::{Message, Part, Role};
use domain::operation::Settlement;
use domain::step::OperationOutcome;
use domain::turn::TurnNode;

/// A part of a message that names a blob.
pub(super) fn part(content: &[u8]) -> Part {
    Part::Blob {
        digest: Digest::of(content),
        media_type: "text/plain".to_owned(),
        size: content.len() as u64,
    }
}

/// A turn in which one message shows some content.
async fn showing(
    store: &Store,
    in_session: u128,
    parent: Option<&TurnNode>,
    n: u128,
    content: &[u8],
) -> TurnNode {
    let first = parent.map_or(1, |turn| turn.last_message + 1);
    let shown = Message {
        parts: vec![part(content)],
        ..message(first, Role::User, "")
    };
    let node = turn_after(store, parent, run(n), std::slice::from_ref(&shown)).await;
    let events = vec![
        run_started(run(n), in_session, parent, Vec::new()),
        step(run(n), vec![shown], Vec::new(), Vec::new()),
        run_ended(run(n), in_session, node.id),
    ];
    let end = expecting(Stream::Run(run(n)), Expected::New, events).blob(content.to_vec());
    let stream = Stream::Session(session(in_session));
    store
        .commit(end.append(
            stream,
            Expected::Any,
            vec![new(turn_committed(in_session, &node))],
        ))
        .await
        .unwrap();
    node
}

#[tokio::test]
async fn a_blob_is_mentioned_along_a_thread_and_not_beside_it() {
    let sample = Sample::begun().await;
    let mut turns = vec![showing(&sample.store, 1, None, 1, b"1").await];
    for n in 2..40_u128 {
        turns.push(showing(&sample.store, 1, turns.last(), n, n.to_string().as_bytes()).await);
    }
    sample
        .in_session(2, [opened(2, 1, Some(turns[9].id))])
        .await;
    let fork = showing(&sample.store, 2, Some(&turns[9]), 100, b"beside").await;
    let head = turns.last().unwrap();
    for (head, content, expected) in [
        (head, "1", true),
        (head, "20", true),
        (head, "39", true),
        (head, "beside", false),
        (head, "never", false),
        (&turns[9], "10", true),
        (&turns[9], "11", false),
        (&fork, "beside", true),
        (&fork, "10", true),
        (&fork, "11", false),
    ] {
        assert_eq!(
            sample
                .mentions(head.id, Digest::of(content.as_bytes()))
                .await
                .unwrap(),
            expected,
            "{content}"
        );
    }
}

#[tokio::test]
async fn a_blob_that_no_event_names_is_found_and_any_other_is_not() {
    let sample = Sample::begun().await;
    showing(&sample.store, 1, None, 1, b"shown").await;
    let outcome = OperationOutcome::Parts {
        parts: vec![part(b"result")],
    };
    let operation = OperationId::mint(run(2), 0, "t");
    let settled = vec![Settlement::new(operation, outcome, NOON)];
    let settled = Event::RunSettled(RunSettled {
        run: run(2),
        settled,
    });
    let stream = Stream::Run(run(2));
    sample
        .commit(
            commit(stream, [run_started(run(2), 1, None, Vec::new()), settled])
                .blob(b"result".to_vec()),
        )
        .await
        .unwrap();
    assert!(sample.unnamed_blobs(10).await.unwrap().is_empty());
    sample
        .commit(commit(stream, [noise(1)]).blob(b"stray".to_vec()))
        .await
        .unwrap();
    assert_eq!(
        sample.unnamed_blobs(10).await.unwrap(),
        [Digest::of(b"stray")]
    );
    assert!(
        sample
            .blob(Digest::of(EMPTY_STATE))
            .await
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_start_names_all_that_its_agent_is_shown_and_its_skills() {
    let Event::RunStarted(mut started) = run_started(run(1), 1, None, Vec::new()) else {
        panic!("it is a start")
    };
    let digest = |of: &str| Digest::of(of.as_bytes());
    started.resolved_config = ResolvedConfigDigests {
        settings: digest("settings"),
        tools: digest("tools"),
        peers: digest("peers"),
        ceiling: digest("ceiling"),
        skills: Some(digest("skills")),
    };
    let named = blobs_named(&Event::RunStarted(started));
    for of in ["settings", "tools", "peers", "ceiling", "skills"] {
        assert!(named.contains(&(digest(of), false)), "{of}: {named:?}");
    }
}

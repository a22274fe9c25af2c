//! Texts that are too long for a conversation: outputs, answers and replies alike are kept as
//! blobs, and the agent can read them.

use agent_host_tests::{Setup, World};
use domain::digest::Digest;
use domain::id::RunId;
use serde_json::{Value, json};
use store::EventFilter;

/// Bytes that an event may take here at most: the longest has two edges of 4 KiB in its news and in
/// its outcome.
const EVENT_BYTES_MAX: usize = 40 << 10;

/// The longest payload of an event of a run.
async fn longest(world: &World, run: RunId) -> usize {
    let events = world
        .store()
        .events(
            0,
            EventFilter {
                run: Some(run),
                ..EventFilter::default()
            },
            1_000,
        )
        .await
        .unwrap();
    let lengths = events
        .iter()
        .filter_map(|recorded| recorded.event.as_ref())
        .map(|event| serde_json::to_vec(event).unwrap().len());
    lengths.max().unwrap()
}

async fn asked(steps: Value) -> (World, domain::id::SessionId, domain::id::OperationId) {
    let (world, session) = World::with_puppet().await;
    world.play_in(session, &steps).await;
    let (call, _) = world.question("puppet", session).await;
    (world, session, call)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_comes_to_the_agent_as_edges_and_a_blob_that_it_can_read() {
    let (world, session, call) =
        asked(json!([{ "start": [{ "key": "q", "client": "question" }] }])).await;
    let answer = json!({ "essay": format!("begin{}end", "x".repeat(1_000_000)) });
    world.answer("puppet", call, answer.clone()).await.unwrap();
    world.idle(session).await;
    let reported = world.last_reply(session).await;
    let whole = answer.to_string();
    assert!(
        reported.starts_with(r#"q parts {"essay":"begin"#),
        "{}",
        &reported[..100]
    );
    assert!(
        reported.len() < 10_000 && reported.ends_with(&format!("end\"}} ({} bytes)", whole.len())),
        "{}",
        reported.len()
    );
    let run = world.runs().await[0];
    assert!(longest(&world, run).await < EVENT_BYTES_MAX);
    assert_eq!(
        world
            .store()
            .blob(Digest::of(whole.as_bytes()))
            .await
            .unwrap(),
        Some(whole.into_bytes())
    );
    assert!(world.store().unnamed_blobs(10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_gets_a_long_answer_whole_also_after_a_restart() {
    let (world, session, call) =
        asked(json!([{ "start": [{ "key": "t", "tool": "asks_for_much" }] }])).await;
    world
        .answer("puppet", call, json!("x".repeat(500_000)))
        .await
        .unwrap();
    let world = world.restart(|_| ()).await;
    world.replies(session, "t parts 500002 bytes").await;
    assert!(longest(&world, world.runs().await[0]).await < EVENT_BYTES_MAX);
    assert!(world.store().unnamed_blobs(10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_reply_of_another_agent_comes_as_edges_and_a_blob() {
    let world = World::new(Setup::default()).await;
    let other =
        json!({ "steps": [{ "reply": format!("begin{}end", "x".repeat(35_000)) }] }).to_string();
    let reported = world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": other }] }]))
        .await
        .join("\n");
    assert!(
        reported.starts_with("d parts begin")
            && reported.ends_with("end (35008 bytes)")
            && reported.len() < 10_000,
        "{}",
        reported.len()
    );
    // Nobody waits for it: it comes as a message of its own, in the same turn if that goes on for
    // long enough, or in the next one.
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "d", "agent": "other", "text": other, "detached": true }] },
        { "reply": "gone on" },
    ]);
    world.play_in(session, &steps).await;
    world
        .until(session, |row| {
            row.head_message == 4 && row.open_run.is_none()
        })
        .await;
    let messages = world.messages(session).await;
    let late = messages
        .iter()
        .find(|message| message.text().starts_with("begin"))
        .unwrap();
    assert!(
        late.text().len() < 10_000 && late.parts.len() == 2,
        "{late:?}"
    );
    assert!(world.store().unnamed_blobs(10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_read_in_the_thread_that_shows_it_in_later_turns_too_and_nowhere_else() {
    let (world, session) = World::with_puppet().await;
    let steps = json!([
        { "start": [{ "key": "m", "model": "x" }] },
        { "start": [{ "key": "t", "call": 0 }] },
    ]);
    let asks = json!({ "steps": steps, "do": "call:long" }).to_string();
    world.turn("puppet", session, &asks).await;
    let read =
        json!({ "steps": [{ "read": Digest::of("x".repeat(100_000).as_bytes()).reference() }] })
            .to_string();
    for _ in 0..2 {
        assert_eq!(world.turn("puppet", session, &read).await, "100000 bytes");
    }
    let elsewhere = world.open("puppet").await;
    assert_eq!(world.turn("puppet", elsewhere, &read).await, "no blob");
}

//! Event streams of structured sessions, and answers that are half filled in.

use super::started;
use agent_host_tests::process::is_asking;
use serde_json::{Value, json};
use std::time::Duration;

/// An answer that is half filled in belongs to its question, and every open question is asked
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn half_filled_in_answers_belong_to_their_question_and_open_ones_are_asked_again() {
    let (_folder, host) = started(json!({})).await;
    let session = host.open_as("asks_two", "lesson").await;
    let agent = session.agent();
    let id = session.id();
    let seen = host.until(&session, is_asking).await;
    let mut late = host
        .follow(&format!("{agent}/stream?session={id}"), None)
        .await;
    let mut asked = late.until("client_action").await;
    asked.extend(late.until("client_action").await);
    let calls: Vec<&Value> = asked
        .iter()
        .filter(|it| it.event == "client_action")
        .map(|it| &it.data["tool_call_id"])
        .collect();
    let [first, second] = [
        &seen["pending_action"]["tool_call_id"],
        &seen["further_actions"][0]["tool_call_id"],
    ];
    assert_eq!(calls, [first, second]);
    assert_eq!(asked[1].data["session_id"], id);
    let other = json!({ "tool_call_id": first, "widget_partial_state": { "other": 1 } });
    let ui = json!({ "tool_call_id": second, "widget_partial_state": { "half": true } });
    host.put(&format!("{session}/ui-state"), &other).await;
    let saved = host.put(&format!("{session}/ui-state"), &ui).await;
    assert_eq!(
        (
            saved.status,
            &saved.body["ui_state"]["widget_partial_state"]
        ),
        (200, &json!({ "other": 1 })),
        "each has its own"
    );
    host.confirm(agent, first).await;
    let seen = host
        .until(&session, |seen| {
            seen["ui_state"]["active_widget"]["tool_call_id"] == *second
        })
        .await;
    assert_eq!(
        seen["ui_state"]["widget_partial_state"],
        json!({ "half": true })
    );
    host.confirm(agent, second).await;
    let ended = host.becomes(&session, "completed").await;
    assert_eq!(ended["ui_state"]["widget_partial_state"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_a_session_by_the_designs_names_and_asks_again_who_comes_back() {
    let (_folder, host) = started(json!({})).await;
    let session = host.open_as("asks", "lesson").await;
    let agent = session.agent();
    let id = session.id();
    let mut frames = host
        .follow(&format!("{agent}/stream?session={id}&after=0"), None)
        .await;
    let first: Vec<String> = frames
        .until("run_suspended")
        .await
        .into_iter()
        .map(|frame| frame.event)
        .collect();
    for name in [
        "connected",
        "run_started",
        "content_complete",
        "client_action",
        "state_change",
        "run_suspended",
    ] {
        assert!(
            first.iter().any(|event| event == name),
            "{name} is not among {first:?}"
        );
    }
    let seen = host.until(&session, is_asking).await;
    let call = seen["ui_state"]["active_widget"]["tool_call_id"].clone();
    // A client that comes later is asked again, once.
    let mut late = host
        .follow(&format!("{agent}/stream?session={id}"), None)
        .await;
    let welcome = late.until("client_action").await;
    assert_eq!(
        (welcome[0].event.as_str(), &welcome[0].data["status"]),
        ("connected", &json!("awaiting_client_action"))
    );
    assert_eq!(
        (
            &welcome[0].data["pending_action"]["tool_call_id"],
            &welcome[1].data["tool_call_id"]
        ),
        (&call, &call)
    );
    assert_eq!(welcome.len(), 2);
    host.respond(agent, &call, &json!({ "confirmed": true }))
        .await;
    let rest = late.until("stream_complete").await;
    for name in [
        "run_resumed",
        "state_change",
        "session_completed",
        "message_complete",
    ] {
        assert!(
            rest.iter().any(|frame| frame.event == name),
            "{name} is not among {rest:?}"
        );
    }
    let last = rest.iter().rev().find_map(|frame| frame.id).unwrap();
    let mut again = host
        .follow(&format!("{agent}/stream?session={id}"), Some(last))
        .await;
    let next = tokio::time::timeout(Duration::from_millis(300), async {
        (again.receive().await, again.receive().await)
    })
    .await;
    assert!(next.is_err(), "nothing but `connected` comes: {next:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_resumes_between_two_frames_of_one_event_gets_each_of_them_once() {
    let (_folder, host) = started(json!({})).await;
    let session = host.open_as("asks", "lesson").await;
    let agent = session.agent();
    let id = session.id();
    let seen = host.until(&session, is_asking).await;
    host.respond(
        agent,
        &seen["ui_state"]["active_widget"]["tool_call_id"].clone(),
        &json!({ "confirmed": true }),
    )
    .await;
    let after = async |after: &str| {
        let mut frames = host
            .follow(&format!("{agent}/stream?session={id}&after={after}"), None)
            .await;
        let reported = frames.until("stream_complete").await;
        let stored = reported
            .into_iter()
            .filter(|frame| !matches!(frame.event.as_str(), "connected" | "content_chunk"));
        stored.collect::<Vec<_>>()
    };
    let all = after("0").await;
    let ids: Vec<&str> = all
        .iter()
        .map(|frame| frame.resume.as_deref().expect("a stored frame has an id"))
        .collect();
    assert!(
        ids.iter().filter(|id| id.contains('.')).count() > 2,
        "no event comes in several frames: {ids:?}"
    );
    assert_eq!(
        ids.iter().collect::<std::collections::BTreeSet<_>>().len(),
        ids.len(),
        "{ids:?}"
    );
    for (place, id) in ids.iter().enumerate().take(ids.len() - 1) {
        assert_eq!(after(id).await, all[place + 1..], "after {id}");
    }
}

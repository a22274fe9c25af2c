//! Compaction when something comes in between: a message, a model that fails, a user who stops it,
//! death of the process.

use super::{FULL, long, stage, stage_that_dies};
use agent_host_tests::process::PATIENCE;
use domain::compaction::ATTEMPTS_MAX;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn words_that_arrive_while_a_thread_is_compacted_wait_and_lead_the_next_turn() {
    let stage = stage().await;
    let session = stage.host.open("assistant").await;
    stage.peer.slow_ms(500);
    stage
        .host
        .say(&session, &long(&format!("one {FULL}"), 6_000))
        .await;
    stage
        .host
        .until(&session, |seen| {
            seen["revision"] == 1 && !seen["run_id"].is_null()
        })
        .await;
    assert_eq!(
        stage.host.get(&session).await.body["run_status"],
        "compacting"
    );
    let meanwhile = stage.host.say(&session, "meanwhile").await;
    let seen = stage.turns(&session, 3).await;
    let reported: Vec<&str> = seen["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        reported[2..],
        ["summary 1", "meanwhile", "reply to meanwhile"],
        "{seen}"
    );
    let started = stage.host.story(&session, "run.started.v1").await;
    let claimed: Vec<usize> = started
        .iter()
        .map(|run| run["claimed"].as_array().unwrap().len())
        .collect();
    assert_eq!(
        (claimed, &started[2]["claimed"][0]),
        (vec![1, 0, 1], &json!(meanwhile.text("input_id")))
    );
    let shown = stage.peer.newest("chat")["messages"].to_string();
    assert!(
        shown.contains("summary 1") && !shown.contains("one fill"),
        "a turn that is too large to be kept is summarised: {shown}"
    );
    stage.over().await;
}

/// A compaction that fails is given up, and its session goes on with the whole thread.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_fails_is_given_up_and_the_session_keeps_its_whole_thread() {
    let stage = stage().await;
    stage.peer.fails("memory");
    let session = stage.host.open("assistant").await;
    stage
        .host
        .say(&session, &long(&format!("one {FULL}"), 6_000))
        .await;
    stage.turns(&session, 1).await;
    stage.host.say(&session, "two").await;
    let seen = stage.turns(&session, 2).await;
    assert_eq!(
        seen["messages"].as_array().unwrap().len(),
        4,
        "the thread is as it was: {seen}"
    );
    assert!(
        stage.peer.newest("chat")["messages"]
            .to_string()
            .contains("one fill")
    );
    let ended = stage.host.story(&session, "run.ended.v1").await;
    let failed: Vec<_> = ended
        .iter()
        .filter(|ended| ended["code"] == "compaction-failed")
        .collect();
    assert_eq!(failed.len(), ATTEMPTS_MAX, "{ended:?}");
    assert!(
        failed
            .iter()
            .all(|ended| ended["turn_id"].is_null() && ended["end"] == "failed"),
        "{failed:?}"
    );
    // A turn later it is tried again.
    stage.peer.recovers();
    stage.host.say(&session, &format!("three {FULL}")).await;
    let seen = stage.turns(&session, 4).await;
    assert!(
        seen["messages"].to_string().contains("\"host:compaction\""),
        "{seen}"
    );
    stage.over().await;
}

/// A compaction that is stopped leaves the thread as it was and is not begun again before the next
/// turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_compaction_leaves_the_thread_and_waits_for_the_next_turn() {
    let stage = stage().await;
    stage.peer.slow_ms(20_000);
    let session = stage.host.open("assistant").await;
    for words in ["cancel", "interrupt"] {
        let before = stage.host.get(&session).await.body["revision"]
            .as_u64()
            .unwrap();
        stage
            .host
            .say(&session, &long(&format!("{words} {FULL}"), 6_000))
            .await;
        stage
            .host
            .until(&session, |seen| {
                seen["revision"].as_u64() == Some(before + 1) && !seen["run_id"].is_null()
            })
            .await;
        if words == "cancel" {
            let cancelled = stage
                .host
                .post(&format!("{session}/cancel"), &json!({}))
                .await;
            assert_eq!(&cancelled.body["cancelled"], &json!(true), "{cancelled:?}");
            stage.turns(&session, before + 1).await;
        } else {
            let body = json!({ "content": "at once", "queue": { "mode": "interrupt" } });
            stage
                .host
                .post(&format!("{session}/messages"), &body)
                .gives(202)
                .await;
            stage.turns(&session, before + 2).await;
        }
    }
    let seen = stage.host.get(&session).await.body;
    assert!(!seen.to_string().contains("host:compaction"), "{seen}");
    let started = stage.host.story(&session, "run.started.v1").await;
    assert_eq!(
        started
            .iter()
            .filter(|run| !run["compacts"].is_null())
            .count(),
        2,
        "{started:?}"
    );
    assert!(
        stage.peer.newest("chat")["messages"]
            .to_string()
            .contains("cancel fill")
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_the_process_dies_in_is_made_once_and_nothing_is_lost() {
    // The second passage is the turn's end, the third the compaction's beginning, the fourth its
    // end; each asks one model.
    for point in [
        "broker.commit.after:2",
        "broker.commit.before:3",
        "broker.commit.after:3",
        "broker.perform.before:2",
        "broker.perform.after:2",
        "broker.commit.before:4",
        "broker.commit.after:4",
    ] {
        let mut stage = stage_that_dies(Some(point)).await;
        let session = stage.host.open("assistant").await;
        stage
            .host
            .say(&session, &long(&format!("one {FULL}"), 6_000))
            .await;
        assert!(
            stage.host.died(PATIENCE).await.is_some(),
            "{point} was never passed"
        );
        stage.host = stage.folder.serve().await;
        stage.host.say(&session, "two").await;
        let seen = stage.turns(&session, 3).await;
        let reported = seen["messages"].as_array().unwrap();
        let roles: Vec<&str> = reported
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(
            roles,
            ["user", "assistant", "notice", "user", "assistant"],
            "{point}: {seen}"
        );
        let shown = stage.peer.newest("chat")["messages"].to_string();
        assert!(
            shown.contains("summary") && !shown.contains("one fill"),
            "{point}: {shown}"
        );
        stage.over().await;
    }
}

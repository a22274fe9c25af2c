//! Cuts during a turn: a turn whose tool results outgrow its model's window goes on to its reply.
//!
//! Compaction when something comes in between: a message, a model that fails, a user who stops it,
//! death of the process.

use super::peer::{Peer, texts};
use super::{FULL, Stage, config, long, stage, stage_that_dies, started};
use agent_host_tests::process::{Folder, Frame, PATIENCE};
use domain::compaction::ATTEMPTS_MAX;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Tokens that the model of the conversation holds here.
const READER_WINDOW: usize = 32_000;
/// Number of results.
const READS: u32 = 40;
/// The beginning of a whole result, as the model is shown it.
const RESULT: &str = "tool: <from tool=\"read_file\" untrusted>\nlll";
/// The user's words.
const WORDS: &str = "read it all, and remember the word heliotrope";

/// A host whose assistant reads a file of 50 KB as often as its model asks. The tool gives it in
/// parts of up to 30 KB, which are in the thread word for word.
async fn reader(at: Option<&str>) -> Stage {
    let peer = Peer::start();
    let mut config = config(&peer);
    config["agents"] = json!([{
        "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["read_file"],
        "limits": { "stepsMax": 200, "toolCallsMax": 200, "tokensMax": 100_000_000 },
    }]);
    config["components"] = json!({
        "files": { "directories": [{ "path": "files", "at": "/data", "access": "read-only" }] },
    });
    config["models"]["chat"]["contextWindow"] = json!(READER_WINDOW);
    let folder = Folder::new(config);
    let line = "l".repeat(99) + "\n";
    std::fs::write(folder.path().join("files/big.txt"), line.repeat(500)).unwrap();
    folder.warm(&["assistant", "files"]).await;
    started(folder, peer, at).await
}

/// Checks that a prompt fits the window, and that its calls and results are in pairs.
fn check(prompt: &Value) {
    let bytes = prompt["messages"].to_string().len();
    assert!(bytes / 4 <= READER_WINDOW, "{bytes} bytes");
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in prompt["messages"].as_array().unwrap() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(open.remove(id), "a result without its call: {id}");
            continue;
        }
        assert!(open.is_empty(), "calls without a result: {open:?}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str()));
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
    let said = texts(prompt).join("\n");
    assert!(said.contains(WORDS), "the user's words stay");
    assert!(!said.contains("No result of this call is on record"));
}

/// The results that stand in a session's thread.
fn results(seen: &Value) -> Vec<&str> {
    let messages = seen["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| message["text"].as_str().unwrap())
        .collect()
}

/// Waits for the reply of the first turn.
async fn replied(stage: &Stage, session: &str) -> Value {
    stage
        .host
        .until(session, |seen| {
            seen["revision"].as_u64() >= Some(1) && seen["run_id"].is_null()
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_forty_large_results_goes_on_to_its_reply_within_the_window() {
    let stage = reader(None).await;
    stage.peer.reads(READS);
    let session = stage.host.open("assistant").await;
    stage.host.say(&session, WORDS).await;
    let seen = replied(&stage, &session).await;
    // Nothing of the thread is lost.
    let results = results(&seen);
    assert_eq!(results.len(), READS as usize);
    assert!(results.iter().all(|result| result.len() > 29_000));
    assert!(seen.to_string().contains("reply to"), "{seen}");
    // What the model really got.
    let asked = stage.peer.asked("chat");
    assert_eq!(asked.len(), READS as usize + 1);
    asked.iter().for_each(check);
    let last = asked.last().unwrap()["messages"].to_string();
    assert!(
        last.contains("are not shown here") && last.contains("summary "),
        "what was left out is summarised"
    );
    // The newest results are word for word.
    let whole = texts(asked.last().unwrap())
        .iter()
        .filter(|text| text.starts_with(RESULT) && text.len() > 29_000)
        .count();
    assert!(whole >= 2, "{whole}");
    // The cuts are on record, each shows less than the one before.
    let cuts = stage.host.story(&session, "run.cut.v1").await;
    assert!(cuts.len() >= 2, "{cuts:?}");
    for cut in &cuts {
        assert!(
            cut["operation_id"].is_string()
                && cut["tokens_before"].as_u64() > cut["tokens_after"].as_u64(),
            "{cut}"
        );
    }
    for pair in cuts.windows(2) {
        let through = |cut: &Value| cut["left_out_through"].as_u64().unwrap();
        assert!(through(&pair[0]) <= through(&pair[1]), "{pair:?}");
    }
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_summarises_what_is_left_out_is_told_of_by_telemetry() {
    let stage = reader(None).await;
    let mut frames = stage.host.follow("/api/telemetry", None).await;
    stage.peer.reads(READS);
    let session = stage.host.open("assistant").await;
    stage.host.say(&session, WORDS).await;
    let seen = frames.until("message.processed").await;
    let run = &seen.last().unwrap().data["data"]["run_id"];
    assert!(run.is_string(), "{seen:?}");
    let count = |event: &str, model: &str| {
        let of_run = seen.iter().filter(|frame| {
            let data = &frame.data["data"];
            frame.event == event && data["run_id"] == *run && data["model"] == model
        });
        of_run.count()
    };
    let summaries = count("llm.request_complete", "memory");
    assert!(summaries > 0, "{seen:?}");
    assert_eq!(count("llm.request_start", "memory"), summaries);
    assert_eq!(count("llm.request_complete", "chat"), READS as usize + 1);
    let is_reported = |frame: &Frame| frame.data.to_string().contains("summary 1");
    assert!(
        !seen.iter().any(is_reported),
        "no word of it is told: {seen:?}"
    );
    stage.over().await;
}

/// Without a model that summarises, what is left out is named and the turn goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_fails_does_not_end_the_turn_that_needs_it() {
    let stage = reader(None).await;
    stage.peer.fails("memory");
    stage.peer.reads(READS);
    let session = stage.host.open("assistant").await;
    stage.host.say(&session, WORDS).await;
    replied(&stage, &session).await;
    let asked = stage.peer.asked("chat");
    asked.iter().for_each(check);
    let last = asked.last().unwrap()["messages"].to_string();
    assert!(
        last.contains("are not shown here") && !last.contains("summary"),
        "{last}"
    );
    assert!(!stage.peer.asked("memory").is_empty());
    let ended = &stage.host.story(&session, "run.ended.v1").await[0];
    assert_eq!(ended["end"], "replied", "{ended}");
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_the_process_dies_around_is_made_once_and_holds() {
    for point in ["broker.cut.before", "broker.cut.after"] {
        let mut stage = reader(Some(point)).await;
        stage.peer.reads(8);
        let session = stage.host.open("assistant").await;
        stage.host.say(&session, WORDS).await;
        assert!(
            stage.host.died(PATIENCE).await.is_some(),
            "{point} was never passed"
        );
        stage.host = stage.folder.serve().await;
        let seen = replied(&stage, &session).await;
        assert_eq!(results(&seen).len(), 8, "{point}");
        stage.peer.asked("chat").iter().for_each(check);
        let cuts = stage.host.story(&session, "run.cut.v1").await;
        let operations: BTreeSet<&str> = cuts
            .iter()
            .map(|cut| cut["operation_id"].as_str().unwrap())
            .collect();
        assert_eq!(operations.len(), cuts.len(), "{point}: {cuts:?}");
        stage.over().await;
    }
}

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

//! A session in numbers, and what the response to a message says of its turn.

use super::{Peer, folder};
use agent_host_tests::process::tells;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_counted_by_role_outcome_and_kind_of_tokens() {
    let peer = Peer::start();
    let small = json!({
        "agentId": "small", "displayName": "Small", "toolAllowlist": [],
        "contextWindowSize": 2_000,
    });
    let folder = folder(&peer, json!({ "agents": [small] })).await;
    let host = folder.serve().await;
    let session = host.open("small").await;
    let empty = host.get(&format!("{session}/stats")).await.body;
    assert_eq!(empty["messages"]["total"], 0, "{empty}");
    assert_eq!(empty["turns"]["total"], 0, "{empty}");
    for _ in 0..2 {
        host.turn(&session, "hello").gives(200).await;
    }
    let other = host.open("plain").await;
    host.turn(&other, "hello").gives(200).await;
    let stats = host.get(&format!("{session}/stats")).gives(200).await;
    let stats = stats.body;
    assert_eq!(
        stats["messages"],
        json!({ "total": 4, "user": 2, "assistant": 2, "tool": 0, "notice": 0 })
    );
    assert_eq!(
        stats["turns"],
        json!({ "total": 2, "open": 0, "replied": 2, "completed": 0, "failed": 0, "aborted": 0 })
    );
    assert_eq!(stats["usage"]["model_calls"], 2, "{stats}");
    assert_eq!(stats["usage"]["input_tokens"], 80, "{stats}");
    assert_eq!(stats["usage"]["output_tokens"], 4, "{stats}");
    assert_eq!(stats["total_tokens"], 84, "{stats}");
    // The newest call, in the window of the definition.
    assert_eq!(
        stats["context"],
        json!({ "tokens": 42, "window": 2_000, "percent": 2 }),
        "{stats}"
    );
    assert_eq!(empty["context"], json!(null), "{empty}");
    // 80 tokens at 1 and 4 at 2 a million.
    assert_eq!(stats["usage"]["cost_micros"], 88, "{stats}");
    let id = session.rsplit('/').next().unwrap();
    let reported = folder.run(&["session", "stats", id]).await;
    let reported = String::from_utf8_lossy(&reported.stdout).into_owned();
    tells(&reported, &["tokens    84: in 80 (cached 0), out 4"]);
    let unknown_sender = host.user("mallory", &["read"]).await;
    unknown_sender
        .get(&format!("{session}/stats"))
        .gives(404)
        .await;
}

/// A model that calls one tool that is there and one that is not, and then says what it got.
const CALLS: &str = r#"
[[rule]]
when = { last = "user", user = "look" }
[rule.reply]
text = "Let me look."
calls = [{ tool = "list_files", arguments = { path = "/data" } }, { tool = "nothing" }]

[[rule]]
reply = { text = "that is all" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_response_to_a_message_has_content_calls_usage_and_time_of_its_turn() {
    let peer = Peer::start();
    let files = json!({ "path": "files", "at": "/data", "access": "read-write" });
    let folder = folder(
        &peer,
        json!({
            "agents": [{ "agentId": "lister", "displayName": "Lister", "model": "s" }],
            "components": { "files": { "directories": [files] } },
        }),
    )
    .await;
    std::fs::write(folder.path().join("script.toml"), CALLS).unwrap();
    folder.warm(&["files"]).await;
    let host = folder.serve().await;
    let session = host.open("lister").await;
    let said = host.turn(&session, "look").gives(200).await.body;
    assert_eq!(said["outcome"], "replied", "{said}");
    assert_eq!(said["reply"]["text"], "that is all", "{said}");
    let once = said.to_string().matches("that is all").count();
    assert_eq!(once, 1, "the reply's text stands once: {said}");
    let calls = said["tool_calls"].as_array().unwrap();
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (call["name"].as_str().unwrap(), call["ok"] == true))
        .collect();
    assert_eq!(calls, [("list_files", true), ("nothing", false)], "{said}");
    assert!(said["tool_calls"][0]["duration_ms"].is_u64(), "{said}");
    assert!(said["duration_ms"].as_u64().unwrap() > 0, "{said}");
    assert_eq!(said["metadata"]["model_calls"], 2, "{said}");
    assert_eq!(said["metadata"]["models"], json!(["s"]), "{said}");
    assert_eq!(said.get("error"), None, "{said}");
    let count = |kind: &str| said["usage"][kind].as_u64().unwrap();
    let total = count("input_tokens") + count("output_tokens");
    assert_eq!(said["usage"]["total_tokens"], total, "{said}");
    let stats = host.get(&format!("{session}/stats")).await.body;
    assert_eq!(
        stats["total_tokens"], total,
        "the same as the session's: {stats}"
    );
    assert_eq!(stats["messages"]["tool"], 2, "{stats}");
    let path = format!("{session}/messages");
    let unwaited = host
        .post(&path, &json!({ "content": "hi" }))
        .gives(202)
        .await;
    for field in ["tool_calls", "usage", "duration_ms", "metadata"] {
        assert_eq!(unwaited.body.get(field), None, "{unwaited:?}");
    }
}

/// A model that gives no reply, for the reason that the user names.
const FAILS: &str = r#"
[[rule]]
when.user = "refused"
reply.fail = "refused"

[[rule]]
when.user = "rate-limited"
reply.fail = "rate-limited"

[[rule]]
when.user = "garbage"
reply.fail = "garbage"

[[rule]]
when.user = "unavailable"
reply.fail = "unavailable"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_response_to_a_message_whose_turn_fails_has_the_reason_that_is_stored() {
    let peer = Peer::start();
    let agent = json!({
        "agentId": "mute", "displayName": "Mute", "model": "s", "toolAllowlist": [],
    });
    let more = json!({ "agents": [agent], "retry": { "attemptsMax": 1 } });
    let folder = folder(&peer, more).await;
    std::fs::write(folder.path().join("script.toml"), FAILS).unwrap();
    let host = folder.serve().await;
    for (asked, code, retryable, category) in [
        ("refused", "model-refused", false, "LLM_REQUEST_FAILED"),
        (
            "rate-limited",
            "model-rate-limited",
            true,
            "LLM_REQUEST_FAILED",
        ),
        ("garbage", "model-garbage", true, "LLM_STREAM_FAILED"),
        (
            "unavailable",
            "model-unavailable",
            true,
            "LLM_REQUEST_FAILED",
        ),
    ] {
        let session = host.open("mute").await;
        let said = host.turn(&session, asked).gives(200).await.body;
        assert_eq!(said["outcome"], "failed", "{said}");
        session.rsplit('/').next().unwrap();
        let ended = &host.story(&session, "run.ended.v1").await[0];
        let error = &said["error"];
        assert_eq!(error["code"], code, "{said}");
        assert_eq!(error["code"], ended["code"], "{said}");
        assert!(error["message"].is_string(), "{said}");
        assert_eq!(error["message"], ended["reason"], "{said}");
        assert_eq!(error["retryable"], retryable, "{said}");
        assert_eq!(error["category"], category, "{said}");
    }
}

//! Telemetry of a whole host: a delegation with real tools as its operator watches it, failures,
//! and a client that never reads.

use agent_host_tests::guests::test_program;
use agent_host_tests::process::{Folder, Frame, Frames, Host, PATIENCE, tells};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep, timeout};

const PATH: &str = "/api/telemetry";
/// Turns with a client that does not read, and the words of the reply in each.
const TURNS: usize = 24;
const WORDS: usize = 500;
/// Content of a file that a worker reads; no telemetry may have it.
const CONTENT: &str = "milk and bread";

async fn started() -> (Folder, Host) {
    started_with(&json!({}), None).await
}

/// A host with these limits of its server, and a script of its model if not the usual one.
async fn started_with(limits: &Value, script: Option<String>) -> (Folder, Host) {
    let puppet = test_program("puppet");
    let folder = Folder::new(json!({
        "agents": [
            {
                "agentId": "assistant", "displayName": "Assistant",
                "toolAllowlist": ["delegate"],
            },
            {
                "agentId": "worker", "displayName": "Worker", "component": "worker",
                "toolAllowlist": ["*_file", "*_files"], "agentAllowlist": [],
            },
            { "agentId": "puppet", "displayName": "Puppet", "component": "puppet" },
        ],
        "components": {
            "puppet": { "path": puppet, "models": ["*"], "agents": ["*"] },
            "files": {
                "directories": [{ "path": "files", "at": "/workspace", "access": "read-write" }],
            },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
        "server": { "listen": "127.0.0.1:0", "dataDir": "data", "limits": limits },
    }));
    if let Some(script) = script {
        std::fs::write(folder.path().join("script.toml"), script).unwrap();
    }
    std::fs::write(folder.path().join("files/notes.txt"), CONTENT).unwrap();
    folder
        .warm(&["assistant", "worker", "files", "puppet"])
        .await;
    let host = folder.serve().await;
    (folder, host)
}

/// Opens a session: its agent, and itself.
async fn opened(host: &Host, definition: &str) -> (String, String) {
    let answer = host
        .post(&format!("/api/agents/{definition}/sessions"), &json!({}))
        .gives(201)
        .await;
    (answer.text("agent_id"), answer.text("session_id"))
}

/// Sends a message; its id.
async fn send(host: &Host, session: &(String, String), text: &str) -> String {
    let path = format!("/api/agents/{}/sessions/{}/messages", session.0, session.1);
    let answer = host
        .post(&path, &json!({ "content": text }))
        .gives(202)
        .await;
    answer.text("input_id")
}

/// All frames up to the first of a type that is about a session.
async fn until(frames: &mut Frames, kind: &str, session: &str) -> Vec<Frame> {
    let mut seen = Vec::new();
    let end = Instant::now() + PATIENCE;
    loop {
        seen.extend(frames.until(kind).await);
        let last = &seen.last().unwrap().data;
        if last["data"]["session_id"] == session {
            return seen;
        }
        assert!(Instant::now() < end, "{seen:?}");
    }
}

/// The types of the frames about a session, each run of chunks of a reply once.
fn course(frames: &[Frame], session: &str) -> Vec<String> {
    let mut kinds: Vec<String> = frames
        .iter()
        .filter(|frame| frame.data["data"]["session_id"] == session)
        .map(|frame| frame.event.clone())
        .collect();
    kinds.dedup_by(|next, last| next == last && *next == "llm.stream_chunk");
    kinds
}

fn of<'a>(frames: &'a [Frame], kind: &str, session: &str) -> &'a Value {
    let is_it = |frame: &&Frame| frame.event == kind && frame.data["data"]["session_id"] == session;
    let found = frames.iter().find(is_it);
    &found
        .unwrap_or_else(|| panic!("no {kind}: {frames:?}"))
        .data
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_is_watched_from_the_message_to_its_answer_and_no_word_is_told() {
    let (_folder, host) = started().await;
    let mut frames = host.follow(PATH, None).await;
    let session = opened(&host, "assistant").await;
    let message = send(&host, &session, "read notes.txt").await;
    let seen = until(&mut frames, "message.processed", &session.1).await;
    assert_eq!(
        course(&seen, &session.1),
        [
            "session.created",
            "message.received",
            "message.processing",
            "llm.request_start",
            "llm.stream_start",
            "llm.stream_chunk",
            "llm.stream_end",
            "llm.request_complete",
            "tool.call_start",
            "tool.call_complete",
            "llm.request_start",
            "llm.stream_start",
            "llm.stream_chunk",
            "llm.stream_end",
            "llm.request_complete",
            "message.processed",
        ]
    );
    let processed = of(&seen, "message.processed", &session.1);
    let data = &processed["data"];
    assert_eq!(data["input_id"], json!(message), "{processed}");
    assert_eq!(data["agent_id"], json!(session.0), "{processed}");
    assert_eq!(data["tool_call_count"], 1, "{processed}");
    assert!(
        data["duration_ms"].is_u64() && data["run_id"].is_string(),
        "{processed}"
    );
    let complete = of(&seen, "llm.request_complete", &session.1);
    for name in ["input_tokens", "output_tokens", "duration_ms", "attempts"] {
        assert!(complete["data"][name].is_u64(), "{name}: {complete}");
    }
    assert_eq!(complete["data"]["model"], "m", "{complete}");
    // The agent names no model: it asks the one that is configured.
    let asked = of(&seen, "llm.request_start", &session.1);
    assert_eq!(asked["data"]["model"], "m", "{asked}");
    assert_eq!(asked["data"]["provider"], "scripted", "{asked}");
    assert_eq!(
        of(&seen, "tool.call_start", &session.1)["data"]["tool"],
        "delegate"
    );
    assert!(of(&seen, "llm.stream_chunk", &session.1)["data"]["bytes"].is_u64());
    // The worker's agent and session, and its own call of a tool.
    let tools: BTreeSet<&str> = seen
        .iter()
        .filter(|frame| frame.event == "tool.call_complete")
        .map(|frame| frame.data["data"]["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, BTreeSet::from(["delegate", "read_file"]));
    for kind in ["agent.initialized", "agent.registered", "agent.ready"] {
        let agents = seen.iter().filter(|frame| frame.event == kind);
        assert_eq!(agents.count(), 2, "{kind}");
    }
    for frame in &seen {
        assert!(frame.data["timestamp"].is_string(), "{frame:?}");
        assert_eq!(frame.event, frame.data["type"].as_str().unwrap());
        let text = frame.data.to_string();
        for said in [CONTENT, "notes.txt", "Let me look", "It says"] {
            assert!(!text.contains(said), "{said}: {frame:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_replies_is_told_only_to_an_operator_whose_reading_is_on_record() {
    let (_folder, host) = started().await;
    let session = opened(&host, "assistant").await;
    let about = format!("{PATH}?session={}", session.1);
    let mut plain = host.follow(&about, None).await;
    let mut reading = host
        .follow(&format!("{about}&content=true&type=llm.*"), None)
        .await;
    send(&host, &session, "hello").await;
    let said = |frames: &[Frame]| -> String {
        frames
            .iter()
            .filter_map(|frame| frame.data["data"]["content"].as_str())
            .collect()
    };
    let read = reading.until("llm.request_complete").await;
    assert_eq!(said(&read), "hello from the model");
    let watched = plain.until("message.processed").await;
    assert_eq!(said(&watched), "");
    assert!(
        watched
            .iter()
            .any(|frame| frame.event == "llm.stream_chunk")
    );
    // A user's key does not open it.
    let line = host.user("alice", &["read", "write", "keys"]).await;
    assert_eq!(line.follow(PATH, None).await.unwrap_err(), Some(403));
    let refused = line.get(PATH).await;
    assert_eq!(refused.text("code"), "SCOPE_MISSING");
    assert_eq!(refused.body["retryable"], json!(false), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_and_a_turn_that_fail_are_told_with_code_and_category() {
    let (_folder, host) = started().await;
    let mut frames = host.follow(PATH, None).await;
    let session = opened(&host, "puppet").await;
    let steps = json!({ "steps": [
        { "until": "all", "start": [
            { "key": "a", "tool": "no_such_tool" },
            { "key": "b", "tool": "read_file", "args": { "path": "absent.txt" } },
        ] },
        { "fail": "words of the agent" },
    ] });
    send(&host, &session, &steps.to_string()).await;
    let seen = until(&mut frames, "message.failed", &session.1).await;
    let failed = of(&seen, "message.failed", &session.1);
    assert_eq!(failed["error"]["code"], "agent-failed", "{failed}");
    assert_eq!(
        failed["error"]["category"], "MESSAGE_PROCESSING_FAILED",
        "{failed}"
    );
    assert!(
        !failed.to_string().contains("words of the agent"),
        "{failed}"
    );
    let errors: Vec<&Value> = seen
        .iter()
        .filter(|frame| frame.event == "tool.call_failed")
        .map(|frame| &frame.data["error"]["category"])
        .collect();
    assert!(
        errors.contains(&&json!("TOOL_EXECUTION_FAILED")),
        "{seen:?}"
    );
    let session = opened(&host, "assistant").await;
    send(&host, &session, "call:nothing").await;
    let seen = until(&mut frames, "message.processed", &session.1).await;
    let failed = of(&seen, "tool.call_failed", &session.1);
    assert_eq!(failed["data"]["tool"], "nothing", "{failed}");
    assert_eq!(
        failed["error"],
        json!({
            "code": "TOOL_NOT_AVAILABLE", "category": "TOOL_NOT_AVAILABLE", "retryable": false,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_failed_is_no_success_in_telemetry_and_in_the_response() {
    let (_folder, host) = started().await;
    let mut frames = host.follow(PATH, None).await;
    let session = opened(&host, "assistant").await;
    let path = format!(
        "/api/agents/{}/sessions/{}/messages?wait_s=30",
        session.0, session.1
    );
    let content = json!({ "content": "read absent.txt" });
    let said = host.post(&path, &content).await.body;
    assert_eq!(said["outcome"], "replied", "{said}");
    assert_eq!(said["tool_calls"][0]["name"], "delegate", "{said}");
    assert_eq!(said["tool_calls"][0]["ok"], false, "{said}");
    let seen = until(&mut frames, "message.processed", &session.1).await;
    let failed = of(&seen, "tool.call_failed", &session.1);
    assert_eq!(failed["data"]["tool"], "delegate", "{failed}");
    assert_eq!(
        failed["error"],
        json!({
            "code": "TASK_FAILED", "category": "TOOL_EXECUTION_FAILED", "retryable": false,
        })
    );
    let kinds = course(&seen, &session.1);
    assert!(
        !kinds.contains(&"tool.call_complete".to_owned()),
        "{kinds:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_gives_no_reply_and_an_agent_that_is_archived_are_told_of() {
    let script = "[[rule]]\nreply.fail = \"refused\"\n".to_owned();
    let (_folder, host) = started_with(&json!({}), Some(script)).await;
    let mut frames = host.follow(PATH, None).await;
    let session = opened(&host, "puppet").await;
    let steps = json!({ "steps": [{ "start": [{ "key": "m", "model": "x" }] }] });
    send(&host, &session, &steps.to_string()).await;
    let seen = until(&mut frames, "message.processed", &session.1).await;
    let failed = of(&seen, "llm.error", &session.1);
    assert_eq!(failed["error"]["code"], "model-refused", "{failed}");
    assert_eq!(
        failed["error"]["category"], "LLM_REQUEST_FAILED",
        "{failed}"
    );
    assert_eq!(failed["data"]["model"], "m", "{failed}");
    assert_eq!(failed["data"]["provider"], "scripted", "{failed}");
    let reported = opened(&host, "assistant").await;
    send(&host, &reported, "hello").await;
    let seen = until(&mut frames, "message.failed", &reported.1).await;
    let failed = of(&seen, "message.failed", &reported.1);
    assert_eq!(
        failed["error"],
        json!({ "code": "model-refused", "category": "LLM_REQUEST_FAILED", "retryable": false })
    );
    let archive = format!("/api/agents/{}/archive", session.0);
    host.post(&archive, &json!({})).gives(200).await;
    let seen = frames.until("agent.shutdown").await;
    let gone = ["agent.unregistered", "agent.shutdown"];
    let reported = seen.iter().rev().take(gone.len()).rev();
    for (frame, kind) in reported.zip(gone) {
        assert_eq!(frame.event, kind, "{seen:?}");
        assert_eq!(frame.data["data"]["agent_id"], json!(session.0), "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_telemetry_slows_no_turn() {
    // Each word is an event. Those of a turn fit into what waits for a client that reads, and those
    // of all turns are much more than all buffers on the way hold.
    let words = "word ".repeat(WORDS);
    let script = format!("[[rule]]\nreply = {{ text = \"{words}\" }}\n");
    let limits = json!({
        "sendBufferBytes": 16_384, "streamWaitingBytesMax": 16_384, "streamStallMsMax": 600_000,
        "writeMsMax": 600_000,
    });
    let (_folder, host) = started_with(&limits, Some(script)).await;
    let mut unread = host.follow(PATH, None).await;
    let mut watched = host.follow(PATH, None).await;
    let session = opened(&host, "assistant").await;
    let mut reported = 0;
    for _ in 0..TURNS {
        let message = send(&host, &session, "hello").await;
        let seen = until(&mut watched, "message.processed", &session.1).await;
        let processed = of(&seen, "message.processed", &session.1);
        assert_eq!(processed["data"]["input_id"], json!(message));
        assert!(seen.iter().all(|frame| frame.event != "lag"), "it reads");
        reported += seen.len();
    }
    assert!(reported > TURNS * WORDS, "{reported}");
    // All turns have ended, and the client that never read has lost events by then.
    let seen = unread.until("lag").await;
    let lost = seen.last().unwrap().data["dropped"].as_u64().unwrap();
    assert!(lost > 0 && seen.len() < reported, "{lost} of {reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_a_line_for_each_event_that_is_asked_for() {
    let (folder, host) = started().await;
    let mut child = folder
        .program(&["telemetry", "--type", "message.*", "--count", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let session = opened(&host, "assistant").await;
    let mut out = child.stdout.take().unwrap();
    let read = async {
        let mut text = String::new();
        out.read_to_string(&mut text).await.unwrap();
        text
    };
    let exchange = async {
        // It begins to watch at a time of its own.
        loop {
            send(&host, &session, "hello").await;
            sleep(Duration::from_millis(200)).await;
        }
    };
    let text = tokio::select! {
        text = timeout(PATIENCE, read) => text.expect("an end in time"),
        () = exchange => unreachable!(),
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in lines {
        assert!(line.contains("message."), "{text}");
        assert!(line.contains(session.1.get(..8).unwrap()), "{text}");
        assert!(line.contains("input_id="), "{text}");
    }
    let refused = folder.run(&["telemetry", "--type", "nothing.*"]).await;
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
    tells(&reported, &["message.processed"]);
}

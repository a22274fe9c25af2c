//! The program over a real socket: bad input, event streams, stopping, and what keeps it from
//! starting.

use agent_host_tests::guests::test_program;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Answer, Folder, Frame, Host, PATIENCE, effects, puppet, scripted};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A place for what is nowhere.
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn config() -> Value {
    let tutor = json!({
        "agentId": "tutor", "displayName": "Tutor", "component": "tutor", "toolAllowlist": [],
    });
    scripted(&json!([puppet(), tutor]), &[("effects", effects())])
}

async fn started() -> (Folder, Host) {
    Folder::serving(config(), &["puppet", "effects", "tutor"]).await
}

#[track_caller]
fn is_problem(answer: &Answer, status: u16, code: &str, field: Option<&str>) {
    answer.is_refusal(status, code);
    assert_eq!(
        answer.content_type, "application/problem+json",
        "{answer:?}"
    );
    assert_eq!(answer.body["status"], status, "{answer:?}");
    assert_eq!(answer.body["field"].as_str(), field, "{answer:?}");
    for name in ["type", "title", "detail"] {
        assert!(!answer.text(name).is_empty(), "no {name}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_answered_with_a_problem_and_the_host_lives_on() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    let agent = session.agent();
    let messages = format!("{session}/messages");
    let none = "";
    let json = "application/json";
    let call = "ab".repeat(32);
    let respond = format!("{agent}/respond");
    let cases = [
        (
            &messages,
            json,
            "{\"content\":".to_owned(),
            400,
            "MALFORMED_JSON",
            None,
        ),
        (
            &messages,
            json,
            "\u{0}".to_owned(),
            400,
            "MALFORMED_JSON",
            None,
        ),
        (
            &messages,
            json,
            "[".repeat(100_000),
            422,
            "NESTED_TOO_DEEP",
            None,
        ),
        (
            &messages,
            json,
            json!({ "content": [["text", "x"]] }).to_string(),
            422,
            "INVALID_FIELD",
            Some("/content/0"),
        ),
        (
            &messages,
            json,
            json!({ "content": [[]] }).to_string(),
            422,
            "INVALID_FIELD",
            Some("/content/0"),
        ),
        (
            &messages,
            json,
            json!({ "content": "x", "contnet": 1 }).to_string(),
            422,
            "UNKNOWN_FIELD",
            Some("/contnet"),
        ),
        (
            &messages,
            json,
            json!({}).to_string(),
            422,
            "MISSING_FIELD",
            Some("/content"),
        ),
        (
            &messages,
            json,
            json!({ "content": 7 }).to_string(),
            422,
            "INVALID_FIELD",
            Some("/content"),
        ),
        (
            &messages,
            json,
            json!({ "content": "x", "model": "nope" }).to_string(),
            422,
            "INVALID",
            Some("/model"),
        ),
        (
            &messages,
            none,
            json!({ "content": "x" }).to_string(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            Some("header:Content-Type"),
        ),
        (
            &messages,
            "text/plain",
            json!({ "content": "x" }).to_string(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            Some("header:Content-Type"),
        ),
        (
            &format!("{agent}/sessions/{NOBODY}/messages"),
            json,
            json!({ "content": "x" }).to_string(),
            404,
            "SESSION_NOT_FOUND",
            None,
        ),
        (
            &format!("/api/agents/{NOBODY}/sessions/{NOBODY}/messages"),
            json,
            json!({ "content": "x" }).to_string(),
            404,
            "AGENT_NOT_FOUND",
            None,
        ),
        (
            &format!("{agent}/sessions/x/messages"),
            json,
            json!({ "content": "x" }).to_string(),
            400,
            "INVALID_ID",
            Some("path:sid"),
        ),
        (
            &"/api/agents/nobody/sessions".to_owned(),
            json,
            "{}".to_owned(),
            404,
            "DEFINITION_NOT_FOUND",
            None,
        ),
        (
            &respond,
            json,
            json!({ "tool_call_id": "x", "response": 1 }).to_string(),
            422,
            "INVALID_FIELD",
            Some("/tool_call_id"),
        ),
        (
            &respond,
            json,
            json!({ "tool_call_id": call, "response": 1 }).to_string(),
            409,
            "NOT_SUSPENDED",
            None,
        ),
        (
            &"/api/nowhere".to_owned(),
            json,
            "{}".to_owned(),
            404,
            "ROUTE_NOT_FOUND",
            None,
        ),
        (
            &session.to_string(),
            json,
            "{}".to_owned(),
            405,
            "METHOD_NOT_ALLOWED",
            None,
        ),
    ];
    for (path, content_type, body, status, code, field) in cases {
        let mut request = host.request(Method::POST, path).body(body);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        is_problem(&host.send(request).await, status, code, field);
    }
    let unknown = host.get(&format!("{agent}/stream?after=x")).await;
    is_problem(&unknown, 400, "INVALID_LAST_EVENT_ID", Some("query:after"));
    for token in ["", "wrong", &host.token[1..]] {
        let answer = host
            .send(host.bare(Method::GET, "/api/agents").bearer_auth(token))
            .await;
        is_problem(&answer, 401, "UNAUTHORIZED", Some("header:Authorization"));
    }
    host.play(&session, &json!([{ "reply": "alive" }])).await;
    let seen = host.rest(&session).await;
    assert_eq!(
        seen["messages"].as_array().unwrap().len(),
        2,
        "nothing of all that was taken: {seen}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Sends a request byte by byte as it is, also when the host stops listening half-way, and returns
/// the answer.
async fn raw(host: &Host, request: &str) -> String {
    let mut stream = TcpStream::connect(host.base.trim_start_matches("http://"))
        .await
        .unwrap();
    // The host need not read what it has refused already.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let mut piece = [0; 4_096];
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_of_ten_megabytes_is_refused() {
    let (_folder, host) = started().await;
    let session = host.open("puppet").await;
    let body = json!({ "content": "x".repeat(10 << 20) }).to_string();
    let token = &host.token;
    let answer = raw(
        &host,
        &format!(
            "POST {session}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
             {token}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("BODY_TOO_LARGE"),
        "{answer}"
    );
    // An ordinary client sees it as well.
    let request = host
        .request(Method::POST, &format!("{session}/messages"))
        .header("content-type", "application/json")
        .body(body);
    host.send(request).gives(413).await;
    host.get("/readyz").gives(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_request_also_after_a_crash() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    let post = |host: &Host, text: &str| {
        let request = host
            .request(Method::POST, &format!("{session}/messages"))
            .header("idempotency-key", "k")
            .json(&json!({ "content": text }));
        host.send(request)
    };
    let first = post(&host, "{\"steps\":[]}").await;
    host.kill().await;
    let host = folder.serve().await;
    let again = post(&host, "{\"steps\":[]}").await;
    again.has(202, &json!({ "input_id": first.text("input_id") }));
    assert_eq!(
        (&first.body["replayed"], &again.body["replayed"]),
        (&json!(false), &json!(true))
    );
    is_problem(
        &post(&host, "something else").await,
        409,
        "IDEMPOTENCY_KEY_REUSED",
        Some("header:Idempotency-Key"),
    );
}

fn committed(frames: &[Frame]) -> Vec<(u64, String)> {
    frames
        .iter()
        .filter_map(|frame| Some((frame.id?, frame.event.clone())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_broke_goes_on_with_exactly_what_was_missed() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    let agent = session.agent();
    let stream = format!("{agent}/stream?view=log&session={}", session.id());
    let mut frames = host.follow(&stream, None).await;
    let ask = json!({ "steps": [{ "start": [{ "key": "m", "model": "be kind" }] }] });
    host.say(&session, &ask.to_string()).await;
    let first = frames.until("session.turn.committed.v1").await;
    let deltas: Vec<&Frame> = first
        .iter()
        .filter(|frame| frame.event == "delta")
        .collect();
    assert!(
        !deltas.is_empty() && deltas.iter().all(|delta| delta.id.is_none()),
        "{first:?}"
    );
    let kinds: Vec<String> = committed(&first)
        .into_iter()
        .map(|(_, kind)| kind)
        .collect();
    assert_eq!(
        kinds.first().map(String::as_str),
        Some("session.input.accepted.v1"),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().any(|kind| kind == "run.started.v1")
            && kinds.iter().any(|kind| kind == "run.ended.v1"),
        "{kinds:?}"
    );
    let last = committed(&first).last().unwrap().0;
    drop(frames);

    host.say(&session, &ask.to_string()).await;
    host.rest(&session).await;
    host.kill().await;
    let host = folder.serve().await;
    let mut frames = host.follow(&stream, Some(last)).await;
    let missed = committed(&frames.until("session.turn.committed.v1").await);
    let id = session.id();
    let list = host
        .get(&format!("/api/events?after={last}&limit=1000&session={id}"))
        .await
        .body;
    let stored: Vec<(u64, String)> = list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            (
                event["position"].as_u64().unwrap(),
                event["type"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(missed, stored);
    for id in ["garbage", "-1", "18446744073709551616"] {
        let answer = host
            .send(
                host.request(Method::GET, &stream)
                    .header("last-event-id", id),
            )
            .await;
        is_problem(
            &answer,
            400,
            "INVALID_LAST_EVENT_ID",
            Some("header:Last-Event-ID"),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_told_to_stop_finishes_its_calls_and_ends_with_success() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    let agent = session.agent();
    let mut frames = host.follow(&format!("{agent}/stream?view=log"), None).await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 400 } }] }]),
    )
    .await;
    until(async || !folder.effects().is_empty()).await;
    let status = host.stop().await;
    assert!(status.success(), "{status}: {}", folder.log());
    assert_eq!(
        folder.effects().len(),
        2,
        "the call came to its end: {:?}",
        folder.effects()
    );
    while frames.receive().await.is_some() {}
    assert!(
        !folder.data().join("address").exists(),
        "nobody listens there any more"
    );
    let host = folder.serve().await;
    let seen = host.rest(&session).await;
    assert!(
        seen["messages"].to_string().contains("t parts send done"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_hung_up_on_serves_on_and_logs_that() {
    let (folder, host) = started().await;
    for _ in 0..2 {
        host.signal(rustix::process::Signal::HUP);
    }
    until(async || {
        folder
            .log()
            .contains("SIGHUP: the configuration is read again")
    })
    .await;
    let session = host.open("puppet").await;
    host.play(&session, &json!([{ "reply": "still here" }]))
        .await;
    assert!(
        host.rest(&session).await["messages"]
            .to_string()
            .contains("still here")
    );
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_host_without_waiting_for_a_call() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 8_000 } }] }]),
    )
    .await;
    until(async || !folder.effects().is_empty()).await;
    host.tell_to_stop();
    until(async || folder.log().contains("stopping")).await;
    let status = tokio::time::timeout(Duration::from_secs(4), host.stop())
        .await
        .expect("it does not wait for the call");
    assert!(status.success(), "{status}: {}", folder.log());
    assert_eq!(
        folder.effects().len(),
        1,
        "the call did not come to its end: {:?}",
        folder.effects()
    );
    let host = folder.serve().await;
    let seen = host.rest(&session).await;
    assert!(seen["messages"].to_string().contains("t unknown"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tutors_question_waits_through_kill_nine_and_takes_its_answer() {
    let (folder, host) = started().await;
    let session = host.open_as("tutor", "learning").await;
    let agent = session.agent();
    let asks = |seen: &Value| seen["pending_action"].is_object();
    let asked = host.question(&session).await;
    host.kill().await;
    let host = folder.serve().await;
    let again = host.question(&session).await;
    assert_eq!(again, asked, "the same question under the same id");
    let wrong = json!({ "tool_call_id": "ab".repeat(32), "response": {} });
    is_problem(
        &host.post(&format!("{agent}/respond"), &wrong).await,
        409,
        "INVALID_TOOL_CALL_ID",
        Some("/tool_call_id"),
    );
    let answer =
        |call: &Value| json!({ "tool_call_id": call["tool_call_id"], "response": { "index": 0 } });
    host.post(&format!("{agent}/respond"), &answer(&asked))
        .gives(202)
        .await;
    let next = |seen: &Value| {
        asks(seen) && seen["pending_action"]["tool_call_id"] != asked["tool_call_id"]
    };
    host.until(&session, |seen| next(seen) || seen["status"] == "completed")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_compiles_nothing() {
    let (folder, host) = started().await;
    assert!(host.stop().await.success());
    let cache = || -> Vec<(PathBuf, SystemTime)> {
        let entries = std::fs::read_dir(folder.data().join("component-cache"))
            .unwrap()
            .flatten();
        let mut files: Vec<_> = entries
            .map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = cache();
    assert!(before.len() >= 4, "three components and a key: {before:?}");
    let host = folder.serve().await;
    assert!(host.stop().await.success());
    assert_eq!(cache(), before, "what is compiled is written");
}

/// Starts a host with a configuration that keeps it from starting, and returns what it says.
async fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut config = config();
    change(&mut config);
    let folder = Folder::new(config);
    std::fs::write(
        folder.path().join("broken.wasm"),
        &std::fs::read(test_program("effects")).unwrap()[..5_000],
    )
    .unwrap();
    let ended = folder
        .start(None)
        .await
        .expect_err("a host that does not start");
    assert!(matches!(ended.status.code(), Some(1 | 2)), "{ended:?}");
    assert!(!ended.said.contains("panicked at host/"), "{}", ended.said);
    ended.said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_refuses_to_start_with_what_it_cannot_run_and_names_it() {
    let with = |file: PathBuf| {
        move |config: &mut Value| {
            config["agents"] = json!([]);
            config["components"] = json!({ "suspect": { "path": file } });
        }
    };
    for (file, named) in [
        (PathBuf::from("broken.wasm"), "cut short"),
        (PathBuf::from("script.toml"), "not a WebAssembly component"),
        (PathBuf::from("nowhere.wasm"), "nowhere.wasm"),
        (
            test_program("unknown_import"),
            "imports what this host does not have",
        ),
        (test_program("trap_in_describe"), "trapped in `describe`"),
    ] {
        let said = refusal(with(file.clone())).await;
        assert!(
            said.contains(named) && said.contains("components.suspect"),
            "{}: {said}",
            file.display()
        );
    }
    for (key, value) in [
        ("agnets", json!([])),
        (
            "agents",
            json!([{ "agentId": "a", "displayName": "A", "toolAlowlist": [] }]),
        ),
    ] {
        let said = refusal(|config| config[key] = value).await;
        assert!(
            said.contains("agnets") || said.contains("toolAlowlist"),
            "{said}"
        );
    }
    let said = refusal(|config| config["agents"][0]["component"] = json!("nobody")).await;
    assert!(
        said.contains("agents[0].component") && said.contains("nobody"),
        "{said}"
    );
    for (key, value, range) in [
        ("callDepthMax", 6, "from 0 to 5"),
        ("instancesMax", 0, "from 1 to 1000"),
    ] {
        let said = refusal(|config| config["limits"] = json!({ key: value })).await;
        assert!(
            said.contains(&format!("limits.{key}")) && said.contains(range),
            "{said}"
        );
    }
}

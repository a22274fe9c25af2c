//! The API's description of what is in no request and no answer: frames of event streams, and what
//! sessions are opened with.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Frame, Host, PATIENCE, puppets};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The events in the view `session` of everything that is done here.
const SEEN: [&str; 17] = [
    "client_action",
    "client_action_withdrawn",
    "connected",
    "content_chunk",
    "content_complete",
    "error",
    "message_complete",
    "run_resumed",
    "run_started",
    "run_suspended",
    "session_completed",
    "state_change",
    "stream_complete",
    "terminated",
    "tool_calls_detected",
    "tool_executing",
    "tool_result",
];

async fn started() -> (Folder, Host) {
    let lesson = json!([
        { "start": [{ "key": "m", "model": "say something" }], "effects": [{ "say": "Listen." }] },
        { "start": [{ "key": "r", "recall": "zebra" }] },
        { "start": [{ "key": "a", "client": "confirmation" }, { "key": "t", "timer": 1 }] },
        {
            "cancel": ["a"], "start": [{ "key": "q", "client": "confirmation", "lock": true }],
            "until": "all",
        },
        { "complete": { "score": 1 } },
    ]);
    let agent = |id: &str, steps: &Value| {
        json!({
            "agentId": id, "displayName": id, "component": "puppet",
            "settings": { "script": { "steps": steps } },
        })
    };
    let folder = Folder::new(puppets(&json!([agent("teaches", &lesson)])));
    folder.warm(&["puppet"]).await;
    let host = folder.start(None).await.unwrap();
    (folder, host)
}

/// A schema of the document, by a reference to it.
fn schema(document: &Value, reference: &Value) -> Value {
    json!({ "$ref": reference["$ref"], "components": document["components"] })
}

/// Returns the parts of a frame that its description does not have, or has otherwise.
fn undescribed(document: &Value, view: &str, frame: &Frame) -> Vec<String> {
    let events = &document["paths"]["/api/agents/{id}/stream"]["get"]["x-events"][view];
    let reference = events.get(&frame.event).or(events.get("*"));
    let Some(reference) = reference else {
        return vec![format!("`{}` is described nowhere", frame.event)];
    };
    let described = schema(document, reference);
    let validator = jsonschema::validator_for(&described).unwrap();
    let mut found: Vec<String> = validator
        .iter_errors(&frame.data)
        .map(|error| format!("{}: {error}: {}", frame.event, frame.data))
        .collect();
    let pointer = reference["$ref"]
        .as_str()
        .unwrap()
        .strip_prefix('#')
        .unwrap();
    let properties = document.pointer(pointer).unwrap()["properties"]
        .as_object()
        .unwrap();
    let unknown = frame
        .data
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !properties.contains_key(*name));
    found.extend(
        unknown.map(|name| format!("{}: `{name}` is not described: {}", frame.event, frame.data)),
    );
    found
}

/// A lesson that is answered, one that is ended, and a turn that fails.
async fn do_everything(host: &Host, agent: &str) {
    let lesson = async || {
        let opened = host
            .post(
                &format!("{agent}/sessions"),
                &json!({ "session_type": "lesson" }),
            )
            .await
            .unwrap();
        assert_eq!(opened.status, 201, "{opened:?}");
        let session = format!("{agent}/sessions/{}", opened.text("id"));
        let waiting = async {
            loop {
                let seen = host.get(&session).await.unwrap().body;
                let widget = &seen["ui_state"]["active_widget"];
                if widget["tool_name"] == "q" {
                    return widget["tool_call_id"].as_str().unwrap().to_owned();
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        (
            session.clone(),
            tokio::time::timeout(PATIENCE, waiting)
                .await
                .expect("a question"),
        )
    };
    let (session, call) = lesson().await;
    let answered = host
        .post(
            &format!("{agent}/respond"),
            &json!({ "call_id": call, "response": { "confirmed": true } }),
        )
        .await
        .unwrap();
    assert_eq!(answered.status, 202, "{answered:?}");
    while host.get(&session).await.unwrap().text("status") == "open" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    lesson().await;
    assert_eq!(
        host.send(host.request(Method::DELETE, &format!("{agent}/sessions/current")))
            .await
            .unwrap()
            .status,
        200
    );
    // The model is asked for a call of a tool that there is not.
    let steps = json!({ "words": "call:nothing", "steps": [
        { "start": [{ "key": "m", "model": "x" }] },
        { "start": [{ "key": "c", "call": 0 }] },
        { "fail": "enough" },
    ] });
    let chat = host
        .post(
            &format!("{agent}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await
        .unwrap()
        .text("id");
    host.post(
        &format!("{agent}/sessions/{chat}/messages"),
        &json!({ "content": steps.to_string() }),
    )
    .await
    .unwrap();
    let ended = async {
        while host.get("/api/events?limit=1000").await.unwrap().body["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["data"]["end"] != "failed")
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("a turn that failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_that_comes_is_as_the_document_describes_it() {
    let (_folder, host) = started().await;
    let document = host.get("/openapi.json").await.unwrap().body;
    let agent = format!(
        "/api/agents/{}",
        host.post("/api/agents", &json!({ "definition": "teaches" }))
            .await
            .unwrap()
            .text("id")
    );
    let mut session = host.follow(&format!("{agent}/stream"), None).await;
    let mut log = host.follow(&format!("{agent}/stream?view=log"), None).await;
    do_everything(&host, &agent).await;
    let last = host.get("/api/events?limit=1").await.unwrap().body["last_position"]
        .as_u64()
        .unwrap();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (view, frames) in [("session", &mut session), ("log", &mut log)] {
        loop {
            let frame = tokio::time::timeout(PATIENCE, frames.receive())
                .await
                .expect("a frame")
                .expect("the stream goes on");
            findings.extend(undescribed(&document, view, &frame));
            let is_last = frame.id == Some(last);
            if view == "session" {
                seen.insert(frame.event);
            }
            if is_last {
                break;
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
    let missing: Vec<&str> = SEEN
        .into_iter()
        .filter(|name| !seen.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} did not come, {seen:?} did");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_built_in_sessions_are_opened_with_is_described_as_their_guests_read_it() {
    let (_folder, host) = started().await;
    let document = host.get("/openapi.json").await.unwrap().body;
    let configs = &document["paths"]["/api/agents/{id}/sessions"]["post"]["x-session-configs"];
    let wrong = [
        (
            "learning",
            "tutor",
            json!([
                { "lesson": {} }, { "lesson": { "title": "x", "txt": "y" } },
                { "lesson": { "title": 3 } }, { "level": 3 },
            ]),
        ),
        (
            "thought",
            "thought",
            json!([{ "topic": 3 }, { "topic": "" }, { "offer_every": 0 }]),
        ),
        (
            "validation",
            "evaluator",
            json!([
                { "exam": {} },
                {
                    "exam": {
                        "title": "x", "rubric": { "criteria": [], "pass_score": 60 }, "items": [],
                    },
                },
            ]),
        ),
    ];
    for (session_type, guest, wrong) in wrong {
        let described = schema(&document, &configs[session_type]);
        let validator = jsonschema::validator_for(&described).unwrap();
        let file = root().join(format!("guests/{guest}/examples/{session_type}.json"));
        let example: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&example)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
        assert!(
            validator.is_valid(&json!({})),
            "{session_type}: all of it may be left out"
        );
        for wrong in wrong.as_array().unwrap() {
            assert!(!validator.is_valid(wrong), "{session_type}: {wrong}");
        }
    }
}

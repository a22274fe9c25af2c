//! The API's description beside what the host really sends: answers and frames of event streams;
//! and what sessions are opened with.

mod answers;

use agent_host_tests::guests::root;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Frame, Host, PATIENCE, puppets};
use answers::ApiRequests;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The events in the view `session` of everything that is done here.
const SEEN: [&str; 18] = [
    "client_action",
    "client_action_withdrawn",
    "connected",
    "content_chunk",
    "content_complete",
    "error",
    "message_accepted",
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
    let mut config = puppets(&json!([
        agent("teaches", &lesson),
        { "agentId": "listens", "displayName": "listens", "component": "puppet" },
    ]));
    config["connectors"]["site"] = json!({
        "component": "direct", "agent": "listens",
        "configuration": { "origins": ["https://www.example.org"] },
    });
    Folder::serving(config, &["puppet"]).await
}

/// A schema of the document, by a reference to it.
fn schema(document: &Value, reference: &Value) -> Value {
    json!({ "$ref": reference["$ref"], "components": document["components"] })
}

/// The fields that a schema has in any of its alternatives.
fn fields(document: &Value, schema: &Value) -> BTreeSet<String> {
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut all: BTreeSet<String> = own.map(|(name, _)| name.clone()).collect();
    let parts = ["allOf", "anyOf", "oneOf"].map(|key| schema[key].as_array());
    let parts = parts.into_iter().flatten().flatten();
    let reference = schema["$ref"].as_str();
    let referred = reference.and_then(|it| document.pointer(it.strip_prefix('#')?));
    all.extend(
        parts
            .chain(referred)
            .flat_map(|part| fields(document, part)),
    );
    all
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
    let known = fields(document, reference);
    let names = frame.data.as_object().unwrap().keys();
    let unknown = names.filter(|name| !known.contains(*name));
    found.extend(
        unknown.map(|name| format!("{}: `{name}` is not described: {}", frame.event, frame.data)),
    );
    found
}

/// A lesson that is answered, one that is ended, and a turn that fails.
async fn do_everything(host: &Host, agent: &str) {
    let lesson = async || {
        let session = host.open_as(agent, "lesson").await;
        let asks = |seen: &Value| seen["ui_state"]["active_widget"]["tool_name"] == "q";
        let seen = host.until(&session, asks).await;
        let widget = &seen["ui_state"]["active_widget"];
        (
            session.clone(),
            widget["tool_call_id"].as_str().unwrap().to_owned(),
        )
    };
    let (session, call) = lesson().await;
    host.post(
        &format!("{agent}/respond"),
        &json!({ "tool_call_id": call, "response": { "confirmed": true } }),
    )
    .gives(202)
    .await;
    until(async || !host.get(&session).await.body["completed_at"].is_null()).await;
    lesson().await;
    host.delete(&format!("{agent}/sessions/current"))
        .gives(200)
        .await;
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
        .text("session_id");
    host.post(
        &format!("{agent}/sessions/{chat}/messages"),
        &json!({ "content": steps.to_string() }),
    )
    .await;
    until(async || {
        let events = host.events("").await;
        events.iter().any(|it| it["data"]["end"] == "failed")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_that_comes_is_as_the_document_describes_it() {
    let (_folder, host) = started().await;
    let document = host.get("/openapi.json").await.body;
    let agent = format!(
        "/api/agents/{}",
        host.post("/api/agents", &json!({ "definition": "teaches" }))
            .await
            .text("id")
    );
    let mut session = host.follow(&format!("{agent}/stream"), None).await;
    let mut log = host.follow(&format!("{agent}/stream?view=log"), None).await;
    do_everything(&host, &agent).await;
    let last = host.get("/api/events?limit=1").await.body["last_position"]
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
    let document = host.get("/openapi.json").await.body;
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

/// Looks at everything that an agent and its sessions have.
async fn inspect_agent(asked: &mut ApiRequests<'_>, agent: &str) {
    let lines = [
        "GET {agent}",
        "GET {agent}/preferences",
        "GET {agent}/history",
        "GET {agent}/sessions",
        "GET {agent}/sessions?status=terminated",
        "GET {agent}/sessions?pinned=true",
    ];
    asked.all(&[("{agent}", agent)], &lines).await;
    let sessions = asked.get(&format!("{agent}/sessions")).await;
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["session_id"].as_str().unwrap();
        let lines = [
            "GET {agent}/sessions/{id}",
            "GET {agent}/sessions/{id}/items",
            "GET {agent}/sessions/{id}/inputs",
            "GET {agent}/sessions/{id}/tree",
            "GET {agent}/sessions/{id}/files",
            "GET {agent}/sessions/{id}/stats",
            "GET /api/sessions/{id}",
            "GET /api/session/{id}",
            "GET /api/session/{id}/state",
        ];
        asked.all(&[("{agent}", agent), ("{id}", id)], &lines).await;
        if let Some(turn) = session["turn_id"].as_str() {
            asked.get(&format!("/api/turns/{turn}")).await;
        }
    }
}

/// Keeps what is filled in so far in the question of a lesson, which is then ended.
async fn fill_in(asked: &mut ApiRequests<'_>, agent: &str) {
    let lesson = json!({ "session_type": "lesson" });
    let opened = asked.post(&format!("{agent}/sessions"), lesson).await;
    let session = format!(
        "{agent}/sessions/{}",
        opened["session_id"].as_str().unwrap()
    );
    let question = loop {
        let widget = asked.get(&session).await["ui_state"]["active_widget"].clone();
        if widget["tool_name"] == "q" {
            break widget["tool_call_id"].clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let partial =
        json!({ "tool_call_id": question, "widget_partial_state": { "confirmed": true } });
    asked
        .ask(Method::PUT, &format!("{session}/ui-state"), partial)
        .await;
    inspect_agent(asked, agent).await;
    asked
        .ask(
            Method::DELETE,
            &format!("{agent}/sessions/current"),
            Value::Null,
        )
        .await;
}

/// Writes to a chat in each way, with a question that waits, an input behind it, and a file.
async fn chat(asked: &mut ApiRequests<'_>, agent: &str) -> String {
    let opened = asked
        .post(
            &format!("{agent}/sessions"),
            json!({ "session_type": "chat", "name": "zebras" }),
        )
        .await;
    let session = format!(
        "{agent}/sessions/{}",
        opened["session_id"].as_str().unwrap()
    );
    let say = |steps: Value| json!({ "content": json!({ "steps": steps }).to_string() });
    let said = say(json!([{ "start": [{ "key": "m", "model": "zebra" }] }, { "reply": "zebra" }]));
    let replied = asked
        .post(&format!("{session}/messages?wait_s=60"), said)
        .await;
    assert_eq!(replied["outcome"], "replied", "{replied}");
    let id = opened["session_id"].as_str().unwrap();
    let lines = [
        r#"PUT {session}/queue {"mode":"collect","debounce_ms":"1s"}"#,
        r#"POST {session}/messages {"content":"/queue followup"}"#,
        r#"PATCH {session} {"pinned":true,"attributes":{"colour":"black"}}"#,
        r#"POST {session}/panels {"type":"panel_inventory","panels":[{"panel_id":"p","panel_type":"artifacts"}]}"#,
        "GET {agent}/prompt?session={id}",
    ];
    let names = [("{session}", &*session), ("{agent}", agent), ("{id}", id)];
    asked.all(&names, &lines).await;
    let choice = json!({ "prompt": "?", "options": ["a", "b"] });
    let asks = json!({ "key": "q", "client": "multiple_choice", "props": choice, "lock": true });
    asked
        .post(
            &format!("{session}/messages"),
            say(json!([{ "start": [asks] }, { "reply": "x" }])),
        )
        .await;
    while asked.get(&session).await["ui_state"]["active_widget"].is_null() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let waits = asked
        .post(
            &format!("{session}/messages"),
            say(json!([{ "reply": "later" }])),
        )
        .await;
    let input = format!("{session}/inputs/{}", waits["input_id"].as_str().unwrap());
    asked.get(&input).await;
    inspect_agent(asked, agent).await;
    let lines = [
        "DELETE {input}?reason=changed",
        r#"POST {session}/cancel {"waiting":true}"#,
        "DELETE {session}/queue",
    ];
    let names = [("{session}", &*session), ("{input}", &*input)];
    asked.all(&names, &lines).await;
    let fork = asked
        .post(&format!("{session}/fork"), json!({ "message": 2 }))
        .await;
    let fork = fork["session_id"].as_str().unwrap().to_owned();
    let lines = [
        "GET {session}/diff?with={fork}",
        "GET /api/search?q=zebra",
        r#"POST /api/messages {"to":{"session":"{fork}"},"content":"zebra","priority":"low"}"#,
        r#"POST /api/messages {"to":{"smart":{"about":"zebra"}},"content":"zebra"}"#,
    ];
    let names = [("{session}", &*session), ("{fork}", &*fork)];
    asked.all(&names, &lines).await;
    session
}

/// Does what an operator and a primary user do.
async fn administer(asked: &mut ApiRequests<'_>, agent: &str) {
    let key = json!({ "user": "ada", "name": "k", "scopes": ["read", "write"] });
    let key = asked.post("/api/keys", key).await;
    asked.get("/api/keys?all=true").await;
    let key = format!("/api/keys/{}?reason=done", key["id"].as_str().unwrap());
    asked.ask(Method::DELETE, &key, Value::Null).await;
    asked.get("/api/keys?user=ada").await;
    let lines = [
        "PUT /api/users/ada/connectors/site:1",
        "GET /api/users/ada/connectors",
        "DELETE /api/users/ada/connectors/site:1",
        r#"POST {agent}/assign {"user_id":"ada","role":"mentee"}"#,
        r#"PUT {agent}/assignments/ada {"role":"observer"}"#,
        "DELETE {agent}/assignments/ada",
        r#"PATCH {agent}/preferences {"preferences":{"pace":"slow"}}"#,
        r#"PATCH {agent}/preferences {"mine":{"name":"Ada"}}"#,
        r#"PATCH {agent} {"name":"Renamed","config":{"description":"It teaches."}}"#,
        "GET /api/me",
        "GET /api/models",
        "GET /api/agents",
        "GET /api/paths",
        "GET /api/paths/fetch",
        "GET /api/personas",
        "GET /api/definitions",
        "GET /api/definitions/teaches",
        "GET /api/sessions",
        "GET /api/components",
        "GET /api/audit?limit=1000",
        "GET /api/store",
        "GET /api/clock",
        "GET /api/dead-letters",
        "GET /api/tasks",
        "GET /api/tasks/stats",
        "GET /api/config/pending",
        "GET /api/quarantine",
        "GET /api/rebuilds",
        "GET /api/session",
        "POST /api/backups",
        "POST /api/verifications",
        "POST /api/rebuilds",
        "POST /api/clock/confirm",
        "POST /api/config/reload",
        // A message to nobody, and one to all.
        r#"POST /api/messages {"content":"zebra"}"#,
        r#"POST /api/paths/messages {"content":"zebra"}"#,
    ];
    asked.all(&[("{agent}", agent)], &lines).await;
    go_and_come_back(asked, agent).await;
    asked
        .post(&format!("{agent}/archive"), json!({ "fresh": true }))
        .await;
}

/// Goes to another agent in the middle of a chat, and comes back with a summary.
async fn go_and_come_back(asked: &mut ApiRequests<'_>, agent: &str) {
    let opened = asked
        .post(
            &format!("{agent}/sessions"),
            json!({ "session_type": "chat" }),
        )
        .await;
    let from = format!(
        "{agent}/sessions/{}",
        opened["session_id"].as_str().unwrap()
    );
    let words = json!({ "steps": [{ "reply": "zebra" }] }).to_string();
    let switch = json!({ "agent": "listens", "message": words });
    let switched = asked.post(&format!("{from}/switch"), switch).await;
    let text = |name: &str| switched[name].as_str().unwrap();
    let there = format!(
        "/api/agents/{}/sessions/{}",
        text("agent_id"),
        text("session_id")
    );
    at_rest(asked, &there).await;
    let back = asked.post(&format!("{there}/return"), Value::Null).await;
    assert!(back["run_id"].is_string(), "{back}");
    at_rest(asked, &from).await;
}

/// Waits until a session has nothing to do.
async fn at_rest(asked: &mut ApiRequests<'_>, session: &str) {
    loop {
        let seen = asked.get(session).await;
        if seen["run_id"].is_null() && seen["waiting"] == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_the_document_describes_it_and_has_nothing_else() {
    let (_folder, host) = started().await;
    let mut asked = ApiRequests::new(&host).await;
    let agent = asked
        .post("/api/agents", json!({ "definition": "teaches" }))
        .await;
    let agent = format!("/api/agents/{}", agent["id"].as_str().unwrap());
    do_everything(&host, &agent).await;
    fill_in(&mut asked, &agent).await;
    let session = chat(&mut asked, &agent).await;
    let upload = host
        .request(Method::POST, &format!("{session}/files?name=a.txt"))
        .body("zebra");
    let uploaded = host.send(upload).await;
    asked.compare(&Method::POST, &format!("{session}/files"), &uploaded);
    inspect_agent(&mut asked, &agent).await;
    let id = session.rsplit('/').next().unwrap();
    let all = json!({ "waiting": true });
    asked.post(&format!("{session}/cancel"), all).await;
    asked.post(&format!("{session}/clear"), Value::Null).await;
    asked.ask(Method::DELETE, &session, Value::Null).await;
    let purge = json!({ "agent_id": agent.rsplit('/').next().unwrap(), "session_id": id });
    asked.post("/api/purges", purge).await;
    let events = asked.get("/api/events?limit=1000").await;
    let erased = events["events"].as_array().unwrap().iter();
    assert!(
        erased.filter(|event| event["data"].is_null()).count() > 0,
        "the data of what was purged is null: {events}"
    );
    administer(&mut asked, &agent).await;
    inspect_agent(&mut asked, &agent).await;
    assert!(asked.findings.is_empty(), "{:#?}", asked.findings);
    assert!(asked.compared > 100, "{}", asked.compared);
}

//! JSON that is nested as deep as it is accepted: what the host stores of it, it can read again.
//!
//! A parser stops at some depth, and what is stored stands deeper than where it came from: beside a
//! kind, under a user, in an outcome.

use super::{Stage, cut, end, question, send, stage};
use reqwest::Method;
use serde_json::{Value, json};

/// Lists in each other: few, and around as many as a body may have when the parser stops at 128.
const DEPTHS: [usize; 12] = [32, 64, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126];
/// The fields that take JSON of the client's own.
const PARTS: [&str; 6] = [
    "settings",
    "preferences",
    "mine",
    "config",
    "widget_partial_state",
    "response",
];

/// Sends an agent of its own something nested, and looks at everything that has it in it.
async fn nested(stage: &Stage, part: &str, depth: usize) -> Vec<String> {
    let host = &stage.host;
    let new = json!({ "definition": "asks", "path": format!("/local/agent/{part}-{depth}") });
    let made = host.post("/api/agents", &new).gives(201).await;
    let agent = format!("/api/agents/{}", made.text("id"));
    let session = host.open_as(&agent, "lesson").await;
    let call = question(host, &session).await;
    let lists = (0..depth).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let (method, path, body) = match part {
        "settings" => (
            Method::PATCH,
            agent.clone(),
            json!({ "settings": { "a": lists } }),
        ),
        "preferences" => (
            Method::PATCH,
            format!("{agent}/preferences"),
            json!({ "preferences": { "a": lists } }),
        ),
        "mine" => (
            Method::PATCH,
            format!("{agent}/preferences"),
            json!({ "mine": { "a": lists } }),
        ),
        "config" => (
            Method::POST,
            format!("{agent}/sessions"),
            json!({ "session_type": "chat", "config": { "a": lists } }),
        ),
        "widget_partial_state" => (
            Method::PUT,
            format!("{session}/ui-state"),
            json!({ "tool_call_id": call, "widget_partial_state": lists }),
        ),
        _ => (
            Method::POST,
            format!("{agent}/respond"),
            json!({ "tool_call_id": call, "response": { "confirmed": true, "a": lists } }),
        ),
    };
    let what = format!("`{part}` of {depth} lists in each other");
    let taken = match send(stage.ask(method, &path, &body)).await {
        Ok(said) if (200..300).contains(&said.status) => true,
        Ok(said) if matches!(said.status, 400 | 422) => false,
        Ok(said) => return vec![format!("{what}: {}", said.shown())],
        Err(lost) => return vec![format!("{what}: no answer: {}", cut(&lost))],
    };
    if taken && part == "response" {
        // It goes on with the answer, or nobody can look at it any more.
        let goes_on = |seen: &Value| {
            let status = seen["status"].as_str().unwrap_or_default();
            ["pending", "active", "awaiting_client_action"].contains(&status)
        };
        host.until(&session, |seen| !goes_on(seen)).await;
    }
    let id = made.text("id");
    let mut findings = Vec::new();
    for path in [
        agent.clone(),
        session.to_string(),
        format!("{agent}/sessions"),
        format!("{agent}/preferences"),
        format!("{session}/items"),
        format!("/api/events?agent={id}&limit=1000"),
    ] {
        match send(host.request(Method::GET, &path)).await {
            Ok(said) if said.status == 200 => {}
            Ok(said) => findings.push(format!("{what}, afterwards GET {path}: {}", said.shown())),
            Err(lost) => findings.push(format!(
                "{what}, afterwards GET {path}: no answer: {}",
                cut(&lost)
            )),
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_nested_as_deep_as_it_is_taken_is_read_again_also_after_a_restart() {
    let stage = stage().await;
    let mut findings = Vec::new();
    for part in PARTS {
        for depth in DEPTHS {
            findings.extend(nested(&stage, part, depth).await);
        }
    }
    let verified = stage.host.post("/api/verifications", &json!({})).await;
    if verified.body["intact"] != true {
        findings.push(format!("the chain: {}", verified.body));
    }
    let Stage { host, folder, .. } = stage;
    assert!(host.stop().await.success(), "{}", folder.log());
    let host = folder.serve().await;
    for path in [
        "/api/agents",
        "/api/events?limit=1000",
        "/api/audit?limit=1000",
        "/api/session/",
    ] {
        let answer = host.get(path).await;
        if answer.status != 200 {
            findings.push(format!(
                "after a restart, GET {path}: {}",
                cut(&format!("{answer:?}"))
            ));
        }
    }
    end(&findings);
}

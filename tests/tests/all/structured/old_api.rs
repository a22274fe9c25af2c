//! Sessions of the old API, in its old format.

use super::config;
use agent_host_tests::process::{Folder, Host, shows};
use reqwest::Method;
use serde_json::{Value, json};

/// A host with a tutor.
async fn with_tutor() -> (Folder, Host) {
    let mut config = config(&json!({}));
    config["agents"] = json!([{
        "agentId": "tutor", "displayName": "Tutor", "component": "tutor", "toolAllowlist": [],
    }]);
    Folder::serving(config, &["puppet", "tutor"]).await
}

/// A lesson of one question.
fn lesson() -> Value {
    json!({
        "title": "Sums", "questions": [{ "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0 }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_api_leads_sessions_in_its_old_format_and_says_that_it_is_deprecated() {
    let (_folder, host) = with_tutor().await;
    let lesson = lesson();
    let created = host
        .post(
            "/api/session/",
            &json!({ "session_type": "learning", "config": { "lesson": lesson } }),
        )
        .await;
    created.has(200, &json!({ "control_mode": "proactive" }));
    let session = format!("/api/session/{}", created.text("session_id"));
    assert_eq!(created.text("stream_url"), format!("{session}/stream"));
    let waiting = host.becomes(&session, "awaiting_client_action").await;
    assert_eq!(waiting["pending_action"]["widget_type"], "multiple_choice");
    let state = host.get(&format!("{session}/state")).await.body;
    assert_eq!(state["pending_action"], waiting["pending_action"]);
    let raw = host.request(Method::GET, &session).send().await.unwrap();
    assert!(raw.headers().contains_key("deprecation") && raw.headers().contains_key("link"));
    let mut frames = host
        .line()
        .follow(&format!("{session}/stream"), None)
        .await
        .unwrap();
    let again = frames.until("client_action").await.pop().unwrap().data;
    assert_eq!(
        again["tool_call_id"],
        waiting["pending_action"]["tool_call_id"]
    );
    assert_eq!(again["props"], waiting["pending_action"]["props"]);
    host.post(
        &format!("{session}/respond"),
        &json!({ "tool_call_id": "ab".repeat(32), "response": {} }),
    )
    .refused(409, "INVALID_TOOL_CALL_ID")
    .await;
    let call = &waiting["pending_action"]["tool_call_id"];
    host.post(
        &format!("{session}/respond"),
        &json!({ "tool_call_id": call, "response": { "index": 0 } }),
    )
    .gives(200)
    .await;
    let ended = host.becomes(&session, "completed").await;
    assert_eq!(
        (
            ended["items"].as_array().unwrap().len(),
            &ended["items"][0]["sequence"]
        ),
        (1, &json!(1))
    );
    let listed = host.get("/api/session/?session_type=learning").await.body;
    assert_eq!(
        (&listed[0]["id"], &listed[0]["items_completed"]),
        (&ended["id"], &json!(1))
    );
    assert_eq!(listed[0]["status"], "completed");
    assert_eq!(
        host.get("/api/session?session_type=learning").await.body,
        listed,
        "the slash may be left out"
    );
    for (limit, status) in [
        (json!("soon"), 422),
        (json!(-1), 422),
        (json!(1.5), 422),
        (json!(u64::MAX), 422),
    ] {
        let asked =
            json!({ "session_type": "learning", "config": { "time_limit_seconds": limit } });
        let refused = host.post("/api/session/", &asked).await;
        assert_eq!(
            (refused.status, refused.text("field").as_str()),
            (status, "/config/time_limit_seconds"),
            "{refused:?}"
        );
    }
    let unknown_sender = host.bare(Method::GET, &session).send().await.unwrap();
    assert!(
        unknown_sender.status() == 401 && unknown_sender.headers().contains_key("deprecation"),
        "also to whoever is not let in"
    );
    host.post("/api/session/", &json!({ "session_type": "dancing" }))
        .refused(400, "INVALID_SESSION_TYPE")
        .await;
    host.delete(&session)
        .refused(409, "NO_ACTIVE_SESSION")
        .await;
}

/// The old API has the old words in its lists too and keeps what a session was opened with.
#[tokio::test(flavor = "multi_thread")]
async fn the_old_api_lists_the_old_words_and_keeps_what_a_session_was_opened_with() {
    let (_folder, host) = with_tutor().await;
    let lesson = lesson();
    let opened_with = json!({ "lesson": lesson, "time_limit_seconds": 600 });
    let new = json!({
        "session_type": "learning", "config": opened_with, "system_prompt": "Be kind.",
        "model_id": "m",
    });
    let created = host.post("/api/session/", &new).gives(200).await;
    let session = format!("/api/session/{}", created.text("session_id"));
    let waiting = host.becomes(&session, "awaiting_client_action").await;
    let config = json!({
        "lesson": lesson, "time_limit_seconds": 600, "system_prompt": "Be kind.", "model_id": "m",
    });
    shows(
        &waiting,
        &json!({ "config": config, "system_prompt": "Be kind." }),
    );
    let status = async |query: &str| {
        let listed = host.get(&format!("/api/session/{query}")).await.body;
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["status"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for query in ["", "?active_only=true", "?session_type=learning"] {
        assert_eq!(status(query).await, ["awaiting_client_action"], "{query}");
    }
    let call = &waiting["pending_action"]["tool_call_id"];
    host.post(
        &format!("{session}/respond"),
        &json!({ "tool_call_id": call, "response": { "index": 0 } }),
    )
    .await;
    host.becomes(&session, "completed").await;
    assert_eq!(status("").await, ["completed"]);
    assert!(status("?active_only=true").await.is_empty());
    // A second one is ended by its user, without having been answered.
    let created = host
        .post(
            "/api/session/",
            &json!({ "session_type": "learning", "config": { "lesson": lesson } }),
        )
        .await;
    let session = format!("/api/session/{}", created.text("session_id"));
    host.becomes(&session, "awaiting_client_action").await;
    assert_eq!(status("").await, ["awaiting_client_action", "completed"]);
    host.delete(&session).await;
    assert_eq!(status("").await, ["terminated", "completed"]);
}

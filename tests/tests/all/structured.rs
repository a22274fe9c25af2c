//! Structured sessions over HTTP: suspended and resumed, expired, limited in time, remembered; the
//! agent's own story of them.

mod old_api;
mod streams;

use agent_host_tests::process::{Folder, Host, acting, is_asking, puppets, shows};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A puppet that asks once and completes.
fn asks() -> Value {
    json!([
        {
            "start": [{ "key": "q", "client": "confirmation", "lock": true }],
            "effects": [{ "say": "Here is a question." }],
        },
        {
            "complete": { "score": 1 },
            "effects": [
                {
                    "item": {
                        "prompt": "well?", "response": { "confirmed": true },
                        "evaluation": { "correct": true }, "asked": "q",
                    },
                },
                { "prefer": { "tone": "warm" } }, { "prefer_for_user": { "level": 2 } },
            ],
        },
    ])
}

/// A puppet that asks two things at once and completes when both have an outcome.
fn asks_two() -> Value {
    let ask = |key: &str| json!({ "key": key, "client": "confirmation" });
    json!([{ "start": [ask("a"), ask("b")], "until": "all" }, { "complete": {} }])
}

/// A puppet that asks one thing after the other and puts nothing on record.
fn asks_on() -> Value {
    let ask = |key: &str| json!({ "start": [{ "key": key, "client": "confirmation" }] });
    json!([ask("a"), ask("b"), { "complete": {} }])
}

fn config(sessions: &Value) -> Value {
    let agent = |id: &str, script: Value| {
        json!({
            "agentId": id, "displayName": id, "component": "puppet",
            "settings": { "script": { "steps": script } }, "sessions": sessions,
            "systemPrompt": "of the definition",
        })
    };
    let shows = json!([{ "show": true }]);
    puppets(&json!([
        agent("asks", asks()),
        agent("asks_two", asks_two()),
        agent("asks_on", asks_on()),
        agent("shows", shows)
    ]))
}

async fn started(sessions: Value) -> (Folder, Host) {
    Folder::serving(config(&sessions), &["puppet"]).await
}

/// The types of an agent's events that are about its sessions.
async fn story(host: &Host, agent: &str) -> Vec<String> {
    let id = agent.rsplit('/').next().unwrap();
    let events = host.events(&format!("&agent={id}")).await;
    let types = events
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned());
    types
        .filter(|kind| {
            kind.starts_with("agent.session")
                || kind.starts_with("agent.execution")
                || kind.starts_with("agent.client")
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_suspended_before_it_is_shown_and_completed_with_its_metrics() {
    let (folder, host) = started(json!({})).await;
    let session = host.open_as("asks", "lesson").await;
    let agent = session.agent();
    let seen = host.until(&session, is_asking).await;
    let pending = &seen["ui_state"]["active_widget"];
    shows(
        pending,
        &json!({ "tool_name": "q", "widget_type": "confirmation" }),
    );
    assert_eq!(seen["ui_state"]["chat_input_locked"], true);
    let execution = &seen["execution_state"];
    let expected = json!({
        "iteration": 1, "pending_tool_call/tool_call_id": pending["tool_call_id"],
    });
    shows(execution, &expected);
    assert_eq!(
        execution["conversation_snapshot"][0]["content"],
        "Here is a question."
    );
    // What is half filled in is there again after a crash, with everything else.
    let ui = json!({ "tool_call_id": pending["tool_call_id"], "widget_partial_state": { "half": true } });
    let saved = host.put(&format!("{session}/ui-state"), &ui).await;
    assert_eq!(
        (
            saved.status,
            &saved.body["ui_state"]["widget_partial_state"]
        ),
        (200, &json!({ "half": true }))
    );
    host.kill().await;
    let host = folder.serve().await;
    let again = host.until(&session, is_asking).await;
    shows(
        &again,
        &json!({ "ui_state/active_widget": pending, "execution_state": execution }),
    );
    assert_eq!(
        again["ui_state"]["widget_partial_state"],
        json!({ "half": true })
    );
    // A list says the same of it, and the session itself asks it.
    let sessions = session.rsplit_once('/').unwrap().0;
    let listed = host.get(sessions).await.body["sessions"][0].clone();
    assert_eq!(
        (
            &listed["status"],
            &again["status"],
            &again["pending_action"]
        ),
        (&again["status"], &json!("awaiting_client_action"), pending)
    );
    // The agent shows it too, but for the messages.
    let shown = host.get(agent).await.body["active_session"].clone();
    shows(
        &shown,
        &json!({ "status": "awaiting_client_action", "pending_action": pending }),
    );
    for name in [
        "run_id",
        "iteration",
        "tool_calls_made",
        "pending_tool_call",
        "started_at_ms",
        "suspended_at_ms",
    ] {
        assert_eq!(shown["execution_state"][name], execution[name], "{name}");
    }
    let expected = json!({
        "conversation_id": seen["conversation_id"], "started_at": seen["started_at"],
    });
    shows(&shown, &expected);
    // An answer that does not fit changes nothing; the right one goes on, once.
    let call = &pending["tool_call_id"];
    assert_eq!(
        host.respond(agent, call, &json!({ "confirmed": "maybe" }))
            .await
            .text("code"),
        "INVALID_RESPONSE"
    );
    host.confirm(agent, call).await;
    let ended = host.becomes(&session, "completed").await;
    let expected = json!({
        "summary": { "score": 1 }, "metrics/items": 1, "metrics/interactions": 1,
    });
    shows(&ended, &expected);
    assert!(ended["execution_state"].is_null() && ended["metrics"]["duration_ms"].is_u64());
    assert_eq!(
        ended["items"],
        host.get(&format!("{session}/items")).await.body["items"]
    );
    let listed = host.get(sessions).await.body["sessions"][0].clone();
    assert_eq!(listed["status"], "completed", "{listed}");
    assert_eq!(
        host.respond(agent, call, &json!({ "confirmed": true }))
            .await
            .text("code"),
        "NOT_SUSPENDED"
    );
    let seen = host.get(agent).await.body;
    assert_eq!(
        [
            &seen["total_sessions"],
            &seen["total_interactions"],
            &seen["successful_completions"]
        ],
        [&json!(1), &json!(1), &json!(1)]
    );
    assert_eq!(seen["session_history"][0]["status"], "completed");
    assert!(seen["current_session_id"].is_null() && seen["last_interaction_at"].is_string());
    assert!(seen["active_session"].is_null(), "{seen}");
    let items = host.get(&format!("{session}/items")).await.body;
    shows(
        &items,
        &json!({ "items/0/sequence": 1, "items/0/evaluation": { "correct": true } }),
    );
    let item = &items["items"][0];
    assert!(
        item["response_time_ms"].is_u64() && item["started_at"].is_string(),
        "{item}"
    );
    assert_eq!(item["client_action"]["widget_type"], "confirmation");
    assert_eq!(
        story(&host, agent).await,
        [
            "agent.session.started.v1",
            "agent.execution.suspended.v1",
            "agent.execution.resumed.v1",
            "agent.session.completed.v1"
        ]
    );
    let history = host.get(&format!("{agent}/history")).await.body;
    shows(
        &history,
        &json!({ "sessions/0/summary": { "score": 1 }, "next_after": null }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_expires_while_it_waits_and_frees_its_agent() {
    let (folder, host) = started(json!({})).await;
    let session = host
        .open_with(
            "asks",
            &json!({ "session_type": "lesson", "time_limit_s": 1 }),
        )
        .await;
    let agent = session.agent();
    host.until(&session, is_asking).await;
    host.post(
        &format!("{agent}/sessions"),
        &json!({ "session_type": "lesson" }),
    )
    .refused(409, "SESSION_ALREADY_ACTIVE")
    .await;
    host.kill().await;
    // Its time passes while no host runs.
    sleep(Duration::from_millis(1_100)).await;
    let host = folder.serve().await;
    let ended = host.becomes(&session, "terminated").await;
    assert_eq!(ended["terminated_reason"], "expired");
    let seen = host.get(agent).await.body;
    let expected = json!({
        "successful_completions": 0, "session_history/0/terminated_reason": "expired",
    });
    shows(&seen, &expected);
    host.open_as("asks", "lesson").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_has_its_time_and_the_agent_is_told_when_it_is_up() {
    let (_folder, host) = started(json!({ "lesson": { "itemTimeLimitS": 1 } })).await;
    let session = host.open_as("asks", "lesson").await;
    let agent = session.agent();
    host.becomes(&session, "completed").await;
    assert_eq!(
        story(&host, agent).await,
        [
            "agent.session.started.v1",
            "agent.execution.suspended.v1",
            "agent.client.action.withdrawn.v1",
            "agent.session.completed.v1"
        ]
    );
    assert_eq!(host.get(agent).await.body["total_interactions"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_of_one_step_do_not_pass_the_limit_together() {
    let (_folder, host) = started(json!({ "lesson": { "itemsMax": 1 } })).await;
    let session = host.open_as("asks_two", "lesson").await;
    let seen = host.until(&session, is_asking).await;
    assert_eq!(
        (seen["pending_action"].is_object(), &seen["further_actions"]),
        (true, &json!([])),
        "the second was refused: {seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_counts_against_the_limit_before_it_is_on_record() {
    let (_folder, host) = started(json!({ "lesson": { "itemsMax": 1 } })).await;
    let session = host.open_as("asks_on", "lesson").await;
    let agent = session.agent();
    let seen = host.until(&session, is_asking).await;
    host.confirm(agent, &seen["pending_action"]["tool_call_id"])
        .await;
    let ended = host.becomes(&session, "completed").await;
    // The second was refused.
    shows(
        &ended,
        &json!({ "metrics/interactions": 1, "metrics/items": 0 }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_begins_no_session_beside_the_one_that_is_ending() {
    let (_folder, host) = started(json!({})).await;
    let opened = host.open_as("asks", "lesson").await;
    let agent = opened.agent();
    for round in 0..30 {
        let path = format!("{agent}/sessions");
        let keyed = host
            .request(Method::POST, &path)
            .json(&json!({ "session_type": "lesson" }));
        let begin = host.send(keyed.header("idempotency-key", format!("round {round}")));
        let end = host.delete(&format!("{path}/current"));
        let (begun, ended) = tokio::join!(begin, end);
        assert!(
            [201, 409, 429].contains(&begun.status) && ended.status < 500,
            "{begun:?} {ended:?}"
        );
        let listed = host.get(&format!("{path}?limit=200")).await.body;
        let open: Vec<&Value> = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["completed_at"].is_null())
            .map(|it| &it["session_id"])
            .collect();
        let current = host.get(agent).await.body["current_session_id"].clone();
        assert!(
            open.len() <= 1 && open.first().map_or(&Value::Null, |id| *id) == &current,
            "round {round}: {open:?} {current}"
        );
        if current.is_null() {
            host.post(&path, &json!({ "session_type": "lesson" })).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_agent_leaves_no_run_open() {
    let (folder, host) = started(json!({})).await;
    let session = host.open_as("shows", "chat").await;
    let agent = session.agent();
    let script =
        json!({ "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] }).to_string();
    host.say(&session, &script).await;
    let seen = host
        .until(&session, |seen| seen["run_status"] == "awaiting_client")
        .await;
    // A follower of the agent is asked too.
    let asked = host
        .follow(&format!("{agent}/stream"), None)
        .await
        .until("client_action")
        .await
        .pop()
        .unwrap();
    assert_eq!(
        asked.data["tool_call_id"],
        seen["pending_action"]["tool_call_id"]
    );
    host.post(&format!("{agent}/archive"), &json!({ "reason": "no more" }))
        .gives(200)
        .await;
    let seen = host.until(&session, |seen| seen["run_id"].is_null()).await;
    assert!(
        seen["messages"]
            .to_string()
            .contains("the agent was archived"),
        "{seen}"
    );
    host.kill().await;
    let host = folder.serve().await;
    assert_eq!(host.get(&session).await.body["run_id"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_of_a_user_is_there_the_next_time_and_for_nobody_else() {
    let (_folder, host) = started(json!({})).await;
    let show = |seen: &Value| seen["messages"].to_string().contains("history");
    let reported = |seen: &Value| -> Value {
        let last = seen["messages"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .find(|it| it["role"] == "assistant")
            .unwrap()["text"]
            .clone();
        serde_json::from_str(last.as_str().unwrap()).unwrap()
    };
    let script = json!({
        "steps": [{
            "show": true,
            "effects": [{ "prefer": { "tone": "warm" } }, { "prefer_for_user": { "level": 2 } }],
        }],
    });
    let session = host
        .open_with(
            "shows",
            &json!({ "session_type": "chat", "config": { "lesson": { "title": "Sums" } } }),
        )
        .await;
    let agent = session.agent();
    host.say(&session, &script.to_string()).await;
    let first = reported(&host.until(&session, show).await);
    shows(
        &first,
        &json!({ "user": "local", "preferences": {}, "history": [] }),
    );
    assert_eq!(first["config"]["lesson"]["title"], "Sums");
    assert_eq!(first["settings"]["prompt"], "of the definition");
    // The agent gets a prompt and settings of its own; another user joins.
    let changes = json!({
        "name": "Ada", "system_prompt_override": "of the agent", "settings": { "extra": 1 },
    });
    let changed = host.patch(agent, &changes).await;
    changed.has(200, &json!({ "name": "Ada" }));
    host.assign(agent, "bob", "shared").await;
    let bob = host.user("bob", &["read", "write"]).await;
    let id = agent.rsplit('/').next().unwrap();
    host.post(
        &format!("/api/agents/{id}/sessions"),
        &json!({ "session_type": "lesson" }),
    )
    .gives(201)
    .await;
    host.delete(&format!("{agent}/sessions/current")).await;
    for (line, user, level) in [(host.line(), "local", json!(2)), (bob, "bob", Value::Null)] {
        let opened = line
            .post(
                &format!("{agent}/sessions"),
                &json!({ "session_type": "chat" }),
            )
            .await;
        let session = format!("{agent}/sessions/{}", opened.text("session_id"));
        let script = json!({ "steps": [{ "show": true }] }).to_string();
        line.say(&session, &script).await;
        let seen = reported(&host.until(&session, show).await);
        shows(&seen, &json!({ "user": user, "preferences/tone": "warm" }));
        assert_eq!(
            (
                &seen["preferences"]["level"],
                seen["history"].as_array().unwrap().len()
            ),
            (&level, 1),
            "{seen}"
        );
        assert_eq!(
            seen["history"][0]["user_id"], "local",
            "whoever sees the session is told whose it was: {seen}"
        );
        shows(
            &seen,
            &json!({ "settings/prompt": "of the agent", "settings/settings/extra": 1 }),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exam_that_is_broken_off_keeps_what_was_answered() {
    let mut config = config(&json!({}));
    config["agents"] = json!([{
        "agentId": "evaluator", "displayName": "Evaluator", "component": "evaluator",
        "toolAllowlist": [],
    }]);
    let (_folder, host) = Folder::serving(config, &["puppet", "evaluator"]).await;
    let item =
        |prompt: &str| json!({ "prompt": prompt, "options": ["right", "wrong"], "answer": 0 });
    let rubric = json!({ "criteria": [{ "id": "k", "description": "Knows." }], "pass_score": 60 });
    let exam =
        json!({ "title": "Rust", "rubric": rubric, "items": [item("1?"), item("2?"), item("3?")] });
    let asked = |seen: &Value, prompt: &str| {
        is_asking(seen) && seen["ui_state"]["active_widget"]["props"]["prompt"] == prompt
    };
    let opened = json!({ "session_type": "validation", "config": { "exam": exam } });
    let session = host.open_with("evaluator", &opened).await;
    let agent = session.agent();
    for (index, prompt) in [(0, "1?"), (1, "2?")] {
        let seen = host.until(&session, |seen| asked(seen, prompt)).await;
        host.respond(
            agent,
            &seen["ui_state"]["active_widget"]["tool_call_id"],
            &json!({ "index": index }),
        )
        .gives(202)
        .await;
    }
    host.until(&session, |seen| asked(seen, "3?")).await;
    host.delete(&format!("{agent}/sessions/current"))
        .gives(200)
        .await;
    let items = host.get(&format!("{session}/items")).await.body["items"].clone();
    let reported: Vec<(&Value, &Value)> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            (
                &item["agent_prompt"]["number"],
                &item["evaluation"]["score"],
            )
        })
        .collect();
    assert_eq!(
        reported,
        [(&json!(1), &json!(1.0)), (&json!(2), &json!(0.0))],
        "{items}"
    );
}

/// An agent shows its active session to those who see it, and nothing of it to another mentee.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_shows_its_active_session_to_those_who_see_it_and_no_other_mentee() {
    let (_folder, host) = started(json!({})).await;
    let session = host
        .open_with(
            "asks_two",
            &json!({ "session_type": "lesson", "time_limit_s": 600 }),
        )
        .await;
    let agent = session.agent();
    for (user, role) in [("bob", "mentee"), ("carol", "shared"), ("dana", "observer")] {
        host.assign(agent, user, role).await;
    }
    host.until(&session, is_asking).await;
    let scopes = ["read", "write"];
    for user in ["carol", "dana"] {
        let seen = host.user(user, &scopes).await.get(agent).await.body;
        let shown = &seen["active_session"];
        assert_eq!(
            (&shown["session_id"], &shown["started_by"]),
            (&seen["current_session_id"], &json!("local")),
            "{user} {seen}"
        );
        assert_eq!(
            (
                &shown["session_type"],
                &shown["further_actions"][0]["tool_name"]
            ),
            (&json!("lesson"), &json!("b")),
            "{user}"
        );
        assert!(
            shown["expires_at"].is_string() && shown["interactions"] == 0,
            "{user} {shown}"
        );
    }
    let bob = host.user("bob", &scopes).await;
    for path in [agent, "/api/agents"] {
        let seen = bob.get(path).await.body;
        let seen = if seen["agents"].is_array() {
            seen["agents"][0].clone()
        } else {
            seen
        };
        assert!(
            seen["active_session"].is_null()
                && seen["current_session_id"].is_null()
                && seen["is_suspended"] == false,
            "{seen}"
        );
        let id = session.id();
        assert!(!seen.to_string().contains(id), "{seen}");
    }
    // Their own they see.
    host.delete(&format!("{agent}/sessions/current"))
        .gives(200)
        .await;
    let opened = bob
        .post(
            &format!("{agent}/sessions"),
            &json!({ "session_type": "lesson" }),
        )
        .gives(201)
        .await;
    let seen = bob.get(agent).await.body;
    let expected = json!({
        "active_session/session_id": opened.body["session_id"],
        "active_session/started_by": "bob",
    });
    shows(&seen, &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nothing_waits_for_is_refused_in_the_designs_words_over_http() {
    let sleeps = json!([{ "start": [{ "key": "t", "timer": 600_000 }] }]);
    let (_folder, host) = Folder::serving(
        puppets(&json!([acting("asks", &asks()), acting("sleeps", &sleeps)])),
        &["puppet"],
    )
    .await;
    let wrong = "ab".repeat(32);
    let refused = async |agent: &str, call: &Value| {
        let refused = host
            .respond(agent, call, &json!({ "confirmed": true }))
            .await;
        (refused.status, refused.text("code"), refused.text("detail"))
    };
    let reported = |code: &str, words: &str| (409, code.to_owned(), words.to_owned());
    let session = host.open_as("sleeps", "lesson").await;
    let sleeping = session.agent();
    host.until(&session, |seen| seen["run_status"] == "running")
        .await;
    let none_pending = reported(
        "NOT_SUSPENDED",
        "Cannot receive response: no pending action",
    );
    assert_eq!(refused(sleeping, &json!(wrong)).await, none_pending);
    let session = host.open_as("asks", "lesson").await;
    let agent = session.agent();
    let call = host.until(&session, is_asking).await["pending_action"]["tool_call_id"].clone();
    let other = format!(
        "Response tool_call_id {wrong} doesn't match pending {}",
        call.as_str().unwrap()
    );
    assert_eq!(
        refused(agent, &json!(wrong)).await,
        reported("INVALID_TOOL_CALL_ID", &other)
    );
    host.confirm(agent, &call).await;
    host.becomes(&session, "completed").await;
    let no_session = reported(
        "NOT_SUSPENDED",
        "Cannot receive response: no active session",
    );
    assert_eq!(refused(agent, &call).await, no_session);
    assert_eq!(refused(agent, &json!(wrong)).await, no_session);
    // A mentee does not learn what another user's session asks for.
    let session = host.open_as("asks", "lesson").await;
    host.until(&session, is_asking).await;
    host.assign(agent, "bob", "mentee").await;
    let bob = host.user("bob", &["read", "write"]).await;
    let body = json!({ "tool_call_id": wrong, "response": {} });
    let reported = bob.post(&format!("{agent}/respond"), &body).await;
    assert_eq!(reported.text("detail"), no_session.2, "{reported:?}");
}

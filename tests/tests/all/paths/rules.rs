//! The operator's settings of agents by their paths: rules on subtrees, and the models of roles.

use super::{at, exchange, make, make_below, script, started};
use agent_host_tests::process::PATIENCE;
use agent_host_tests::{Setup, World};
use domain::event::Event;
use domain::message::Role;
use domain::path::ModelRole;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn rules_on_subtrees_hide_agents_and_make_others_read_only() {
    let rules = json!([
        { "subtree": "/local/agent/diary/**", "access": "none", "users": ["bob"] },
        { "subtree": "/local/**", "access": "read", "users": ["bob"] },
        { "subtree": "/bob/**", "access": "write", "users": ["bob"] },
        { "subtree": "/system/**", "access": "none", "users": ["bob", "carol"] },
    ]);
    let (_folder, host) = started(&json!({ "pathRules": rules })).await;
    let line = host.line();
    let bob = host.user("bob", &["read", "write", "admin"]).await;
    let mut sessions = Vec::new();
    for path in ["/local/agent/diary", "/local/agent/notes", "/system/clock"] {
        make(&line, path).await;
        sessions.push(exchange(&line, path, "hello").await);
        line.post(
            &format!("{}/assign", at(path)),
            &json!({ "user_id": "bob", "role": "primary" }),
        )
        .gives(201)
        .await;
    }
    make_below(&line, "/local/agent/diary", "sub").await;
    make(&bob, "/bob/agent/own").await;
    exchange(&bob, "/bob/agent/own", "mine").await;
    // What is hidden is not there: not by its path, not in a list, not as a session, not as a
    // stream.
    for hidden in [
        "/local/agent/diary",
        "/local/agent/diary/sub/0",
        "/system/clock",
    ] {
        assert_eq!(
            bob.get(&at(hidden)).await.text("code"),
            "AGENT_NOT_FOUND",
            "{hidden}"
        );
        assert_eq!(
            bob.follow(&format!("{}/stream", at(hidden)), None)
                .await
                .err(),
            Some(Some(404)),
            "{hidden}"
        );
        let archived = bob
            .post(&format!("{}/archive", at(hidden)), &json!({}))
            .await;
        assert_eq!(archived.text("code"), "AGENT_NOT_FOUND", "{hidden}");
    }
    let session = sessions[0]
        .trim_end_matches("/messages")
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(
        bob.get(&format!("/api/sessions/{session}"))
            .await
            .text("code"),
        "SESSION_NOT_FOUND"
    );
    let paths = |listed: &Value, name: &str| -> Vec<String> {
        let mut paths: Vec<String> = listed[name]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["path"].as_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    let seen = ["/bob/agent/own", "/local/agent/notes"];
    assert_eq!(paths(&bob.get("/api/agents").await.body, "agents"), seen);
    assert_eq!(paths(&bob.get("/api/paths").await.body, "paths"), seen);
    // What may be read is read and not commanded, whatever the role says.
    let notes = at("/local/agent/notes");
    assert_eq!(bob.get(&notes).await.text("role"), "primary");
    bob.get(sessions[1].trim_end_matches("/messages"))
        .gives(200)
        .await;
    for (method, path, body) in [
        (
            Method::POST,
            sessions[1].clone(),
            json!({ "content": script("no") }),
        ),
        (Method::POST, format!("{notes}/sessions"), json!({})),
        (Method::PATCH, notes.clone(), json!({ "name": "Mine" })),
        (Method::POST, format!("{notes}/archive"), json!({})),
        (
            Method::POST,
            format!("{notes}/archive"),
            json!({ "fresh": true }),
        ),
        (Method::POST, format!("{notes}/abort"), json!({})),
        (
            Method::POST,
            format!("{}/cancel", sessions[1].trim_end_matches("/messages")),
            json!({}),
        ),
        (
            Method::POST,
            format!("{}/cancel", sessions[1].trim_end_matches("/messages")),
            json!({ "waiting": true }),
        ),
        (
            Method::POST,
            format!("{notes}/assign"),
            json!({ "user_id": "carol", "role": "shared" }),
        ),
        (
            Method::POST,
            "/api/agents".to_owned(),
            json!({
                "definition": "puppet", "parent": { "path": "/local/agent/notes" }, "kind": "sub",
            }),
        ),
    ] {
        let refused = bob.ask(method, &path, Some(&body)).await;
        assert_eq!(
            (refused.status, refused.text("code").as_str()),
            (403, "PATH_FORBIDDEN"),
            "{path} {refused:?}"
        );
    }
    let made = bob
        .post(
            "/api/agents",
            &json!({ "definition": "puppet", "path": "/system/mine" }),
        )
        .await;
    assert_eq!(
        (made.text("code").as_str(), made.text("field").as_str()),
        ("PATH_FORBIDDEN", "/path"),
        "{made:?}"
    );
    // Of whom no rule says anything, roles alone decide.
    exchange(&line, "/local/agent/diary", "dear").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_a_path_has_its_model_unless_message_or_session_say_another() {
    let mut setup = Setup::default();
    setup.definitions[1]["model"] = json!("m");
    setup.paths.models = [
        (ModelRole::User, "large".to_owned()),
        (ModelRole::Subagent, "small".to_owned()),
    ]
    .into();
    let world = World::new(setup).await;
    let inner = json!({ "steps": [{ "reply": "done" }] }).to_string();
    world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": inner }] }]))
        .await;
    let session = world.open("puppet").await;
    let mut message = world.message("puppet", session, &inner, None);
    message.model = Some("m".to_owned());
    world.broker.messages().post(message).await.unwrap();
    world.idle(session).await;
    let events = world.events().await;
    let models: Vec<Option<String>> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::RunStarted(started) => Some(started.model),
            _ => None,
        })
        .collect();
    // The one that was handed work has the model of its role, although its definition names
    // another.
    assert_eq!(
        models,
        ["large", "small", "m"].map(|model| Some(model.to_owned()))
    );
}

/// Returns the model that was asked in a task for this target.
async fn asked_by(target: &str, model: Option<&str>, roles: &[(ModelRole, &str)]) -> String {
    let script = json!({ "steps": [{ "start": [{ "key": "m", "model": "x" }] }] });
    let mut setup = Setup::default();
    setup.definitions.push(json!({
        "agentId": target, "displayName": target, "component": "puppet", "model": model,
        "settings": { "script": script },
    }));
    setup.paths.models = roles
        .iter()
        .map(|(role, alias)| (*role, (*alias).to_owned()))
        .collect();
    let world = World::new(setup).await;
    let task = match target {
        "coder" => json!({ "operation": "generate_code", "parameters": { "spec": "a sum" } }),
        _ => json!({ "operation": "deep_research", "parameters": { "query": "the tides" } }),
    };
    let mut arguments = json!({ "target": target });
    let task = task.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(task);
    let call = json!({ "key": "a", "tool": "delegate", "args": arguments });
    world.play(json!([{ "start": [call] }])).await;
    let of_task = world.starts().await.pop().unwrap().session;
    let messages = world.messages(of_task).await;
    let said = messages
        .into_iter()
        .find(|message| message.role == Role::Assistant);
    said.unwrap().origin
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_of_delegations_asks_the_model_of_its_role_if_its_definition_has_none() {
    let research = (ModelRole::Research, "deep");
    let code = (ModelRole::Code, "deep");
    let other = (ModelRole::Subagent, "m");
    for (target, model, roles, asked) in [
        ("researcher", None, vec![research, other], "model:deep"),
        ("coder", None, vec![code, other], "model:deep"),
        ("coder", Some("m"), vec![code], "model:m"),
        ("researcher", None, vec![code], "model:m"),
        (
            "researcher",
            None,
            vec![(ModelRole::Subagent, "deep")],
            "model:deep",
        ),
    ] {
        assert_eq!(asked_by(target, model, &roles).await, asked, "{roles:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_spawned_sessions_leaves_out_those_that_a_rule_hides() {
    let agent = |id: &str| json!({ "agentId": id, "displayName": id, "component": "puppet" });
    let rules =
        json!([{ "subtree": "/local/agent/notes/sub/0/**", "access": "none", "users": ["bob"] }]);
    let (_folder, host) =
        started(&json!({ "agents": [agent("puppet"), agent("other")], "pathRules": rules })).await;
    let line = host.line();
    let bob = host.user("bob", &["read"]).await;
    make(&line, "/local/agent/notes").await;
    let notes = at("/local/agent/notes");
    line.assign(&notes, "bob", "primary").await;
    let session = line
        .post(
            &format!("{notes}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await
        .text("session_id");
    let steps = json!({
        "steps": [{ "start": [{ "key": "d", "agent": "other", "text": script("hidden") }] }],
    });
    let messages = format!("{notes}/sessions/{session}/messages?wait_s=30");
    let said = line
        .post(&messages, &json!({ "content": steps.to_string() }))
        .await;
    assert_eq!(
        (said.status, &said.body["reply"]["text"]),
        (200, &json!("d parts hidden")),
        "{said:?}"
    );
    for (reader, sessions) in [(&line, 2), (&bob, 1)] {
        let mut frames = reader
            .follow(
                &format!("{notes}/stream?view=log&session={session}&spawned=true&after=0"),
                None,
            )
            .await
            .unwrap();
        let shown = async {
            let mut shown = BTreeSet::new();
            loop {
                let frame = frames.receive().await.expect("a frame");
                shown.insert(frame.data["session_id"].to_string());
                if frame.event == "run.ended.v1" && frame.data["session_id"] == json!(session) {
                    break shown;
                }
            }
        };
        let shown = tokio::time::timeout(PATIENCE, shown)
            .await
            .expect("the end of the turn");
        assert_eq!(shown.len(), sessions, "{shown:?}");
    }
}

//! The living hierarchy: listed, printed, present or dead, and where messages and replies without
//! an address go.
//!
//! The operator's settings of agents by their paths: rules on subtrees, and the models of roles.

use super::{at, exchange, make, make_below, script, started};
use agent_host_tests::World;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Line, PATIENCE, shows, tells};
use domain::event::Event;
use domain::message::Role;
use domain::path::ModelRole;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

async fn listed(line: &Line, query: &str) -> Vec<String> {
    let page = line.get(&format!("/api/paths?{query}")).gives(200).await;
    let paths = page.body["paths"].as_array().unwrap();
    paths
        .iter()
        .map(|entry| entry["path"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_living_hierarchy_is_listed_by_paths_and_printed_as_a_tree() {
    let (folder, host) = started(&json!({})).await;
    let line = host.line();
    for path in ["/local/agent/x", "/local/agent/x-y", "/local/telegram"] {
        make(&line, path).await;
    }
    for (parent, kind) in [
        ("/local/agent/x", "sub"),
        ("/local/agent/x/sub/0", "memory"),
        ("/local/agent/x", "search"),
    ] {
        make_below(&line, parent, kind).await;
    }
    exchange(&line, "/local/agent/x", "hello").await;
    let below = [
        "/local/agent/x",
        "/local/agent/x/search/1",
        "/local/agent/x/sub/0",
        "/local/agent/x/sub/0/memory",
    ];
    assert_eq!(listed(&line, "under=/local/agent/x").await, below);
    assert_eq!(
        listed(&line, "under=/local/agent/x&depth=1").await,
        &below[..3]
    );
    assert_eq!(
        listed(&line, "under=/local/agent/x&depth=0").await,
        &below[..1]
    );
    assert_eq!(listed(&line, "under=/local&kind=memory").await, &below[3..]);
    assert_eq!(
        listed(&line, "depth=0").await,
        ["/local/agent/x", "/local/agent/x-y", "/local/telegram"]
    );
    assert_eq!(listed(&line, "under=/system").await, Vec::<String>::new());
    // Page by page.
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let page = line.get(&format!("/api/paths?limit=2{after}")).await;
        pages.extend(
            page.body["paths"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["path"].as_str().unwrap().to_owned()),
        );
        match page.body["next_after"].as_str() {
            Some(next) => after = format!("&after={}", next.replace('/', "%2F")),
            None => break,
        }
    }
    assert_eq!(pages, listed(&line, "").await);
    let page = line.get("/api/paths?under=/local/agent/x&depth=0").await;
    let entry = &page.body["paths"][0];
    shows(
        entry,
        &json!({ "open_sessions": 1, "open_runs": 0, "residency": "active" }),
    );
    let wrong = line.get("/api/paths?under=/local/agent/x/odd").await;
    wrong.has(400, &json!({ "field": "query:under" }));
    // Nobody sees what is not theirs.
    assert_eq!(
        listed(&host.user("bob", &["read"]).await, "under=/local").await,
        Vec::<String>::new()
    );
    let printed = folder.run(&["agents", "tree", "/local/agent/x"]).await;
    let lines: Vec<String> = String::from_utf8(printed.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let indents: Vec<(usize, &str)> = lines
        .iter()
        .map(|line| (line.len() - line.trim_start().len(), line.trim_start()))
        .collect();
    assert_eq!(
        indents
            .iter()
            .map(|(indent, _)| *indent)
            .collect::<Vec<_>>(),
        [0, 2, 2, 4],
        "{lines:?}"
    );
    assert!(
        indents[0]
            .1
            .starts_with("/local/agent/x  agent  x  active  sessions 1, running 0"),
        "{lines:?}"
    );
    let json = folder.run(&["agents", "tree", "--json"]).await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["paths"].as_array().unwrap().len(), 6);
}

/// An agent that was made for a piece of work is dead some time after it and stays readable.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_made_for_a_piece_of_work_is_dead_after_it_and_stays_readable() {
    let (_folder, host) =
        started(&json!({ "limits": { "idleSignalMs": 100, "poisonPillMs": 1_500 } })).await;
    let line = host.line();
    make(&line, "/local/agent/x").await;
    let worker = make_below(&line, "/local/agent/x", "sub").await;
    let messages = exchange(&line, "/local/agent/x/sub/0", "done").await;
    let own = exchange(&line, "/local/agent/x", "hello").await;
    let becomes = async |path: &str, residency: &str| {
        let query = format!("/api/paths?under={path}&depth=0");
        until(async || line.get(&query).await.body["paths"][0]["residency"] == residency).await;
    };
    becomes("/local/agent/x/sub/0", "sleeping").await;
    becomes("/local/agent/x/sub/0", "dead").await;
    becomes("/local/agent/x", "sleeping").await;
    let refused = line
        .post(&messages, &json!({ "content": script("more") }))
        .refused(409, "AGENT_DEAD")
        .await;
    assert_eq!(
        refused.text("detail"),
        format!("Agent is dead: {}", worker.text("id"))
    );
    let opened = line
        .post(
            &format!("{}/sessions", at("/local/agent/x/sub/0")),
            &json!({}),
        )
        .await;
    assert_eq!(opened.text("code"), "AGENT_DEAD");
    let session = line.get(messages.trim_end_matches("/messages")).await;
    assert!(
        session.body["messages"].to_string().contains("done"),
        "{session:?}"
    );
    // Whom people talk with only sleeps, and wakes.
    let said = line
        .post(
            &format!("{own}?wait_s=30"),
            &json!({ "content": script("awake") }),
        )
        .await;
    assert_eq!(said.body["reply"]["text"], "awake", "{said:?}");
    // One that never had any work is not dead before it.
    make_below(&line, "/local/agent/x", "sub").await;
    sleep(Duration::from_millis(1_600)).await;
    exchange(&line, "/local/agent/x/sub/1", "late").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_an_address_goes_to_the_agent_that_was_used_last() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    line.get("/api/paths/fetch")
        .refused(404, "AGENT_NOT_FOUND")
        .await;
    for path in [
        "/local/agent/a",
        "/local/telegram",
        "/local/cron/c",
        "/system/heartbeat",
    ] {
        make(&line, path).await;
    }
    for path in ["/local/telegram", "/local/agent/a", "/local/cron/c"] {
        exchange(&line, path, "hello").await;
    }
    assert_eq!(
        line.get("/api/paths/fetch").await.text("path"),
        "/local/agent/a"
    );
    exchange(&line, "/local/telegram", "hello").await;
    assert_eq!(
        line.get("/api/paths/fetch?strategy=most-recent-foreground")
            .await
            .text("path"),
        "/local/telegram"
    );
    assert_eq!(
        line.get("/api/paths/fetch?strategy=heartbeat")
            .await
            .text("path"),
        "/system/heartbeat"
    );
    assert_eq!(
        line.get("/api/paths/fetch?strategy=lucky")
            .await
            .text("field"),
        "query:strategy"
    );
    // And there such a message goes.
    let say = |to: Value| {
        let mut body = json!({ "content": script("heard") });
        if !to.is_null() {
            body["to"] = to;
        }
        line.post("/api/messages?wait_s=30", &body)
    };
    let goes_to = async |to: Value, path: &str| {
        let said = say(to).await;
        let agent = line.get(&at(path)).await.text("id");
        assert_eq!(
            (
                said.text("agent_id"),
                said.text("level").as_str(),
                &said.body["reply"]["text"]
            ),
            (agent, "strategy", &json!("heard")),
            "{said:?}"
        );
    };
    goes_to(Value::Null, "/local/telegram").await;
    goes_to(json!({ "strategy": "heartbeat" }), "/system/heartbeat").await;
    exchange(&line, "/local/agent/a", "hello").await;
    goes_to(Value::Null, "/local/agent/a").await;
    goes_to(
        json!({ "strategy": "most-recent-foreground" }),
        "/local/agent/a",
    )
    .await;
    for wrong in [
        json!({}),
        json!({ "strategy": "heartbeat", "agent": "/local/agent/a" }),
    ] {
        let refused = say(wrong).await;
        refused.has(422, &json!({ "field": "/to" }));
    }
    // Who has nobody to talk with is told so.
    let bob = host.user("bob", &["read", "write"]).await;
    let body = json!({ "content": script("heard") });
    bob.post("/api/messages", &body)
        .refused(404, "AGENT_NOT_FOUND")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_key_says_who_somebody_is_and_where_replies_go() {
    let connector = json!({
        "component": "direct", "agent": "puppet",
        "configuration": { "origins": ["https://www.example.org"] },
    });
    let connectors = json!({ "telegram": connector, "sms": connector });
    let (folder, host) = started(&json!({ "connectors": connectors })).await;
    let line = host.line();
    let alice = host.user("alice", &["read", "write"]).await;
    make(&alice, "/alice/telegram").await;
    make(&alice, "/alice/agent/x").await;
    let target = |path: &str| format!("{}/reply-target", at(path));
    alice
        .get(&target("/alice/telegram"))
        .refused(409, "NO_REPLY_TARGET")
        .await;
    // Only the operator binds a sender to a user; no user can, not even for themselves.
    let put = |line: &Line, path: &str| line.ask(Method::PUT, path, None);
    let key = "/api/users/alice/connectors/telegram:123";
    assert_eq!(put(&alice, key).await.text("code"), "SCOPE_MISSING");
    assert_eq!(
        (
            put(&line, key).await.status,
            put(&line, key).await.text("target_id").as_str()
        ),
        (200, "123")
    );
    put(&line, "/api/users/bob/connectors/telegram:123")
        .refused(409, "CONNECTOR_KEY_BOUND")
        .await;
    assert_eq!(
        put(&line, "/api/users/alice/connectors/telegram")
            .await
            .text("field"),
        "path:key"
    );
    assert_eq!(
        alice.get(&target("/alice/telegram")).await.body,
        json!({ "connector": "telegram", "target_id": "123" })
    );
    assert_eq!(
        alice.get(&target("/alice/agent/x")).await.text("code"),
        "NO_REPLY_TARGET"
    );
    // Two that fit are none: nobody says which is meant.
    folder
        .succeeds(&["connector", "bind", "alice", "telegram:456"])
        .await;
    assert_eq!(
        alice.get(&target("/alice/telegram")).await.text("code"),
        "NO_REPLY_TARGET"
    );
    folder
        .succeeds(&["connector", "unbind", "alice", "telegram:123"])
        .await;
    assert_eq!(
        alice
            .get(&target("/alice/telegram"))
            .await
            .text("target_id"),
        "456"
    );
    let listed = folder.run(&["connector", "list", "alice", "--json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(
        (
            listed["connectors"].as_array().unwrap().len(),
            &listed["connectors"][0]["key"]
        ),
        (1, &json!("telegram:456"))
    );
    assert_eq!(alice.get("/api/users/alice/connectors").await.body, listed);
    assert_eq!(
        alice.get("/api/users/bob/connectors").await.text("code"),
        "SCOPE_MISSING"
    );
    line.delete(key)
        .refused(404, "CONNECTOR_KEY_NOT_FOUND")
        .await;
    // Whom two bind to two users at the same time, one of them has.
    let both = ["alice", "bob"].map(|user| format!("/api/users/{user}/connectors/sms:1"));
    let (one, two) = tokio::join!(put(&line, &both[0]), put(&line, &both[1]));
    let mut finished = [one.status, two.status];
    finished.sort_unstable();
    assert_eq!(finished, [200, 409]);
}

/// Messages that arrive together at one path are one turn there, and none of another path's.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_arrive_together_are_collected_by_their_path() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    let paths = ["/local/agent/a", "/local/telegram"];
    let slow = json!({ "steps": [{ "start": [{ "key": "t", "timer": 4_000 }] }] }).to_string();
    let mut sessions = Vec::new();
    for path in paths {
        make(&line, path).await;
        let body = json!({ "to": { "agent": path }, "content": slow });
        let said = line.post("/api/messages", &body).gives(202).await;
        let session = format!("/api/sessions/{}", said.text("session_id"));
        // What is said before a turn has begun is a part of it.
        until(async || !line.get(&session).await.body["run_id"].is_null()).await;
        sessions.push(session);
    }
    for words in ["one", "two"] {
        for path in paths {
            let queue = json!({ "mode": "collect", "debounce_ms": 20 });
            let content = format!("{words} for {path}");
            let body = json!({ "to": { "agent": path }, "content": content, "queue": queue });
            let said = line.post("/api/messages", &body).await;
            assert_eq!(said.text("waits_for"), "collect", "{said:?}");
        }
    }
    for (path, session) in paths.into_iter().zip(&sessions) {
        let seen = found(async || {
            let seen = line.get(session).await.body;
            (seen["revision"] == 2 && seen["waiting"] == 0 && seen["run_id"].is_null())
                .then_some(seen)
        })
        .await;
        let users: Vec<&str> = seen["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "user")
            .map(|message| message["text"].as_str().unwrap())
            .collect();
        let [_, collected] = users.as_slice() else {
            panic!("{users:?}")
        };
        for words in ["one", "two"] {
            tells(collected, &[&format!("{words} for {path}")]);
        }
        assert_eq!(collected.matches(" for /local/").count(), 2, "{collected}");
    }
}

/// A message to all of a user's agents goes to those that people talk with, by their paths' kinds.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_all_goes_to_the_agents_that_people_talk_with() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    for path in [
        "/local/telegram",
        "/local/agent/a",
        "/local/cron/c",
        "/system/gc",
    ] {
        make(&line, path).await;
        exchange(&line, path, "hello").await;
    }
    make(&line, "/local/agent/silent").await;
    let body = json!({ "content": script("back") });
    let send = || line.ask_under("k", Method::POST, "/api/paths/messages", Some(&body));
    let sent = send().gives(202).await;
    let outcomes = sent.body["sent"].as_array().unwrap();
    let paths: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/local/agent/a", "/local/telegram"]);
    for outcome in outcomes {
        assert_eq!(outcome["code"], Value::Null, "{outcome}");
        let session = format!("/api/sessions/{}", outcome["session_id"].as_str().unwrap());
        until(async || {
            line.get(&session).await.body["messages"]
                .as_array()
                .is_some_and(|all| all.last().is_some_and(|last| last["text"] == "back"))
        })
        .await;
    }
    let again = send().await;
    let inputs = |answer: &Value| -> Vec<Value> {
        let sent = answer["sent"].as_array().unwrap().iter();
        sent.map(|outcome| outcome["input_id"].clone()).collect()
    };
    assert_eq!(
        inputs(&again.body),
        inputs(&sent.body),
        "none hears it twice"
    );
}

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
        let rows = [
            "GET {hidden} => 404 AGENT_NOT_FOUND",
            "GET {hidden}/stream => 404 AGENT_NOT_FOUND",
            "POST {hidden}/archive {} => 404 AGENT_NOT_FOUND",
        ];
        bob.answers(&[("{hidden}", &*at(hidden))], &rows).await;
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
    let said = json!({ "content": script("no") }).to_string();
    let names: [(&str, &str); 3] = [
        ("{session}", sessions[1].trim_end_matches("/messages")),
        ("{notes}", &notes),
        ("{said}", &said),
    ];
    let rows = [
        "POST {session}/messages {said} => 403 PATH_FORBIDDEN",
        "POST {notes}/sessions {} => 403 PATH_FORBIDDEN",
        r#"PATCH {notes} {"name":"Mine"} => 403 PATH_FORBIDDEN"#,
        "POST {notes}/archive {} => 403 PATH_FORBIDDEN",
        r#"POST {notes}/archive {"fresh":true} => 403 PATH_FORBIDDEN"#,
        "POST {notes}/abort {} => 403 PATH_FORBIDDEN",
        "POST {session}/cancel {} => 403 PATH_FORBIDDEN",
        r#"POST {session}/cancel {"waiting":true} => 403 PATH_FORBIDDEN"#,
        r#"POST {notes}/assign {"user_id":"carol","role":"shared"} => 403 PATH_FORBIDDEN"#,
        r#"POST /api/agents {"definition":"puppet","parent":{"path":"/local/agent/notes"},"kind":"sub"} => 403 PATH_FORBIDDEN"#,
        r#"POST /api/agents {"definition":"puppet","path":"/system/mine"} => 403 PATH_FORBIDDEN /path"#,
    ];
    bob.answers(&names, &rows).await;
    // Of whom no rule says anything, roles alone decide.
    exchange(&line, "/local/agent/diary", "dear").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_a_path_has_its_model_unless_message_or_session_say_another() {
    let world = World::with(|setup| {
        setup.definitions[1]["model"] = json!("m");
        setup.paths.models = [
            (ModelRole::User, "large".to_owned()),
            (ModelRole::Subagent, "small".to_owned()),
        ]
        .into();
    })
    .await;
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
    let world = World::with(|setup| {
        setup.definitions.push(json!({
            "agentId": target, "displayName": target, "component": "puppet", "model": model,
            "settings": { "script": script },
        }));
        setup.paths.models = roles
            .iter()
            .map(|(role, alias)| (*role, (*alias).to_owned()))
            .collect();
    })
    .await;
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

//! Agents by their paths, over HTTP: made, found, talked with and awaited, listed as a hierarchy,
//! hidden and read-only by rules, and dead.

mod hierarchy;

use agent_host_tests::process::{Answer, Folder, Host, Line, puppet, puppets, tells};
use reqwest::Method;
use serde_json::{Value, json};

/// A host with a puppet, and what else its configuration says.
async fn started(more: &Value) -> (Folder, Host) {
    let mut config = puppets(&json!([puppet()]));
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Folder::serving(config, &["puppet"]).await
}

async fn make(line: &Line, path: &str) -> Answer {
    let made = line
        .post(
            "/api/agents",
            &json!({ "definition": "puppet", "path": path }),
        )
        .await;
    assert_eq!(made.status, 201, "{path} {made:?}");
    made
}

async fn make_below(line: &Line, parent: &str, kind: &str) -> Answer {
    let new = json!({ "definition": "puppet", "parent": { "path": parent }, "kind": kind });
    let made = line.post("/api/agents", &new).await;
    assert_eq!(made.status, 201, "{parent} {kind} {made:?}");
    made
}

/// An agent as a route names it by its path.
fn at(path: &str) -> String {
    format!("/api/agents/{}", path.replace('/', "%2F"))
}

/// A session of an agent's, and what it answers in it.
async fn exchange(line: &Line, path: &str, words: &str) -> String {
    let opened = line
        .post(
            &format!("{}/sessions", at(path)),
            &json!({ "session_type": "chat" }),
        )
        .gives(201)
        .await;
    let messages = format!(
        "{}/sessions/{}/messages",
        at(path),
        opened.text("session_id")
    );
    let said = line
        .post(
            &format!("{messages}?wait_s=30"),
            &json!({ "content": script(words) }),
        )
        .await;
    assert_eq!(
        (
            said.status,
            &said.body["reply"]["text"],
            &said.body["outcome"]
        ),
        (200, &json!(words), &json!("replied")),
        "{said:?}"
    );
    messages
}

fn script(words: &str) -> String {
    json!({ "steps": [{ "reply": words }] }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_agent_is_made_and_addressed_by_its_path() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    let mut made = Vec::new();
    for (path, kind, role) in [
        ("/local/telegram", "connector", json!("user")),
        ("/local/agent/reader", "agent", json!("user")),
        ("/local/cron/nightly", "cron", json!(null)),
        ("/local/task/t.1", "task", json!("task")),
        ("/local/subuser/bob", "subuser", json!("user")),
        ("/local/app/notes", "app", json!(null)),
        ("/system/heartbeat", "system", json!(null)),
    ] {
        made.push((
            make(&line, path).await,
            path.to_owned(),
            kind,
            role,
            json!(null),
        ));
    }
    let reader = "/local/agent/reader";
    for (kind, path, role) in [
        ("sub", "/local/agent/reader/sub/0", "subagent"),
        ("memory", "/local/agent/reader/memory", "memory"),
        ("search", "/local/agent/reader/search/1", "memorySearch"),
    ] {
        made.push((
            make_below(&line, reader, kind).await,
            path.to_owned(),
            kind,
            json!(role),
            json!(reader),
        ));
    }
    let nested = make_below(&line, "/local/agent/reader/sub/0", "sub").await;
    let above = json!("/local/agent/reader/sub/0");
    made.push((
        nested,
        "/local/agent/reader/sub/0/sub/0".to_owned(),
        "sub",
        json!("subagent"),
        above,
    ));
    for (made, path, kind, role, parent) in made {
        let found = line.get(&at(&path)).await;
        assert_eq!(
            (found.text("id"), found.text("path")),
            (made.text("id"), path.clone())
        );
        assert_eq!(
            (
                found.text("kind").as_str(),
                &found.body["model_role"],
                &found.body["parent_path"]
            ),
            (kind, &role, &parent),
            "{path}"
        );
        assert!(!found.text("label").is_empty(), "{path}");
        exchange(&line, &path, kind).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_none_or_not_ones_own_is_refused_with_the_segment_and_the_fix() {
    let (_folder, host) = started(&json!({})).await;
    let alice = host.user("alice", &["read", "write"]).await;
    for (path, reported) in [
        ("/alice/agent", "segment 3"),
        ("/alice/agent/sub", "segment 3"),
        ("/alice/Telegram", "segment 2"),
        ("/alice/agent/x/odd", "segment 4"),
        ("alice/agent/x", "does not begin with"),
        ("/bob/agent/x", "segment 1"),
        ("/alice/agent/x/sub/7", "`parent`"),
        ("/alice/agent/x/memory", "`parent`"),
    ] {
        let new = json!({ "definition": "puppet", "path": path });
        let refused = alice
            .post("/api/agents", &new)
            .refused(422, "INVALID")
            .await;
        assert_eq!(refused.text("field"), "/path", "{path}");
        tells(&refused.text("detail"), &[reported]);
    }
    let mine =
        [r#"POST /api/agents {"definition":"puppet","path":"/system/mine"} => 403 SCOPE_MISSING"#];
    alice.answers(&[], &mine).await;
    make(&alice, "/alice/agent/x").await;
    // Below an agent, only users who may set it up can make one.
    let names = [(
        "{below}",
        r#""definition":"puppet","parent":{"path":"/alice/agent/x"}"#,
    )];
    let bob = host.user("bob", &["read", "write"]).await;
    let rows = [r#"POST /api/agents {{below},"kind":"sub"} => 404 AGENT_NOT_FOUND"#];
    bob.answers(&names, &rows).await;
    let rows = [
        r#"POST /api/agents {{below},"kind":"cron"} => 422 * /kind"#,
        r#"POST /api/agents {{below},"kind":"wife"} => 422 * /kind"#,
        r#"POST /api/agents {"definition":"puppet","kind":"sub"} => 422 * /parent"#,
        r#"POST /api/agents {"definition":"puppet","parent":{},"kind":"sub"} => 422 * /parent"#,
        r#"POST /api/agents {"definition":"puppet","parent":{"agentId":"x"},"kind":"sub"} => 422 * /parent/agentId"#,
        r#"POST /api/agents {{below},"kind":"memory"} => 201"#,
        r#"POST /api/agents {{below},"kind":"memory"} => 409 PATH_TAKEN"#,
    ];
    alice.answers(&names, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archiving_frees_the_path_and_whoever_lives_there_next_has_another_id() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    let first = make(&line, "/local/agent/reader").await.text("id");
    line.post(
        "/api/agents",
        &json!({ "definition": "puppet", "path": "/local/agent/reader" }),
    )
    .refused(409, "PATH_TAKEN")
    .await;
    line.post(
        &format!("{}/archive", at("/local/agent/reader")),
        &json!({}),
    )
    .gives(200)
    .await;
    line.get(&at("/local/agent/reader")).gives(404).await;
    let second = make(&line, "/local/agent/reader").await.text("id");
    assert_ne!(first, second);
    assert_eq!(
        line.get(&at("/local/agent/reader")).await.text("id"),
        second
    );
    assert_eq!(
        line.get(&format!("/api/agents/{first}"))
            .await
            .text("status"),
        "archived"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_are_made_below_one_at_the_same_time_never_share_a_number() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    make(&line, "/local/agent/reader").await;
    let kinds = [
        "sub", "search", "sub", "sub", "search", "sub", "search", "sub",
    ];
    let made =
        futures::future::join_all(kinds.map(|kind| make_below(&line, "/local/agent/reader", kind)))
            .await;
    let mut numbers: Vec<u32> = made
        .iter()
        .map(|made| {
            made.text("path")
                .rsplit('/')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..8).collect::<Vec<u32>>());
    // A memory agent has no number, and takes none.
    make_below(&line, "/local/agent/reader", "memory").await;
    assert_eq!(
        make_below(&line, "/local/agent/reader", "sub")
            .await
            .text("path"),
        "/local/agent/reader/sub/8"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_about_an_agent_is_merged_field_by_field_and_shown_whole() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    let config = json!({
        "name": "Ada", "username": "ada", "description": "Reads.", "system_prompt": "Be brief.",
    });
    let new = json!({ "definition": "puppet", "path": "/local/agent/reader", "config": config });
    let made = line.post("/api/agents", &new).await;
    assert_eq!(
        (
            made.status,
            &made.body["config"],
            made.text("name").as_str()
        ),
        (201, &config, "Ada"),
        "{made:?}"
    );
    assert_eq!(
        (
            made.text("system_prompt_override").as_str(),
            made.text("label").as_str()
        ),
        ("Be brief.", "Ada (@ada)")
    );
    let change = json!({ "config": { "name": "Bea", "description": null } });
    let patch = || {
        host.request(Method::PATCH, &at("/local/agent/reader"))
            .header("idempotency-key", "k")
            .json(&change)
    };
    let changed = host.send(patch()).await;
    let after = json!({
        "name": "Bea", "username": "ada", "system_prompt": "Be brief.",
    });
    assert_eq!(
        (changed.status, &changed.body["config"]),
        (200, &after),
        "{changed:?}"
    );
    // The same request is the same request, whatever has happened since.
    line.patch(
        &at("/local/agent/reader"),
        &json!({ "config": { "system_prompt": null, "workspace_dir": null, "app_id": null } }),
    )
    .gives(200)
    .await;
    assert_eq!(host.send(patch()).await.body["config"], after);
    let seen = line.get(&at("/local/agent/reader")).await;
    assert_eq!(
        (
            &seen.body["config"],
            seen.text("name").as_str(),
            seen.text("label").as_str()
        ),
        (
            &json!({ "name": "Bea", "username": "ada" }),
            "Bea",
            "Bea (@ada)"
        )
    );
    // Both ways refuse the same, with what says it instead.
    for (field, value, reported) in [
        ("username", "a b", "write letters"),
        ("workspace_dir", "work", "`directories`"),
        ("app_id", "shop", "`/<user>/app/<name>`"),
    ] {
        let config = json!({ field: value });
        let new = json!({ "definition": "puppet", "path": "/local/agent/x", "config": config });
        let patch = json!({ "config": config });
        let reader = at("/local/agent/reader");
        for (method, path, body) in [
            (Method::POST, "/api/agents", &new),
            (Method::PATCH, reader.as_str(), &patch),
        ] {
            let wrong = line.ask(method, path, Some(body)).await;
            assert_eq!(
                (wrong.status, wrong.text("field")),
                (422, format!("/config/{field}"))
            );
            assert!(wrong.text("detail").contains(reported), "{wrong:?}");
        }
    }
    let two = json!({ "name": "Ada", "config": { "name": "Bea" } });
    let wrong = line.patch(&at("/local/agent/reader"), &two).await;
    wrong.has(422, &json!({ "field": "/config/name" }));
    // Nobody has said what this one is called.
    make(&line, "/local/agent/claude").await;
    let unnamed = line.get(&at("/local/agent/claude")).await;
    assert_eq!(
        (unnamed.text("label").as_str(), &unnamed.body["config"]),
        ("claude", &json!({}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_awaited_as_long_as_one_likes_and_all_turns_are_stopped_by_path() {
    let (_folder, host) = started(&json!({})).await;
    let line = host.line();
    make(&line, "/local/agent/reader").await;
    let messages = exchange(&line, "/local/agent/reader", "at once").await;
    let long = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }] }] }).to_string();
    let waited = line
        .post(&format!("{messages}?wait_s=1"), &json!({ "content": long }))
        .await;
    assert_eq!(
        (waited.status, waited.body.get("outcome")),
        (202, None),
        "{waited:?}"
    );
    assert!(waited.text("stream_url").contains("after="), "{waited:?}");
    let awaiting = line
        .post(&format!("{messages}?wait_s=0"), &json!({ "content": long }))
        .await;
    awaiting.has(400, &json!({ "field": "query:wait_s" }));
    let waits = json!({ "content": long, "queue": { "mode": "followup" } });
    assert_eq!(
        line.post(&messages, &waits).await.text("waits_for"),
        "followup"
    );
    let stopped = line
        .post(
            &format!("{}/abort", at("/local/agent/reader")),
            &json!({ "reason": "enough" }),
        )
        .await;
    stopped.has(200, &json!({ "stopped": 1 }));
    let again = line
        .post(&format!("{}/abort", at("/local/agent/reader")), &json!({}))
        .await;
    assert_eq!(again.body["stopped"], 0);
    let next = line
        .post(
            &format!("{messages}?wait_s=30"),
            &json!({ "content": script("again") }),
        )
        .await;
    assert_eq!(next.body["reply"]["text"], "again", "{next:?}");
}

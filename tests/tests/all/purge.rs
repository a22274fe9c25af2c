//! Purging over HTTP and from the command line: what was said in a deleted session is in no file of
//! the data folder any more, what others point to stays, and a process that dies in the middle of
//! it brings it to its end.

mod others;

use super::keyvalue::shelved;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Answer, Folder, Host, PATIENCE, Reply, script, shows};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Marks that stand only in what is purged: as words, as the argument of a call and its result, as
/// a name, in a note, as an attribute.
const MARKS: [&str; 6] = [
    "xylophonist",
    "argumentative",
    "resultant",
    "nameplate",
    "notebookish",
    "attributive",
];

async fn started() -> (Folder, Host) {
    Folder::serving(shelved("session"), &["puppet", "shelf"]).await
}

#[track_caller]
fn ask(host: &Host, method: Method, path: &str, body: Value) -> Reply {
    let request = host
        .request(method, path)
        .header("idempotency-key", uuid::Uuid::new_v4().to_string());
    host.send(match body {
        Value::Null => request,
        body => request.json(&body),
    })
}

/// Opens a session; the agent, and the session.
async fn open(host: &Host, definition: &str) -> (String, String) {
    let opened = host.open(definition).await;
    (opened.agent_id().to_owned(), opened.id().to_owned())
}

fn path(agent: &str, session: &str) -> String {
    format!("/api/agents/{agent}/sessions/{session}")
}

/// Plays a script in a session, and waits for its end.
async fn play(host: &Host, at: &str, steps: Value) -> Value {
    let before = host.get(at).await.body["revision"].as_u64();
    let said = json!({ "content": script(&steps) });
    ask(host, Method::POST, &format!("{at}/messages"), said)
        .gives(202)
        .await;
    host.until(at, |seen| {
        seen["revision"].as_u64() > before && seen["run_id"].is_null()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_works_for_a_session_that_was_purged_meanwhile_ends_and_tells_nobody() {
    let mut config = shelved("session");
    config["agents"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "agentId": "other", "displayName": "Other", "component": "puppet" }));
    config["components"]["puppet"]["agents"] = json!(["*"]);
    let (_folder, host) = Folder::serving(config, &["puppet", "shelf"]).await;
    let (agent, session) = open(&host, "puppet").await;
    let long = json!({
        "steps": [{ "start": [{ "key": "t", "timer": 4_000 }] }, { "reply": "xylophonist" }],
    })
    .to_string();
    let at = path(&agent, &session);
    play(
        &host,
        &at,
        json!([
            { "start": [{ "key": "d", "agent": "other", "text": long, "detached": true }] },
            { "reply": "handed over" },
        ]),
    )
    .await;
    ask(&host, Method::DELETE, &at, Value::Null)
        .gives(200)
        .await;
    ask(
        &host,
        Method::POST,
        "/api/purges",
        json!({ "agent_id": agent, "session_id": session }),
    )
    .gives(200)
    .await;
    until(async || host.events_of("run.ended.v1").await.len() >= 2).await;
    assert!(host.stop().await.success());
}

/// A session that has all the marks in it: the agent, and the session.
async fn marked(host: &Host) -> (String, String) {
    let (agent, session) = open(host, "puppet").await;
    let at = path(&agent, &session);
    let label = json!({ "name": "the nameplate", "attributes": { "kind": "attributive" } });
    ask(host, Method::PATCH, &at, label).gives(200).await;
    let call = json!({ "do": [["set", "argumentative", "resultant"], ["get", "argumentative"]] });
    let seen = play(
        host,
        &at,
        json!([{ "start": [{ "key": "t", "tool": "keep", "args": call }] }]),
    )
    .await;
    assert!(seen["messages"].to_string().contains("resultant"), "{seen}");
    let effects =
        json!([{ "remember": "a notebookish note" }, { "state": { "of": "xylophonist" } }]);
    play(
        host,
        &at,
        json!([{ "effects": effects, "reply": "a xylophonist" }]),
    )
    .await;
    (agent, session)
}

async fn delete(host: &Host, agent: &str, session: &str) {
    ask(host, Method::DELETE, &path(agent, session), Value::Null)
        .gives(200)
        .await;
}

async fn purge(host: &Host, agent: &str, session: Option<&str>) -> Answer {
    ask(
        host,
        Method::POST,
        "/api/purges",
        json!({ "agent_id": agent, "session_id": session }),
    )
    .await
}

/// Returns the marks that are left in the files of a folder, compiled code excepted.
fn holders(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    holders_of(&MARKS, folder)
}

fn holders_of(marks: &[&'static str], folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders_of(marks, &path));
            continue;
        }
        if path.ends_with("ballast") || path.to_string_lossy().contains("component") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let holds = |mark: &str| {
            bytes
                .windows(mark.len())
                .any(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
        };
        found.extend(
            marks
                .iter()
                .copied()
                .filter(|mark| holds(mark))
                .map(|mark| (path.clone(), mark)),
        );
    }
    found
}

async fn intact(host: &Host) -> Value {
    let verified = host.post("/api/verifications", &json!({})).await.body;
    assert_eq!(verified["intact"], true, "{verified}");
    verified
}

/// Folds everything again: what was not as the events say.
async fn rebuilt(host: &Host) -> Value {
    host.post("/api/rebuilds", &json!({})).gives(202).await;
    host.until("/api/rebuilds", |seen| seen["state"] != "running")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_said_in_a_purged_session_is_left_in_the_data_folder() {
    let (folder, host) = started().await;
    let (agent, session) = marked(&host).await;
    let data = folder.data();
    let before = holders(&data);
    assert!(
        MARKS
            .iter()
            .all(|mark| before.iter().any(|(_, leased)| leased == mark)),
        "{before:?}"
    );
    delete(&host, &agent, &session).await;
    assert!(
        !holders(&data).is_empty(),
        "deleting takes nothing out of the files"
    );
    let purged = purge(&host, &agent, Some(&session)).await;
    purged.has(200, &json!({ "files_rewritten": true }));
    assert_eq!(holders(&data), []);
    let erased = &purged.body["erased"];
    let kept = &purged.body["kept"];
    shows(
        erased,
        &json!({ "sessions": 1, "turns": 2, "bucket_keys": 1 }),
    );
    assert_eq!(kept, &json!({ "turns": 0, "bucket_writes": 0 }));
    assert_eq!(intact(&host).await["erased"], erased["events"]);
    let rebuild = rebuilt(&host).await;
    shows(
        &rebuild,
        &json!({ "state": "done", "replaced": [], "index_replaced": false }),
    );
    // What is made of it later has nothing either.
    host.post("/api/backups", &json!({})).gives(201).await;
    assert_eq!(holders(&data), []);
    let events = host.events(&format!("&session={session}")).await;
    let reported: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        reported[reported.len() - 3..],
        ["session.deleted.v1", "purge.begun.v1", "purge.done.v1"]
    );
    let opened = events
        .iter()
        .find(|event| event["type"] == "session.opened.v1")
        .unwrap();
    assert_eq!(
        opened["data"],
        json!(null),
        "it was opened, and nothing else is known of that"
    );
    assert!(host.stop().await.success());
    assert_eq!(holders(&data), []);
    let host = folder.serve().await;
    intact(&host).await;
    assert_eq!(
        host.get("/api/dead-letters").await.body["dead_letters"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_session_is_gone_for_everybody_and_is_told_apart_from_one_that_never_was() {
    let (_folder, host) = started().await;
    let (agent, session) = marked(&host).await;
    let at = path(&agent, &session);
    let never = uuid::Uuid::new_v4().to_string();
    let names: [(&str, &str); 3] = [
        ("{agent}", &agent),
        ("{session}", &session),
        ("{never}", &never),
    ];
    let rows = [
        r#"POST /api/purges {"agent_id":"{agent}","session_id":"{session}"} => 409 SESSION_NOT_DELETED"#,
        r#"POST /api/purges {"agent_id":"{agent}"} => 409 AGENT_NOT_ARCHIVED"#,
        r#"POST /api/purges {"agent_id":"{agent}","session_id":"{never}"} => 404 SESSION_NOT_FOUND"#,
        r#"POST /api/purges {"agent_id":"{never}","session_id":"{session}"} => 404 AGENT_NOT_FOUND"#,
        r#"POST /api/purges {"agent_id":"puppet","session_id":"{session}"} => 404 AGENT_NOT_FOUND"#,
    ];
    host.answers(&names, &rows).await;
    delete(&host, &agent, &session).await;
    host.get(&at).refused(404, "SESSION_NOT_FOUND").await;
    // No user's key does, whatever it is good for.
    let admin = host.user("ada", &["read", "write", "admin"]).await;
    let body = json!({ "agent_id": agent, "session_id": session });
    admin
        .post("/api/purges", &body)
        .refused(403, "OPERATOR_ONLY")
        .await;
    let asked = || {
        host.request(Method::POST, "/api/purges")
            .header("idempotency-key", "once")
            .json(&body)
    };
    let first = host.send(asked()).gives(200).await;
    for again in [
        host.send(asked()).await,
        purge(&host, &agent, Some(&session)).await,
    ] {
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "it was purged once"
        );
    }
    let rows = [
        "GET {at} => 410 SESSION_PURGED",
        "GET /api/sessions/{session} => 410 SESSION_PURGED",
        "GET {at}/items => 410 SESSION_PURGED",
        "GET {at}/tree => 410 SESSION_PURGED",
        "GET {at}/export => 410 SESSION_PURGED",
        "GET {at}/inputs => 410 SESSION_PURGED",
        "POST {at}/fork => 410 SESSION_PURGED",
        "DELETE {at} => 410 SESSION_PURGED",
        r#"POST {at}/messages {"content":"hello"} => 410 SESSION_PURGED"#,
    ];
    let names: [(&str, &str); 2] = [("{at}", &at), ("{session}", &session)];
    host.answers(&names, &rows).await;
    let (_, other) = open(&host, "puppet").await;
    let seen = play(
        &host,
        &path(&agent, &other),
        json!([{ "reply": "the agent goes on" }]),
    )
    .await;
    assert!(seen["messages"].to_string().contains("the agent goes on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_a_purged_session_keeps_what_it_shares_with_it() {
    let (folder, host) = started().await;
    let (agent, session) = marked(&host).await;
    let at = path(&agent, &session);
    let fork = ask(
        &host,
        Method::POST,
        &format!("{at}/fork"),
        json!({ "name": "a fork" }),
    )
    .gives(201)
    .await;
    let forked = path(&agent, &fork.text("session_id"));
    play(&host, &at, json!([{ "reply": "after the fork" }])).await;
    delete(&host, &agent, &session).await;
    let purged = purge(&host, &agent, Some(&session)).await;
    assert_eq!(
        (
            &purged.body["erased"]["turns"],
            &purged.body["kept"]["turns"]
        ),
        (&json!(1), &json!(2)),
        "{purged:?}"
    );
    let seen = host.get(&forked).await.body;
    assert!(
        seen["messages"].to_string().contains("a xylophonist"),
        "{seen}"
    );
    let left: Vec<&str> = holders(&folder.data())
        .into_iter()
        .map(|(_, mark)| mark)
        .collect();
    assert!(
        left.contains(&"xylophonist")
            && !left.contains(&"nameplate")
            && !left.contains(&"attributive"),
        "{left:?}"
    );
    intact(&host).await;
    assert_eq!(rebuilt(&host).await["replaced"], json!([]));
    // It goes on, with its state.
    play(&host, &forked, json!([{ "reply": "and on" }])).await;
    host.get(&format!("{forked}/export")).gives(200).await;
    delete(&host, &agent, &fork.text("session_id")).await;
    assert_eq!(
        purge(&host, &agent, Some(&fork.text("session_id")))
            .await
            .body["erased"]["turns"],
        3
    );
    assert_eq!(holders(&folder.data()), []);
    intact(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_agent_is_purged_with_its_sessions_from_the_command_line() {
    let (folder, host) = started().await;
    let (agent, _) = marked(&host).await;
    let (_, deleted) = open(&host, "puppet").await;
    delete(&host, &agent, &deleted).await;
    ask(
        &host,
        Method::POST,
        &format!("/api/agents/{agent}/archive"),
        json!({ "reason": "a nameplate less" }),
    )
    .gives(200)
    .await;
    let unsaid = folder.run(&["session", "purge", "--agent", &agent]).await;
    assert_eq!(unsaid.status.code(), Some(2), "{unsaid:?}");
    assert!(!holders(&folder.data()).is_empty());
    let done = folder
        .succeeds(&["session", "purge", "--agent", &agent, "--yes", "--json"])
        .await;
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    shows(&done, &json!({ "erased/sessions": 2, "erased/turns": 2 }));
    assert_eq!(holders(&folder.data()), []);
    host.get(&format!("/api/agents/{agent}"))
        .refused(410, "AGENT_PURGED")
        .await;
    intact(&host).await;
    assert_eq!(rebuilt(&host).await["replaced"], json!([]));
    // The definition's agent is another one from here on.
    let (next, _) = open(&host, "puppet").await;
    assert_ne!(next, agent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_the_process_dies_in_comes_to_its_end_at_the_next_start() {
    for point in [
        "store.purge.begin:1",
        "store.purge.unsaved:2",
        "store.purge.erased:4",
        "store.purge.rewritten",
    ] {
        let (folder, host) = started().await;
        let (agent, session) = marked(&host).await;
        delete(&host, &agent, &session).await;
        assert!(host.stop().await.success());
        let mut host = folder.start(Some(point)).await.unwrap();
        let asked = |host: &Host| {
            let body = json!({ "agent_id": agent, "session_id": session });
            host.request(Method::POST, "/api/purges")
                .header("idempotency-key", "once")
                .json(&body)
        };
        assert!(host.send(asked(&host)).attempt().await.is_err(), "{point}");
        assert!(
            host.died(PATIENCE).await.is_some(),
            "{point} was never passed"
        );
        let host = folder.serve().await;
        assert_eq!(holders(&folder.data()), [], "{point}");
        intact(&host).await;
        let again = host.send(asked(&host)).await;
        assert_eq!(
            (again.status, &again.body["erased"]["turns"]),
            (200, &json!(2)),
            "{point}: {again:?}"
        );
        assert_eq!(rebuilt(&host).await["replaced"], json!([]), "{point}");
        assert!(host.stop().await.success());
    }
}

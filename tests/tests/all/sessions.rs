//! Sessions as labels on a tree of turns, over HTTP: named, pinned, forked, cleared, deleted,
//! compared, carried out and in, searched.

mod carrying;

use agent_host_tests::process::{Folder, Frames, Host, Line, Reply, puppets, shows};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A host with an agent of the operator's, and a mentee of it.
struct Stage {
    host: Host,
    folder: Folder,
    ada: Line,
    bob: Line,
    /// The agent's path in the API.
    agent: String,
}

async fn stage() -> Stage {
    let asks = json!([
        { "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": { "score": 1 } },
    ]);
    let agent = json!({
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "settings": { "script": { "steps": asks } },
    });
    let (folder, host) = Folder::serving(puppets(&json!([agent])), &["puppet"]).await;
    let scopes = ["read", "write"];
    let ada = host.user("ada", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    let agent = ada.make("puppet").await;
    ada.assign(&agent, "bob", "mentee").await;
    Stage {
        host,
        folder,
        ada,
        bob,
        agent,
    }
}

#[track_caller]
fn ask(line: &Line, method: Method, path: &str, body: Value) -> Reply {
    let body = match body {
        Value::Null => None,
        body => Some(body),
    };
    line.ask(method, path, body.as_ref())
}

impl Stage {
    fn path(&self, session: &str) -> String {
        format!("{}/sessions/{session}", self.agent)
    }

    async fn open(&self, line: &Line) -> String {
        line.open_as(&self.agent, "chat").await.id().to_owned()
    }

    /// Sends a message that is answered with the same text. Returns the turn that it became.
    async fn say(&self, line: &Line, session: &str, words: &str) -> String {
        let path = self.path(session);
        let before = line.get(&path).await.body["revision"].as_u64().unwrap();
        line.play(&path, &json!([{ "reply": words }])).await;
        let seen = line
            .until(&path, |seen| {
                seen["revision"].as_u64() > Some(before) && seen["run_id"].is_null()
            })
            .await;
        assert!(
            seen["messages"]
                .to_string()
                .contains(&format!("\"{words}\"")),
            "{seen}"
        );
        seen["turn_id"].as_str().unwrap().to_owned()
    }

    async fn listed(&self, line: &Line, query: &str) -> Vec<String> {
        let listed = line
            .get(&format!("{}/sessions{query}", self.agent))
            .gives(200)
            .await;
        listed.body["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["session_id"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn found(&self, line: &Line, words: &str) -> Vec<Value> {
        let found = line.get(&format!("/api/search?q={words}")).gives(200).await;
        found.body["hits"].as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_renamed_pinned_and_noted_of_and_that_counts_as_an_update() {
    let stage = stage().await;
    let first = stage.open(&stage.ada).await;
    let second = stage.open(&stage.ada).await;
    let third = stage.open(&stage.bob).await;
    let change = |line: &Line, session: &str, body: Value| {
        ask(line, Method::PATCH, &stage.path(session), body)
    };
    let before = stage.ada.get(&stage.path(&first)).await;
    sleep(Duration::from_millis(5)).await;
    let named = change(
        &stage.ada,
        &first,
        json!({ "name": "Greek", "attributes": { "topic": "verbs", "level": 2 } }),
    )
    .await;
    named.has(200, &json!({ "name": "Greek" }));
    assert!(
        named.text("updated_at") > before.text("updated_at"),
        "{named:?}"
    );
    assert_eq!(
        stage.listed(&stage.ada, "").await[0],
        first,
        "it was changed last"
    );
    let noted = change(
        &stage.ada,
        &first,
        json!({ "name": null, "attributes": { "level": null } }),
    )
    .await;
    shows(
        &noted.body,
        &json!({ "name": null, "attributes": { "topic": "verbs" } }),
    );
    // What changes nothing is no update.
    let same = change(
        &stage.ada,
        &first,
        json!({ "attributes": { "topic": "verbs" } }),
    )
    .await;
    assert_eq!(same.text("updated_at"), noted.text("updated_at"));
    for session in [&first, &second] {
        change(&stage.ada, session, json!({ "pinned": true }))
            .gives(200)
            .await;
        sleep(Duration::from_millis(5)).await;
    }
    // The last pin first, also when the other session is changed after it.
    change(&stage.ada, &first, json!({ "name": "again" })).await;
    assert_eq!(
        stage.listed(&stage.ada, "?pinned=true").await,
        [second.clone(), first.clone()]
    );
    assert_eq!(
        stage.listed(&stage.ada, "?pinned=false").await,
        [third.as_str()]
    );
    let page = stage
        .ada
        .get(&format!("{}/sessions?pinned=true&limit=1", stage.agent))
        .await;
    let next = format!("?pinned=true&after={}", page.text("next_after"));
    assert_eq!(stage.listed(&stage.ada, &next).await, [first.as_str()]);
    assert_eq!(
        change(&stage.ada, &first, json!({ "pinned": false }))
            .await
            .body["pinned_at"],
        json!(null)
    );
    // A mentee has a say in their own alone.
    change(&stage.bob, &first, json!({ "name": "mine" }))
        .refused(404, "SESSION_NOT_FOUND")
        .await;
    change(&stage.bob, &third, json!({ "name": "mine" }))
        .gives(200)
        .await;
    for body in [
        json!({ "name": "" }),
        json!({ "name": "a\nb" }),
        json!({ "attributes": { "x": "y".repeat(16 << 10) } }),
    ] {
        change(&stage.ada, &first, body)
            .refused(422, "INVALID")
            .await;
    }
    assert_eq!(
        stage.ada.get(&stage.path(&first)).await.text("name"),
        "again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_forked_at_any_turn_and_neither_changes_the_other() {
    let stage = stage().await;
    let ada = &stage.ada;
    let session = stage.open(&stage.ada).await;
    let fork = |line: &Line, body: Value| {
        ask(
            line,
            Method::POST,
            &format!("{}/fork", stage.path(&session)),
            body,
        )
    };
    fork(ada, json!({})).refused(409, "THREAD_EMPTY").await;
    let first = stage.say(ada, &session, "one").await;
    let second = stage.say(ada, &session, "two").await;
    let at_head = fork(ada, json!({ "name": "the end" })).await;
    at_head.has(201, &json!({ "turn_id": second, "name": "the end" }));
    let early = fork(ada, json!({ "turn_id": first })).await;
    assert_eq!(
        (early.text("turn_id"), early.text("base_turn_id")),
        (first.clone(), first.clone()),
        "{early:?}"
    );
    shows(&early.body, &json!({ "last_message": 2, "revision": 0 }));
    assert_eq!(early.text("last_snippet"), "one");
    let by_message = fork(ada, json!({ "message": 1 })).await;
    assert_eq!(by_message.text("turn_id"), first);
    let branch = stage
        .say(ada, &early.text("session_id"), "another two")
        .await;
    assert_eq!(
        ada.get(&stage.path(&session)).await.text("turn_id"),
        second,
        "the other one stays"
    );
    let seen = ada.get(&stage.path(&early.text("session_id"))).await.body["messages"].to_string();
    assert!(
        seen.contains("\"one\"") && seen.contains("\"another two\"") && !seen.contains("\"two\""),
        "{seen}"
    );
    let path = stage.path(&session);
    let names: [(&str, &str); 4] = [
        ("{path}", &path),
        ("{branch}", &branch),
        ("{first}", &first),
        ("{nowhere}", &"ab".repeat(32)),
    ];
    let rows = [
        // A turn that is in no thread of the session's, and one that is nowhere.
        r#"POST {path}/fork {"turn_id":"{branch}"} => 201"#,
        r#"POST {path}/fork {"turn_id":"{nowhere}"} => 404 TURN_NOT_FOUND"#,
        r#"POST {path}/fork {"message":99} => 422 INVALID"#,
        r#"POST {path}/fork {"turn_id":"{first}","message":1} => 422 INVALID"#,
        r#"POST {path}/fork {"turn_id":"x"} => 422 INVALID_FIELD"#,
    ];
    ada.answers(&names, &rows).await;
    fork(&stage.bob, json!({}))
        .refused(404, "SESSION_NOT_FOUND")
        .await;
    // Of a session of one's own, at a turn of somebody else's.
    let own = stage.open(&stage.bob).await;
    stage
        .bob
        .post(
            &format!("{}/fork", stage.path(&own)),
            &json!({ "turn_id": first }),
        )
        .refused(404, "TURN_NOT_FOUND")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_its_users_alone_and_lists_its_sessions() {
    let stage = stage().await;
    let sessions = format!("{}/sessions", stage.agent);
    let open = |line: &Line| {
        let id = "7f1c9f0e-52d4-4c1b-9a54-0a8d2f5f7a11";
        let body = json!({ "session_type": "chat", "conversation_id": id });
        ask(line, Method::POST, &sessions, body)
    };
    let path = "/api/conversations/7f1c9f0e-52d4-4c1b-9a54-0a8d2f5f7a11";
    stage
        .ada
        .get(path)
        .refused(404, "CONVERSATION_NOT_FOUND")
        .await;
    let opened = [open(&stage.ada).await, open(&stage.ada).await];
    assert_eq!(opened.each_ref().map(|answer| answer.status), [201, 201]);

    let seen = stage.ada.get(path).await.body;
    let mut listed: Vec<&str> = seen["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(id_of)
        .collect();
    let mut expected: Vec<&str> = opened.iter().map(|answer| id_of(&answer.body)).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!((listed, &seen["user_id"]), (expected, &json!("ada")));

    // Another user neither joins nor sees it, although they share the agent.
    open(&stage.bob).refused(409, "CONVERSATION_TAKEN").await;
    stage
        .bob
        .get(path)
        .refused(404, "CONVERSATION_NOT_FOUND")
        .await;
    stage
        .ada
        .get("/api/conversations/x")
        .refused(400, "INVALID_ID")
        .await;
}

fn id_of(session: &Value) -> &str {
    session["session_id"].as_str().unwrap()
}

/// The messages of the thread that a stream begins with, and what it tells to the end of a turn of
/// messages that are accepted.
async fn reported(frames: &mut Frames) -> (Vec<Value>, Vec<Value>) {
    let frames = frames.until("stream_complete").await;
    let messages = |name: &str| {
        let named = frames.iter().filter(|frame| frame.event == name);
        named.map(|frame| frame.data["message"].clone()).collect()
    };
    (messages("thread_message"), messages("message_accepted"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_thread_also_of_a_fork_and_tells_what_users_say() {
    let stage = stage().await;
    let ada = &stage.ada;
    let session = stage.open(ada).await;
    stage.say(ada, &session, "one").await;
    let inherited = ada.get(&stage.path(&session)).await.body["messages"].clone();
    let forked = format!("{}/fork", stage.path(&session));
    let fork = ada.post(&forked, &json!({})).await.text("session_id");
    stage.say(ada, &fork, "two").await;
    let stream = format!("{}/stream?session={fork}", stage.agent);
    let follow = async |from: &str| ada.follow(&format!("{stream}&{from}"), None).await.unwrap();
    let words = |message: &Value| message["text"].as_str().unwrap().to_owned();

    let (thread, accepted) = reported(&mut follow("after=0").await).await;
    assert_eq!(json!(thread), inherited);
    assert_eq!(accepted.len(), 1, "{accepted:?}");
    assert!(words(&accepted[0]).contains("two"), "{accepted:?}");

    let mut frames = follow("from=thread").await;
    let seen = ada.get(&stage.path(&fork)).await.body;
    stage.say(ada, &fork, "three").await;
    let (thread, accepted) = reported(&mut frames).await;
    assert_eq!(json!(thread), seen["messages"]);
    assert!(words(&accepted[0]).contains("three"), "{accepted:?}");

    // What was read says where to go on.
    let (thread, accepted) =
        reported(&mut follow(&format!("after={}", seen["position"])).await).await;
    assert_eq!((thread.len(), accepted.len()), (0, 1), "{accepted:?}");
    assert!(words(&accepted[0]).contains("three"), "{accepted:?}");

    for wrong in ["from=thread&after=0", "from=thread&view=log"] {
        ada.get(&format!("{stream}&{wrong}"))
            .refused(400, "INVALID_QUERY")
            .await;
    }
    let of_all = format!("{}/stream?from=thread", stage.agent);
    ada.get(&of_all).refused(400, "INVALID_QUERY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_cleared_and_its_turns_stay_where_others_point_to_them() {
    let stage = stage().await;
    let ada = &stage.ada;
    let session = stage.open(&stage.ada).await;
    let path = stage.path(&session);
    let turn = stage.say(ada, &session, "before").await;
    let forked = ada
        .post(&format!("{path}/fork"), &json!({}))
        .await
        .text("session_id");
    ada.patch(&path, &json!({ "name": "kept", "pinned": true }))
        .await;
    // While a question waits, a turn is in the making.
    let asking =
        json!({ "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] }).to_string();
    ada.say(&path, &asking).await;
    ada.until(&path, |seen| seen["run_status"] == "awaiting_client")
        .await;
    for (method, to) in [
        (Method::POST, format!("{path}/clear")),
        (Method::DELETE, path.clone()),
    ] {
        ada.ask(method, &to, None).refused(409, "RUN_OPEN").await;
    }
    ada.post(&format!("{path}/cancel"), &json!({})).await;
    let before = ada.until(&path, |seen| seen["run_id"].is_null()).await;
    let cleared = ada.ask(Method::POST, &format!("{path}/clear"), None).await;
    assert_eq!(
        (cleared.status, cleared.body["revision"].as_u64()),
        (200, before["revision"].as_u64().map(|it| it + 1)),
        "{cleared:?}"
    );
    let seen = ada.get(&path).await.body;
    shows(
        &seen,
        &json!({ "turn_id": null, "last_message": 0, "messages": [] }),
    );
    assert_eq!(
        (&seen["name"], seen["pinned_at"].is_string()),
        (&json!("kept"), true),
        "what it is called stays"
    );
    let after = stage.say(ada, &session, "after").await;
    let seen = ada.get(&format!("/api/turns/{after}")).await;
    assert_eq!(
        (&seen.body["parent_turn_id"], &seen.body["depth"]),
        (&json!(null), &json!(1)),
        "{seen:?}"
    );
    assert_eq!(ada.get(&stage.path(&forked)).await.text("turn_id"), turn);
    ada.get(&format!("/api/turns/{turn}")).gives(200).await;
    let lesson = ada
        .post(
            &format!("{}/sessions", stage.agent),
            &json!({ "session_type": "lesson" }),
        )
        .await
        .text("session_id");
    ada.ask(
        Method::POST,
        &format!("{}/clear", stage.path(&lesson)),
        None,
    )
    .refused(409, "SESSION_STRUCTURED")
    .await;
    ada.delete(&stage.path(&lesson))
        .refused(409, "SESSION_ALREADY_ACTIVE")
        .await;
    assert_eq!(
        stage
            .host
            .post("/api/verifications", &json!(null))
            .await
            .body["intact"],
        true
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lesson_that_a_mentee_deleted_stays_in_the_history_of_their_mentor() {
    let stage = stage().await;
    let ada = &stage.ada;
    let bob = &stage.bob;
    let new = json!({ "session_type": "lesson" });
    let opened = ask(bob, Method::POST, &format!("{}/sessions", stage.agent), new)
        .gives(201)
        .await;
    let lesson = opened.text("session_id");
    let path = stage.path(&lesson);
    bob.until(&path, |seen| seen["run_status"] == "awaiting_client")
        .await;
    let current = format!("{}/sessions/current", stage.agent);
    bob.delete(&current).gives(200).await;
    let history = async |line: &Line| {
        let seen = line.get(&format!("{}/history", stage.agent)).await;
        seen.body["sessions"].to_string().contains(&lesson)
    };
    assert!(history(bob).await && history(ada).await);
    bob.delete(&path).gives(200).await;
    assert!(!history(bob).await, "it is gone for whom it was for");
    assert!(history(ada).await, "whoever sees all sessions still has it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_deleted_is_nowhere_and_its_forks_go_on() {
    let stage = stage().await;
    let ada = &stage.ada;
    let session = stage.open(&stage.ada).await;
    let path = stage.path(&session);
    let turn = stage.say(ada, &session, "zebra").await;
    let forked = ada
        .post(&format!("{path}/fork"), &json!({}))
        .await
        .text("session_id");
    let alone = stage.open(ada).await;
    let lost = stage.say(ada, &alone, "quagga").await;
    stage
        .bob
        .delete(&path)
        .refused(404, "SESSION_NOT_FOUND")
        .await;
    for gone in [&session, &alone] {
        let deleted = ada.delete(&stage.path(gone)).await;
        deleted.has(200, &json!({ "deleted": true }));
    }
    let rows = [
        "GET {path} => 404 SESSION_NOT_FOUND",
        "GET /api/sessions/{session} => 404 SESSION_NOT_FOUND",
        "GET /api/session/{session} => 404 SESSION_NOT_FOUND",
        "GET /api/session/{session}/state => 404 SESSION_NOT_FOUND",
        "GET {agent}/stream?session={session} => 404 SESSION_NOT_FOUND",
        "GET {path}/tree => 404 SESSION_NOT_FOUND",
        "GET {path}/export => 404 SESSION_NOT_FOUND",
        "GET {path}/items => 404 SESSION_NOT_FOUND",
        "GET {path}/files => 404 SESSION_NOT_FOUND",
        r#"POST {path}/messages {"content":"hello"} => 404 SESSION_NOT_FOUND"#,
        "POST {path}/fork {} => 404 SESSION_NOT_FOUND",
        "POST {path}/clear => 404 SESSION_NOT_FOUND",
        "POST {path}/cancel {} => 404 SESSION_NOT_FOUND",
        r#"PATCH {path} {"name":"x"} => 404 SESSION_NOT_FOUND"#,
        "DELETE {path} => 404 SESSION_NOT_FOUND",
        "GET /api/turns/{lost} => 404 TURN_NOT_FOUND",
        // The fork has it.
        "GET /api/turns/{turn} => 200",
    ];
    let names: [(&str, &str); 5] = [
        ("{path}", &path),
        ("{session}", &session),
        ("{agent}", &stage.agent),
        ("{lost}", &lost),
        ("{turn}", &turn),
    ];
    ada.answers(&names, &rows).await;
    assert_eq!(stage.listed(ada, "").await, [forked.as_str()]);
    assert!(
        stage.found(ada, "zebra").await.is_empty() && stage.found(ada, "quagga").await.is_empty()
    );
    stage.say(ada, &forked, "goes on").await;
    // Nor is anything left after the projections were folded again.
    assert_eq!(
        stage
            .host
            .post("/api/verifications", &json!(null))
            .await
            .body["intact"],
        true
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_wait_in_a_session_that_is_deleted_are_put_aside() {
    let stage = stage().await;
    let ada = &stage.ada;
    let session = stage.open(&stage.ada).await;
    let remind = json!({ "steps": [{ "effects": [{ "schedule": 3_600_000 }], "reply": "later" }] })
        .to_string();
    let path = stage.path(&session);
    ada.say(&path, &remind).await;
    let seen = ada
        .until(&path, |seen| {
            seen["revision"] == 1 && seen["run_id"].is_null()
        })
        .await;
    let waits = seen["waiting"].as_u64().unwrap();
    assert_eq!(waits, 1, "the reminder: {seen}");
    ada.delete(&path).gives(200).await;
    let dead = stage.host.get("/api/dead-letters").await.body["dead_letters"].clone();
    assert_eq!(dead.as_array().unwrap().len() as u64, waits, "{dead}");
    for letter in dead.as_array().unwrap() {
        assert_eq!(letter["reason"], "its session was deleted");
        let again = format!(
            "/api/dead-letters/{}/requeue",
            letter["input_id"].as_str().unwrap()
        );
        stage
            .host
            .post(&again, &json!(null))
            .refused(404, "SESSION_NOT_FOUND")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_shows_every_branch_that_one_sees_and_a_comparison_where_two_part() {
    let stage = stage().await;
    let ada = &stage.ada;
    let bob = &stage.bob;
    let session = stage.open(bob).await;
    let root = stage.say(bob, &session, "root").await;
    let trunk = stage.say(bob, &session, "trunk").await;
    // Ada guides him, and tries something else in a session of her own.
    let fork = ada
        .post(
            &format!("{}/fork", stage.path(&session)),
            &json!({ "turn_id": root, "name": "a try" }),
        )
        .await
        .text("session_id");
    let branch = stage.say(ada, &fork, "branch").await;
    let tree = async |line: &Line, query: &str| {
        let tree = line
            .get(&format!("{}/tree{query}", stage.path(&session)))
            .gives(200)
            .await;
        let ids = tree.body["turns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| turn["turn_id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), tree)
    };
    let (hers, all) = tree(ada, "").await;
    assert_eq!((hers.len(), &hers[0]), (3, &root), "{all:?}");
    assert!(hers.contains(&trunk) && hers.contains(&branch));
    let label = all.body["turns"]
        .as_array()
        .unwrap()
        .iter()
        .find(|turn| turn["turn_id"] == branch.as_str())
        .unwrap();
    shows(
        label,
        &json!({ "sessions/0/session_id": fork, "sessions/0/name": "a try" }),
    );
    assert!(
        label["text"].as_str().unwrap().contains("branch"),
        "{label}"
    );
    let (page, first) = tree(ada, "?limit=1").await;
    let (rest, _) = tree(ada, &format!("?after={}", first.text("next_after"))).await;
    assert_eq!([page, rest].concat(), hers);
    // What she tries is not his to see.
    assert_eq!(tree(bob, "").await.0, [root.clone(), trunk.clone()]);
    bob.get(&format!("/api/turns/{branch}"))
        .refused(404, "TURN_NOT_FOUND")
        .await;
    let seen = bob.get(&format!("/api/turns/{root}")).await;
    assert_eq!(
        (
            &seen.body["child_turn_ids"],
            seen.body["messages"].as_array().unwrap().len()
        ),
        (&json!([trunk]), 2),
        "{seen:?}"
    );
    assert_eq!(
        ada.get(&format!("/api/turns/{root}")).await.body["child_turn_ids"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let path = format!("{}/diff?with=", stage.path(&session));
    for with in [&fork, &branch] {
        let diff = ada.get(&format!("{path}{with}")).await;
        diff.has(200, &json!({ "common_turn_id": root }));
        shows(
            &diff.body,
            &json!({ "only_here/0/turn_id": trunk, "only_there/0/turn_id": branch }),
        );
        assert!(
            diff.body["only_there"][0]["messages"][1]["text"] == "branch",
            "{diff:?}"
        );
    }
    let other = stage.open(bob).await;
    let apart = bob.get(&format!("{path}{other}")).await;
    assert_eq!(
        (&apart.body["common_turn_id"], &apart.body["only_there"]),
        (&json!(null), &json!([])),
        "{apart:?}"
    );
    let rows = [
        "GET {path}{fork} => 404 SESSION_NOT_FOUND",
        "GET {path}{branch} => 404 TURN_NOT_FOUND",
        "GET {path}x => 400 INVALID_QUERY",
    ];
    let names: [(&str, &str); 3] = [("{path}", &path), ("{fork}", &fork), ("{branch}", &branch)];
    bob.answers(&names, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_by_those_who_see_the_session() {
    let stage = stage().await;
    let hers = stage.open(&stage.ada).await;
    let his = stage.open(&stage.bob).await;
    stage.say(&stage.ada, &hers, "alices zebra").await;
    let turn = stage.say(&stage.bob, &his, "bobs zebra").await;
    stage
        .bob
        .patch(&stage.path(&his), &json!({ "name": "stripes" }))
        .await;
    let found = stage.found(&stage.bob, "ZEBRA").await;
    assert!(
        !found.is_empty() && found.iter().all(|hit| hit["session_id"] == his.as_str()),
        "{found:?}"
    );
    let reply = found.iter().find(|hit| hit["role"] == "assistant").unwrap();
    shows(
        reply,
        &json!({ "turn_id": turn, "message": 2, "snippet": "bobs zebra" }),
    );
    assert_eq!(reply["session_name"], "stripes");
    let all = stage.found(&stage.ada, "zebra").await;
    assert!(
        [&hers, &his]
            .iter()
            .all(|session| all.iter().any(|hit| hit["session_id"] == session.as_str())),
        "{all:?}"
    );
    // Those that are as good: the latest first.
    assert_eq!(all[0]["session_id"], his.as_str(), "{all:?}");
    for odd in ["", "%22", "NOT", "*", "a%00b", "%22%20OR%20agent%20:%20x"] {
        assert_eq!(
            stage.ada.get(&format!("/api/search?q={odd}")).await.status,
            200,
            "{odd}"
        );
    }
    let of_agent = stage
        .ada
        .get(&format!(
            "/api/search?q=zebra&agent={}",
            stage.agent.rsplit('/').next().unwrap()
        ))
        .await;
    assert_eq!(of_agent.body["hits"].as_array().unwrap().len(), all.len());
    stage
        .ada
        .get("/api/search?q=zebra&agent=00000000-0000-4000-8000-00000000dead")
        .refused(404, "AGENT_NOT_FOUND")
        .await;
    let unknown_sender = stage.host.user("carol", &["read"]).await;
    assert!(stage.found(&unknown_sender, "zebra").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_with_a_label_under_a_key_is_done_once_and_answered_as_it_was() {
    let stage = stage().await;
    let session = stage
        .host
        .post(
            "/api/agents/puppet/sessions",
            &json!({ "session_type": "chat" }),
        )
        .await;
    let agent = session.text("agent_id");
    let session = session.text("session_id");
    let path = format!("/api/agents/{agent}/sessions/{session}");
    let script = json!({ "steps": [{ "reply": "hello" }] }).to_string();
    stage
        .host
        .post(&format!("{path}/messages"), &json!({ "content": script }))
        .await;
    stage
        .host
        .line()
        .until(&path, |seen| {
            seen["revision"] == 1 && seen["run_id"].is_null()
        })
        .await;
    let mut done = Vec::new();
    for (method, below, body) in [
        (Method::PATCH, "", json!({ "name": "one", "pinned": true })),
        (Method::POST, "/fork", json!({ "name": "two" })),
        (Method::POST, "/clear", Value::Null),
        (Method::DELETE, "", Value::Null),
    ] {
        let key = format!("key-{}", done.len());
        let request = || {
            let request = stage
                .host
                .request(method.clone(), &format!("{path}{below}"))
                .header("idempotency-key", &key);
            if body.is_null() {
                request
            } else {
                request.json(&body)
            }
        };
        let first = stage.host.send(request()).await;
        assert!((200..300).contains(&first.status), "{first:?}");
        done.push((request().try_clone().unwrap(), first));
    }
    for (again, first) in done {
        let answer = stage.host.send(again).await;
        assert_eq!(
            (answer.status, answer.body["session_id"].clone()),
            (first.status, first.body["session_id"].clone())
        );
        for field in [
            "name",
            "pinned_at",
            "updated_at",
            "turn_id",
            "revision",
            "deleted",
        ] {
            // A session that was opened is shown as it is now, like every other.
            let is_same = answer.body[field] == first.body[field]
                || (field != "name"
                    && field != "pinned_at"
                    && first.status == 200
                    && first.body["name"] == "one");
            assert!(is_same, "{field}: {first:?} {answer:?}");
        }
    }
}

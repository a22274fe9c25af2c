//! The quota of one user on a host, and of one key: sessions in a minute, and bytes stored; by
//! whichever way, and after a restart.

mod waits;

use agent_host_tests::process::{Answer, Folder, Host, Line, puppets};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

/// Bytes that a user may have stored: the least that can be configured.
const STORED_MAX: usize = 64 << 10;
/// Bytes of one message.
const MESSAGE: usize = 10 << 10;

async fn started(limits: Value) -> (Folder, Host) {
    let mut config =
        puppets(&json!([{ "agentId": "cook", "displayName": "Cook", "component": "puppet" }]));
    config["limits"] = limits;
    let folder = Folder::new(config);
    folder.warm(&["puppet"]).await;
    let host = folder.start(None).await.unwrap();
    (folder, host)
}

async fn open(line: &Line) -> Answer {
    line.ask(
        Method::POST,
        "/api/agents/cook/sessions",
        Some(&json!({ "session_type": "chat" })),
    )
    .await
    .unwrap()
}

fn path(opened: &Answer) -> String {
    format!(
        "/api/agents/{}/sessions/{}",
        opened.text("agent_id"),
        opened.text("session_id")
    )
}

/// Says something in a session that fills a good part of a quota.
async fn say(line: &Line, session: &str, key: &str) -> Answer {
    let body = json!({ "content": "x".repeat(MESSAGE) });
    line.ask_under(
        key,
        Method::POST,
        &format!("{session}/messages"),
        Some(&body),
    )
    .await
    .unwrap()
}

/// Fills the quota, until it is refused with this code.
async fn fill(line: &Line, session: &str, code: &str) {
    let most = STORED_MAX / MESSAGE + 1;
    for accepted in 0..=most {
        let answer = say(line, session, &format!("k{accepted}")).await;
        if answer.status != 202 {
            limited(&answer, code);
            assert!(accepted >= 4, "{accepted}");
            return;
        }
    }
    panic!("more than {most} messages were accepted");
}

/// Stops and deletes a session, and has it purged.
async fn purge(host: &Host, line: &Line, opened: &Answer) {
    let session = path(opened);
    let deleting = async {
        loop {
            line.ask(Method::POST, &format!("{session}/cancel"), Some(&json!({})))
                .await
                .unwrap();
            let deleted = line.ask(Method::DELETE, &session, None).await.unwrap();
            if deleted.status == 200 {
                return;
            }
            assert!(
                matches!(deleted.text("code").as_str(), "RUN_OPEN" | "INPUTS_WAIT"),
                "{deleted:?}"
            );
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(agent_host_tests::process::PATIENCE, deleting)
        .await
        .expect("a session that can be deleted");
    let purge =
        json!({ "agent_id": opened.text("agent_id"), "session_id": opened.text("session_id") });
    assert_eq!(host.post("/api/purges", &purge).await.unwrap().status, 200);
}

#[track_caller]
fn limited(answer: &Answer, code: &str) {
    assert_eq!(
        (answer.status, answer.text("code").as_str()),
        (429, code),
        "{answer:?}"
    );
    assert!(
        answer.retry_after_s.is_some_and(|seconds| seconds > 1),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_writer_is_stopped_at_sessions_in_a_minute_and_the_others_go_on() {
    let (folder, host) = started(json!({ "userSessionsPerMinuteMax": 5 })).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let answers = join_all((0..20).map(|_| open(&alice))).await;
    let opened: Vec<&Answer> = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .collect();
    assert_eq!(opened.len(), 5, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        limited(answer, "USER_SESSION_LIMIT");
    }
    // By no other way either, nor with another key.
    let words = json!({ "steps": [{ "reply": "x" }] }).to_string();
    let session = format!(
        "/api/agents/{}/sessions/{}",
        opened[0].text("agent_id"),
        opened[0].text("session_id")
    );
    let said = alice
        .ask(
            Method::POST,
            &format!("{session}/messages"),
            Some(&json!({ "content": words })),
        )
        .await
        .unwrap();
    assert_eq!(said.status, 202, "what is open goes on: {said:?}");
    let routed = json!({ "to": { "agent": "cook" }, "content": words });
    assert_eq!(
        alice
            .ask(Method::POST, "/api/messages", Some(&routed))
            .await
            .unwrap()
            .status,
        202
    );
    let other = host.user("alice", &["read", "write"]).await;
    limited(&open(&other).await, "USER_SESSION_LIMIT");
    let until = async {
        loop {
            let fork = other
                .ask(Method::POST, &format!("{session}/fork"), Some(&json!({})))
                .await
                .unwrap();
            if fork.text("code") != "THREAD_EMPTY" {
                return fork;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    limited(&until.await, "USER_SESSION_LIMIT");
    // A file may say that its session is years old; it is opened now all the same.
    let old = json!({
        "type": "session", "version": 3, "id": "0190a000-0000-7000-8000-000000000001",
        "timestamp": "2020-01-01T00:00:00.000Z", "cwd": "/",
    });
    let path = format!("/api/agents/{}/sessions/import", opened[0].text("agent_id"));
    limited(
        &other
            .upload(&path, format!("{old}\n").into_bytes())
            .await
            .unwrap(),
        "USER_SESSION_LIMIT",
    );
    let bob = host.user("bob", &["read", "write"]).await;
    assert_eq!(open(&bob).await.status, 201);
    for _ in 0..8 {
        assert_eq!(open(&host.line()).await.status, 201, "the operator");
    }
    // It is counted by what is stored, also after a restart.
    host.kill().await;
    let host = folder.start(None).await.unwrap();
    let alice = host.user("alice", &["read", "write"]).await;
    let mut last = open(&alice).await;
    for _ in 0..5 {
        last = open(&alice).await;
    }
    limited(&last, "USER_SESSION_LIMIT");
    assert!(host.stop().await.success());
    let store = super::crash::open(&folder).await;
    let events = store
        .events(0, store::EventFilter::default(), 100_000)
        .await
        .unwrap();
    store.close().await;
    let opened = events
        .iter()
        .filter(|event| event.kind == "session.opened.v1" && event.actor == "user:alice");
    let times: Vec<u64> = opened.map(|event| event.time.0).collect();
    assert!(
        times.windows(6).all(|six| six[5] - six[0] >= 60_000),
        "{times:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_stopped_at_its_sessions_in_a_minute_and_another_is_not() {
    let mut config =
        puppets(&json!([{ "agentId": "cook", "displayName": "Cook", "component": "puppet" }]));
    config["server"] = json!({
        "listen": "127.0.0.1:0", "dataDir": "data", "limits": { "keySessionsPerMinuteMax": 2 },
    });
    let folder = Folder::new(config);
    folder.warm(&["puppet"]).await;
    let host = folder.start(None).await.unwrap();
    let one = host.user("alice", &["read", "write"]).await;
    let other = host.user("alice", &["read", "write"]).await;
    let routed = json!({
        "to": { "agent": "cook" }, "content": json!({ "steps": [{ "reply": "x" }] }).to_string(),
    });
    assert_eq!(
        one.ask(Method::POST, "/api/messages", Some(&routed))
            .await
            .unwrap()
            .status,
        202
    );
    let under_key = async || {
        one.ask_under(
            "k",
            Method::POST,
            "/api/agents/cook/sessions",
            Some(&json!({})),
        )
        .await
        .unwrap()
    };
    let opened = under_key().await;
    assert_eq!(opened.status, 201);
    assert_eq!(open(&one).await.text("code"), "KEY_SESSION_LIMIT");
    let again = under_key().await;
    assert_eq!(
        (again.status, again.text("session_id")),
        (201, opened.text("session_id")),
        "what was opened is told again"
    );
    assert_eq!(
        one.ask(Method::POST, "/api/messages", Some(&routed))
            .await
            .unwrap()
            .status,
        202,
        "what is open goes on"
    );
    assert_eq!(open(&other).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_writer_is_stopped_at_stored_bytes_and_what_is_purged_is_given_back() {
    let (folder, host) = started(json!({ "userStoredBytesMax": STORED_MAX })).await;
    let mut alice = host.user("alice", &["read", "write"]).await;
    let first = open(&alice).await;
    let second = open(&alice).await;
    fill(&alice, &path(&first), "USER_STORAGE_LIMIT").await;
    // What was accepted is answered again; what ends something is done.
    assert_eq!(say(&alice, &path(&first), "k0").await.status, 202);
    let file = alice
        .ask(
            Method::POST,
            &format!("{}/files?name=a.txt", path(&second)),
            Some(&json!("x")),
        )
        .await
        .unwrap();
    limited(&file, "USER_STORAGE_LIMIT");
    limited(&open(&alice).await, "USER_STORAGE_LIMIT");
    // Nor anything that is only remembered under its key, or changes next to nothing.
    let nothing = alice
        .ask_under("p", Method::PATCH, &path(&second), Some(&json!({})))
        .await
        .unwrap();
    limited(&nothing, "USER_STORAGE_LIMIT");
    let queue = alice
        .ask_under(
            "q",
            Method::POST,
            &format!("{}/messages", path(&second)),
            Some(&json!({ "content": "/queue collect" })),
        )
        .await
        .unwrap();
    limited(&queue, "USER_STORAGE_LIMIT");
    let bob = host.user("bob", &["read", "write"]).await;
    let bobs = open(&bob).await;
    assert_eq!(
        (bobs.status, say(&bob, &path(&bobs), "k").await.status),
        (201, 202)
    );
    host.kill().await;
    let host = folder.start(None).await.unwrap();
    alice = host.user("alice", &["read", "write"]).await;
    limited(
        &say(&alice, &path(&first), "later").await,
        "USER_STORAGE_LIMIT",
    );
    purge(&host, &alice, &first).await;
    assert_eq!(
        say(&alice, &path(&second), "again").await.status,
        202,
        "what was purged is given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_stopped_at_stored_bytes_and_another_is_not() {
    let (_folder, host) = started(json!({ "keyStoredBytesMax": STORED_MAX })).await;
    let one = host.user("alice", &["read", "write"]).await;
    let other = host.user("alice", &["read", "write"]).await;
    let first = open(&one).await;
    let second = open(&one).await;
    fill(&one, &path(&first), "KEY_STORAGE_LIMIT").await;
    // What was accepted is answered again; nothing new is accepted, in whichever way.
    assert_eq!(say(&one, &path(&first), "k0").await.status, 202);
    limited(&open(&one).await, "KEY_STORAGE_LIMIT");
    let nothing = one
        .ask_under("p", Method::PATCH, &path(&second), Some(&json!({})))
        .await
        .unwrap();
    limited(&nothing, "KEY_STORAGE_LIMIT");
    let third = open(&other).await;
    assert_eq!(third.status, 201, "another key of the same user");
    assert_eq!(say(&other, &path(&third), "o").await.status, 202);
    assert_eq!(open(&host.line()).await.status, 201, "the operator");
    // Whoever has it purged, it is given back to the key that it came with.
    purge(&host, &other, &first).await;
    assert_eq!(say(&one, &path(&second), "again").await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_operator_is_stopped_at_stored_bytes_and_the_token_is_not() {
    let (_folder, host) = started(json!({ "keyStoredBytesMax": STORED_MAX })).await;
    let program = host.user("local", &["read", "write"]).await;
    let opened = open(&program).await;
    fill(&program, &path(&opened), "KEY_STORAGE_LIMIT").await;
    limited(&open(&program).await, "KEY_STORAGE_LIMIT");
    let own = open(&host.line()).await;
    assert_eq!(own.status, 201, "{own:?}");
    assert_eq!(say(&host.line(), &path(&own), "own").await.status, 202);
    // What came with the key is given back to it, as to any other.
    purge(&host, &host.line(), &opened).await;
    assert_eq!(open(&program).await.status, 201);
}

/// The refusal of the spent key does not advise to make one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_made_with_a_spent_key_is_bounded_by_its_users_limit() {
    let limits = json!({
        "keyStoredBytesMax": STORED_MAX, "userStoredBytesMax": STORED_MAX + 3 * MESSAGE,
    });
    let (_folder, host) = started(limits).await;
    let spent = host.user("alice", &["read", "write", "keys"]).await;
    let session = path(&open(&spent).await);
    let other = path(&open(&spent).await);
    fill(&spent, &session, "KEY_STORAGE_LIMIT").await;
    let refused = say(&spent, &other, "more").await;
    limited(&refused, "KEY_STORAGE_LIMIT");
    let detail = refused.text("detail");
    assert!(
        detail.contains("purge")
            && !detail.contains("another key")
            && detail.contains("(limits.keyStoredBytesMax)"),
        "{detail}"
    );
    let wanted = json!({ "name": "next", "scopes": ["read", "write"] });
    let issued = spent
        .ask(Method::POST, "/api/keys", Some(&wanted))
        .await
        .unwrap();
    assert_eq!(issued.status, 201, "{issued:?}");
    let say_on = async || {
        let request = host
            .bare(Method::POST, &format!("{other}/messages"))
            .bearer_auth(issued.text("key"))
            .json(&json!({ "content": "x".repeat(MESSAGE) }));
        host.send(request).await.unwrap()
    };
    let first = say_on().await;
    assert_eq!(first.status, 202, "{first:?}");
    for _ in 0..3 {
        let next = say_on().await;
        if next.status != 202 {
            limited(&next, "USER_STORAGE_LIMIT");
            return;
        }
    }
    panic!("more than the user's limit was accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_question_is_refused_at_stored_bytes_like_a_message() {
    for (limit, code) in [
        ("userStoredBytesMax", "USER_STORAGE_LIMIT"),
        ("keyStoredBytesMax", "KEY_STORAGE_LIMIT"),
    ] {
        check_answer(json!({ limit: STORED_MAX }), code).await;
    }
}

/// Not as if another writer had been first, which would be tried again at once.
async fn check_answer(limits: Value, code: &str) {
    let (_folder, host) = started(limits).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let opened = open(&alice).await;
    let agent = format!("/api/agents/{}", opened.text("agent_id"));
    let asking = format!("{agent}/sessions/{}", opened.text("session_id"));
    let say = async |session: &str, content: String| {
        let body = json!({ "content": content });
        alice
            .ask(Method::POST, &format!("{session}/messages"), Some(&body))
            .await
            .unwrap()
    };
    let steps = json!({
        "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }, { "reply": "thanks" }],
    });
    assert_eq!(say(&asking, steps.to_string()).await.status, 202);
    let asked = async {
        loop {
            let seen = alice.ask(Method::GET, &asking, None).await.unwrap().body;
            if let Some(call) = seen["pending_action"]["tool_call_id"].as_str() {
                return call.to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let call = tokio::time::timeout(agent_host_tests::process::PATIENCE, asked)
        .await
        .expect("a question");
    let other = open(&alice).await;
    let other = format!(
        "/api/agents/{}/sessions/{}",
        other.text("agent_id"),
        other.text("session_id")
    );
    while say(&other, "x".repeat(MESSAGE)).await.status == 202 {}
    let answer = json!({ "tool_call_id": call, "response": { "confirmed": true } });
    let refused = alice
        .ask(Method::POST, &format!("{agent}/respond"), Some(&answer))
        .await
        .unwrap();
    limited(&refused, code);
}

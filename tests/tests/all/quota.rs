//! The quota of one user on a host, and of one key: sessions in a minute, and bytes stored; by
//! whichever way, and after a restart.

mod waits;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Answer, Folder, Host, Line, Reply, Session, puppets};
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
    Folder::serving(config, &["puppet"]).await
}

#[track_caller]
fn open(line: &Line) -> Reply {
    line.post(
        "/api/agents/cook/sessions",
        &json!({ "session_type": "chat" }),
    )
}

/// Says something in a session that fills a good part of a quota.
#[track_caller]
fn say(line: &Line, session: &str, key: &str) -> Reply {
    let body = json!({ "content": "x".repeat(MESSAGE) });
    line.ask_under(
        key,
        Method::POST,
        &format!("{session}/messages"),
        Some(&body),
    )
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
    let session = Session::of(opened);
    until(async || {
        line.post(&format!("{session}/cancel"), &json!({})).await;
        let deleted = line.delete(&session).await;
        let waits = ["RUN_OPEN", "INPUTS_WAIT"].contains(&deleted.text("code").as_str());
        assert!(waits || deleted.status == 200, "{deleted:?}");
        !waits
    })
    .await;
    let purge =
        json!({ "agent_id": opened.text("agent_id"), "session_id": opened.text("session_id") });
    host.post("/api/purges", &purge).gives(200).await;
}

#[track_caller]
fn limited(answer: &Answer, code: &str) {
    answer.is_refusal(429, code);
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
        .post(&format!("{session}/messages"), &json!({ "content": words }))
        .await;
    assert_eq!(said.status, 202, "what is open goes on: {said:?}");
    let routed = json!({ "to": { "agent": "cook" }, "content": words });
    alice.post("/api/messages", &routed).gives(202).await;
    let other = host.user("alice", &["read", "write"]).await;
    limited(&open(&other).await, "USER_SESSION_LIMIT");
    let fork = found(async || {
        let fork = other.post(&format!("{session}/fork"), &json!({})).await;
        (fork.text("code") != "THREAD_EMPTY").then_some(fork)
    });
    limited(&fork.await, "USER_SESSION_LIMIT");
    // A file may say that its session is years old; it is opened now all the same.
    let old = json!({
        "type": "session", "version": 3, "id": "0190a000-0000-7000-8000-000000000001",
        "timestamp": "2020-01-01T00:00:00.000Z", "cwd": "/",
    });
    let path = format!("/api/agents/{}/sessions/import", opened[0].text("agent_id"));
    limited(
        &other.upload(&path, format!("{old}\n").into_bytes()).await,
        "USER_SESSION_LIMIT",
    );
    let bob = host.user("bob", &["read", "write"]).await;
    open(&bob).gives(201).await;
    for _ in 0..8 {
        assert_eq!(open(&host.line()).await.status, 201, "the operator");
    }
    // It is counted by what is stored, also after a restart.
    host.kill().await;
    let host = folder.serve().await;
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
    let (_folder, host) = Folder::serving(config, &["puppet"]).await;
    let one = host.user("alice", &["read", "write"]).await;
    let other = host.user("alice", &["read", "write"]).await;
    let routed = json!({
        "to": { "agent": "cook" }, "content": json!({ "steps": [{ "reply": "x" }] }).to_string(),
    });
    one.post("/api/messages", &routed).gives(202).await;
    let under_key = || {
        one.ask_under(
            "k",
            Method::POST,
            "/api/agents/cook/sessions",
            Some(&json!({})),
        )
    };
    let opened = under_key().gives(201).await;
    assert_eq!(open(&one).await.text("code"), "KEY_SESSION_LIMIT");
    let again = under_key().await;
    assert_eq!(
        (again.status, again.text("session_id")),
        (201, opened.text("session_id")),
        "what was opened is told again"
    );
    assert_eq!(
        one.post("/api/messages", &routed).await.status,
        202,
        "what is open goes on"
    );
    open(&other).gives(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_writer_is_stopped_at_stored_bytes_and_what_is_purged_is_given_back() {
    let (folder, host) = started(json!({ "userStoredBytesMax": STORED_MAX })).await;
    let mut alice = host.user("alice", &["read", "write"]).await;
    let first = open(&alice).await;
    let second = open(&alice).await;
    fill(&alice, &Session::of(&first), "USER_STORAGE_LIMIT").await;
    // What was accepted is answered again; what ends something is done.
    say(&alice, &Session::of(&first), "k0").gives(202).await;
    let file = alice
        .post(
            &format!("{}/files?name=a.txt", Session::of(&second)),
            &json!("x"),
        )
        .await;
    limited(&file, "USER_STORAGE_LIMIT");
    limited(&open(&alice).await, "USER_STORAGE_LIMIT");
    // Nor anything that is only remembered under its key, or changes next to nothing.
    let nothing = alice
        .ask_under("p", Method::PATCH, &Session::of(&second), Some(&json!({})))
        .await;
    limited(&nothing, "USER_STORAGE_LIMIT");
    let queue = alice
        .ask_under(
            "q",
            Method::POST,
            &format!("{}/messages", Session::of(&second)),
            Some(&json!({ "content": "/queue collect" })),
        )
        .await;
    limited(&queue, "USER_STORAGE_LIMIT");
    let bob = host.user("bob", &["read", "write"]).await;
    let bobs = open(&bob).await;
    assert_eq!(
        (
            bobs.status,
            say(&bob, &Session::of(&bobs), "k").await.status
        ),
        (201, 202)
    );
    host.kill().await;
    let host = folder.serve().await;
    alice = host.user("alice", &["read", "write"]).await;
    limited(
        &say(&alice, &Session::of(&first), "later").await,
        "USER_STORAGE_LIMIT",
    );
    purge(&host, &alice, &first).await;
    assert_eq!(
        say(&alice, &Session::of(&second), "again").await.status,
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
    fill(&one, &Session::of(&first), "KEY_STORAGE_LIMIT").await;
    // What was accepted is answered again; nothing new is accepted, in whichever way.
    say(&one, &Session::of(&first), "k0").gives(202).await;
    limited(&open(&one).await, "KEY_STORAGE_LIMIT");
    let nothing = one
        .ask_under("p", Method::PATCH, &Session::of(&second), Some(&json!({})))
        .await;
    limited(&nothing, "KEY_STORAGE_LIMIT");
    let third = open(&other).await;
    assert_eq!(third.status, 201, "another key of the same user");
    say(&other, &Session::of(&third), "o").gives(202).await;
    assert_eq!(open(&host.line()).await.status, 201, "the operator");
    // Whoever has it purged, it is given back to the key that it came with.
    purge(&host, &other, &first).await;
    say(&one, &Session::of(&second), "again").gives(202).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_operator_is_stopped_at_stored_bytes_and_the_token_is_not() {
    let (_folder, host) = started(json!({ "keyStoredBytesMax": STORED_MAX })).await;
    let program = host.user("local", &["read", "write"]).await;
    let opened = open(&program).await;
    fill(&program, &Session::of(&opened), "KEY_STORAGE_LIMIT").await;
    limited(&open(&program).await, "KEY_STORAGE_LIMIT");
    let own = open(&host.line()).gives(201).await;
    say(&host.line(), &Session::of(&own), "own")
        .gives(202)
        .await;
    // What came with the key is given back to it, as to any other.
    purge(&host, &host.line(), &opened).await;
    open(&program).gives(201).await;
}

/// The refusal of the spent key does not advise to make one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_made_with_a_spent_key_is_bounded_by_its_users_limit() {
    let limits = json!({
        "keyStoredBytesMax": STORED_MAX, "userStoredBytesMax": STORED_MAX + 3 * MESSAGE,
    });
    let (_folder, host) = started(limits).await;
    let spent = host.user("alice", &["read", "write", "keys"]).await;
    let session = Session::of(&open(&spent).await);
    let other = Session::of(&open(&spent).await);
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
    let issued = spent.post("/api/keys", &wanted).gives(201).await;
    let say_on = || {
        let request = host
            .bare(Method::POST, &format!("{other}/messages"))
            .bearer_auth(issued.text("key"))
            .json(&json!({ "content": "x".repeat(MESSAGE) }));
        host.send(request)
    };
    say_on().gives(202).await;
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
    let say = |session: &str, content: String| {
        let body = json!({ "content": content });
        alice.post(&format!("{session}/messages"), &body)
    };
    let steps = json!({
        "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }, { "reply": "thanks" }],
    });
    say(&asking, steps.to_string()).gives(202).await;
    let call = alice.question(&asking).await["tool_call_id"].take();
    let other = open(&alice).await;
    let other = Session::of(&other);
    while say(&other, "x".repeat(MESSAGE)).await.status == 202 {}
    let answer = json!({ "tool_call_id": call, "response": { "confirmed": true } });
    let refused = alice.post(&format!("{agent}/respond"), &answer).await;
    limited(&refused, code);
}

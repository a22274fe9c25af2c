//! Requests under a key, over HTTP: done once and answered again as they were, also after other
//! changes and after a crash.

use agent_host_tests::process::{
    Answer, Folder, Host, PATIENCE, Reply, Session, acting, is_asking, puppets, shows,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// The same request this often at the same time.
const AT_ONCE: usize = 8;

fn config() -> Value {
    let asks = json!([
        { "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": { "score": 1 } },
    ]);
    puppets(&json!([acting("asks", &asks), acting("spare", &asks)]))
}

async fn started() -> (Folder, Host) {
    Folder::serving(config(), &["puppet"]).await
}

/// A request, as it can be sent again to another host.
#[derive(Debug, Clone)]
struct RepeatedRequest {
    method: Method,
    path: String,
    key: String,
    body: Value,
}

impl RepeatedRequest {
    fn new(method: Method, path: &str, key: &str, body: Value) -> Self {
        Self {
            method,
            path: path.to_owned(),
            key: key.to_owned(),
            body,
        }
    }

    fn request(&self, host: &Host) -> RequestBuilder {
        let request = host
            .request(self.method.clone(), &self.path)
            .header("idempotency-key", &self.key);
        if self.body.is_null() {
            request
        } else {
            request.json(&self.body)
        }
    }

    #[track_caller]
    fn send(&self, host: &Host) -> Reply {
        host.send(self.request(host))
    }
}

/// A session of an agent's that waits for an answer: its path, and the question.
async fn lesson(host: &Host, agent: &str) -> (Session, Value) {
    let session = host.open_as(agent, "lesson").await;
    let seen = host.until(&session, is_asking).await;
    (session, seen["pending_action"]["tool_call_id"].clone())
}

/// Sends everything that takes a key and changes something, one after the other: each request with
/// its answer.
async fn everything(host: &Host) -> Vec<(RepeatedRequest, Answer)> {
    let mut done: Vec<(RepeatedRequest, Answer)> = Vec::new();
    let mut ask = async |method: Method, path: String, body: Value| {
        let asked = RepeatedRequest::new(method, &path, &format!("key-{}", done.len()), body);
        let answer = asked.send(host).await;
        assert!((200..300).contains(&answer.status), "{asked:?} {answer:?}");
        done.push((asked, answer.clone()));
        answer
    };
    let agent = format!(
        "/api/agents/{}",
        ask(
            Method::POST,
            "/api/agents".into(),
            json!({ "definition": "asks" })
        )
        .await
        .text("id")
    );
    ask(
        Method::POST,
        format!("{agent}/assign"),
        json!({ "user_id": "bob", "role": "shared" }),
    )
    .await;
    ask(
        Method::PUT,
        format!("{agent}/assignments/bob"),
        json!({ "role": "mentee" }),
    )
    .await;
    ask(
        Method::DELETE,
        format!("{agent}/assignments/bob"),
        Value::Null,
    )
    .await;
    ask(
        Method::PATCH,
        agent.clone(),
        json!({ "name": "Ada", "settings": { "a": 1 } }),
    )
    .await;
    // Changes nothing, and is remembered all the same.
    ask(Method::PATCH, agent.clone(), json!({ "name": "Ada" })).await;
    ask(
        Method::PATCH,
        format!("{agent}/preferences"),
        json!({ "mine": { "tone": "warm" } }),
    )
    .await;
    let (session, call) = lesson(host, &agent).await;
    ask(
        Method::POST,
        format!("{agent}/respond"),
        json!({ "tool_call_id": call, "response": { "confirmed": true } }),
    )
    .await;
    host.becomes(&session, "completed").await;
    lesson(host, &agent).await;
    ask(
        Method::DELETE,
        format!("{agent}/sessions/current"),
        Value::Null,
    )
    .await;
    let chat = host
        .post(
            &format!("{agent}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await;
    let chat = format!("{agent}/sessions/{}", chat.text("session_id"));
    assert_eq!(
        ask(Method::POST, format!("{chat}/cancel"), json!({}))
            .await
            .body["cancelled"],
        false
    );
    host.say(&chat, "hello").await;
    host.until(&chat, |seen| seen["run_status"] == "awaiting_client")
        .await;
    assert_eq!(
        ask(
            Method::POST,
            format!("{chat}/cancel"),
            json!({ "reason": "enough" })
        )
        .await
        .body["cancelled"],
        true
    );
    // A turn that begins later is not what the old request meant.
    host.say(&chat, "hello again").await;
    host.until(&chat, |seen| seen["run_status"] == "awaiting_client")
        .await;
    let fresh = ask(
        Method::POST,
        format!("{agent}/archive"),
        json!({ "fresh": true }),
    )
    .await
    .body["fresh"]["id"]
        .clone();
    host.until(&chat, |seen| seen["run_id"].is_null()).await;
    ask(
        Method::POST,
        format!("/api/agents/{}/handoff", fresh.as_str().unwrap()),
        json!({ "user_id": "carol" }),
    )
    .await;
    let spare = host
        .post("/api/agents", &json!({ "definition": "spare" }))
        .await
        .text("id");
    ask(
        Method::POST,
        format!("/api/agents/{spare}/archive"),
        json!({ "reason": "done" }),
    )
    .await;
    done
}

/// Work that is done under a key is done once and answered again as it was, also after a crash.
#[tokio::test(flavor = "multi_thread")]
async fn work_under_a_key_is_done_once_and_answered_alike_also_after_a_crash() {
    let (folder, host) = started().await;
    let done = everything(&host).await;
    host.kill().await;
    let host = folder.serve().await;
    let before = host.position().await;
    for (asked, first) in &done {
        let again = asked.send(&host).await;
        assert_eq!(
            (again.status, &again.body),
            (first.status, &first.body),
            "{asked:?}"
        );
        let other = RepeatedRequest::new(
            Method::POST,
            "/api/agents",
            &asked.key,
            json!({ "definition": "spare" }),
        )
        .send(&host)
        .refused(409, "IDEMPOTENCY_KEY_REUSED")
        .await;
        assert_eq!(other.text("field"), "header:Idempotency-Key");
    }
    assert_eq!(
        host.position().await,
        before,
        "a request that came again recorded something"
    );
    // The user who handed it over does not see it any more, and gets only the same answer again.
    let handed = done
        .iter()
        .find(|(asked, _)| asked.path.ends_with("/handoff"))
        .unwrap();
    let begun = host
        .post(&handed.0.path.replace("/handoff", "/sessions"), &json!({}))
        .await;
    assert_eq!(
        begun.status, 404,
        "it is not theirs any more, but for the operator's reading"
    );
    // Keys are each user's own.
    let alice = host.user("alice", &["read", "write"]).await;
    alice
        .post("/api/agents", &json!({ "definition": "asks" }))
        .gives(201)
        .await;
    for wrong in ["", &"k".repeat(256)] {
        let refused = RepeatedRequest::new(
            Method::POST,
            "/api/agents",
            wrong,
            json!({ "definition": "spare" }),
        )
        .send(&host)
        .await;
        refused.has(422, &json!({ "field": "header:Idempotency-Key" }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_at_the_same_time_is_done_once() {
    let (_folder, host) = started().await;
    let agent = format!(
        "/api/agents/{}",
        host.post("/api/agents", &json!({ "definition": "asks" }))
            .await
            .text("id")
    );
    let (_, call) = lesson(&host, &agent).await;
    for asked in [
        RepeatedRequest::new(
            Method::POST,
            &format!("{agent}/assign"),
            "a",
            json!({ "user_id": "bob", "role": "shared" }),
        ),
        RepeatedRequest::new(
            Method::POST,
            &format!("{agent}/respond"),
            "b",
            json!({ "tool_call_id": call, "response": { "confirmed": true } }),
        ),
        RepeatedRequest::new(
            Method::POST,
            "/api/agents",
            "c",
            json!({ "definition": "spare" }),
        ),
    ] {
        let answers = futures::future::join_all((0..AT_ONCE).map(|_| asked.send(&host))).await;
        let first = &answers[0];
        assert!((200..300).contains(&first.status), "{first:?}");
        for answer in &answers {
            assert_eq!(
                (answer.status, &answer.body),
                (first.status, &first.body),
                "{asked:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_host_died_before_it_said_so_is_acknowledged_when_it_comes_again() {
    let (folder, host) = started().await;
    let agent = format!(
        "/api/agents/{}",
        host.post("/api/agents", &json!({ "definition": "asks" }))
            .await
            .text("id")
    );
    let (session, call) = lesson(&host, &agent).await;
    host.kill().await;
    let mut host = folder.start(Some("broker.settle.after")).await.unwrap();
    let answer = RepeatedRequest::new(
        Method::POST,
        &format!("{agent}/respond"),
        "k",
        json!({ "tool_call_id": call, "response": { "confirmed": true } }),
    );
    assert!(
        host.send(answer.request(&host)).attempt().await.is_err(),
        "it died before it could say so"
    );
    host.died(PATIENCE).await;
    let host = folder.serve().await;
    let again = answer.send(&host).await;
    let events = host
        .get(&format!(
            "/api/events?after={}&limit=1",
            again.body["position"].as_u64().unwrap() - 1
        ))
        .await
        .body;
    assert_eq!(
        (again.status, &events["events"][0]["type"]),
        (202, &json!("run.settled.v1")),
        "{again:?}"
    );
    let ended = host.becomes(&session, "completed").await;
    assert_eq!(ended["metrics"]["interactions"], 1);
    assert_eq!(answer.send(&host).await.body, again.body);
}

/// Opens a chat with a new agent. Returns its path.
async fn chat(host: &Host) -> String {
    let agent = host
        .post("/api/agents", &json!({ "definition": "asks" }))
        .await
        .text("id");
    let opened = host
        .post(
            &format!("/api/agents/{agent}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await;
    format!("/api/agents/{agent}/sessions/{}", opened.text("session_id"))
}

/// Begins a turn that waits for an answer.
async fn begin_turn(host: &Host, chat: &str) {
    let hello = json!({ "content": "hello" });
    host.post(&format!("{chat}/messages"), &hello)
        .gives(202)
        .await;
    host.until(chat, |seen| seen["run_status"] == "awaiting_client")
        .await;
}

/// Says something that waits for the end of a turn, or else for an hour. Returns the input.
async fn say_later(host: &Host, chat: &str) -> String {
    let later = json!({
        "content": "and then?", "queue": { "mode": "followup", "debounce_ms": 3_600_000 },
    });
    let said = host.post(&format!("{chat}/messages"), &later).await;
    said.text("input_id")
}

/// The request to stop the turn in a chat and to take back what waits there.
fn cancel_with_waiting(chat: &str) -> RepeatedRequest {
    let path = format!("{chat}/cancel");
    RepeatedRequest::new(Method::POST, &path, "k", json!({ "waiting": true }))
}

/// The words, the end of the turn and the answer are one commit: after a death there are all of
/// them or none.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_died_at_its_end_still_answers_with_the_words_it_took_back() {
    for (point, still_waiting) in [("broker.end.before", 1), ("broker.end.after", 0)] {
        let (folder, host) = started().await;
        let chat = chat(&host).await;
        begin_turn(&host, &chat).await;
        let input = say_later(&host, &chat).await;
        host.kill().await;
        let mut host = folder.start(Some(point)).await.unwrap();
        let cancel = cancel_with_waiting(&chat);
        assert!(
            host.send(cancel.request(&host)).attempt().await.is_err(),
            "{point}: it died before it could say so"
        );
        host.died(PATIENCE).await;
        let host = folder.serve().await;
        let seen = host.get(&chat).await.body;
        assert_eq!(seen["waiting"], still_waiting, "{point}: {seen}");
        for _ in 0..2 {
            let again = cancel.send(&host).await;
            assert_eq!(
                (again.status, &again.body),
                (200, &json!({ "cancelled": true, "input_ids": [input] })),
                "{point}"
            );
        }
        let seen = host.get(&chat).await.body;
        assert_eq!(
            (&seen["waiting"], &seen["run_id"]),
            (&json!(0), &Value::Null),
            "{point}: {seen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_without_a_turn_takes_back_what_waits_and_stops_no_later_turn() {
    let (_folder, host) = started().await;
    let chat = chat(&host).await;
    begin_turn(&host, &chat).await;
    let input = say_later(&host, &chat).await;
    let stop = RepeatedRequest::new(Method::POST, &format!("{chat}/cancel"), "s", json!({}));
    assert_eq!(stop.send(&host).await.body["cancelled"], true);
    host.until(&chat, |seen| seen["run_id"].is_null()).await;
    let cancel = cancel_with_waiting(&chat);
    let taken_back = json!({ "cancelled": false, "input_ids": [input] });
    assert_eq!(cancel.send(&host).await.body, taken_back);
    begin_turn(&host, &chat).await;
    assert_eq!(cancel.send(&host).await.body, taken_back);
    let seen = host.get(&chat).await.body;
    shows(
        &seen,
        &json!({ "waiting": 0, "run_status": "awaiting_client" }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_issued_once_under_a_key_and_its_secret_is_not_kept_for_that() {
    let (folder, host) = started().await;
    let asked = RepeatedRequest::new(
        Method::POST,
        "/api/keys",
        "k",
        json!({ "name": "ci", "scopes": ["read"] }),
    );
    let issued = asked.send(&host).gives(201).await;
    let again = asked.send(&host).refused(409, "KEY_ISSUED_BEFORE").await;
    assert!(
        again
            .text("detail")
            .contains(&format!("`{}`", issued.text("id"))),
        "{again:?}"
    );
    let keys = host.get("/api/keys").await.body["keys"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(keys, 1, "no second one was issued");
    host.kill().await;
    let secret = issued.text("key");
    for entry in std::fs::read_dir(folder.data())
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().unwrap().is_file())
    {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(
            !bytes
                .windows(secret.len())
                .any(|found| found == secret.as_bytes()),
            "{}",
            entry.path().display()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_keys_is_refused() {
    let (_folder, host) = started().await;
    let request = host
        .request(Method::POST, "/api/agents")
        .header("idempotency-key", "a")
        .header("idempotency-key", "b");
    host.send(request.json(&json!({ "definition": "spare" })))
        .refused(400, "INVALID_IDEMPOTENCY_KEY")
        .await;
    assert!(
        host.get("/api/agents").await.body["agents"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_asked_for_at_the_same_time_do_not_pass_their_users_limit() {
    let (_folder, host) = started().await;
    let wanted = json!({ "user": "bob", "name": "k", "scopes": ["read"] });
    for _ in 0..98 {
        host.post("/api/keys", &wanted).gives(201).await;
    }
    let received =
        futures::future::join_all((0..16).map(|_| host.post("/api/keys", &wanted))).await;
    let issued = received
        .into_iter()
        .filter(|received| received.status == 201)
        .count();
    assert_eq!(issued, 2, "100 count at most");
}

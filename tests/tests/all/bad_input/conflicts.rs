//! Requests that are well formed and cannot be carried out. They answer no question, make what
//! exists already, repeat an earlier key, or come when all is over.

use super::document::Document;
use super::{ExpectedRefusal, NOBODY, RawAnswer, Stage, cut, end, requests, send, stage};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// More than what a session is opened with may have in bytes.
const CONFIG_BYTES: usize = 300_000;
/// More than what is kept of a half-filled widget may have in bytes.
const WIDGET_BYTES: usize = 64 << 10;

/// Method, path, body; the status and the code with which it is refused.
type Refusal = (Method, String, Value, u16, &'static str);

async fn refused(stage: &Stage, refusals: Vec<Refusal>) -> Vec<String> {
    let mut findings = Vec::new();
    for (method, path, body, status, code) in refusals {
        let what = format!("{method} {path} {body}");
        findings.extend(
            stage
                .refuses(
                    &what,
                    stage.ask(method, &path, &body),
                    ExpectedRefusal::new(status, code),
                )
                .await,
        );
    }
    findings
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_to_a_question_is_refused_and_the_question_waits_on() {
    let stage = stage().await;
    let before = stage.inspect().await;
    let mut findings = refused(&stage, no_answers(&stage)).await;
    findings.extend(refused(&stage, in_the_way(&stage)).await);
    findings.extend(stage.compare(&before).await);
    findings.extend(one_of_two_answers_is_taken(&stage).await);
    findings.extend(refused(&stage, after_the_end(&stage)).await);
    end(&findings);
}

/// Answers to other questions than the one that waits, and answers to it that do not fit.
fn no_answers(stage: &Stage) -> Vec<Refusal> {
    let asking = &stage.asking;
    let chatting = &stage.chatting;
    let call = stage.call.as_str();
    let wrong = "ab".repeat(32);
    let yes = json!({ "confirmed": true });
    let answer =
        |call: &str, response: &Value| json!({ "tool_call_id": call, "response": response });
    let old = |call: &str, response: &Value| json!({ "tool_call_id": call, "response": response });
    let kept =
        |call: &str, state: &Value| json!({ "tool_call_id": call, "widget_partial_state": state });
    let respond = |agent: &str| format!("/api/agents/{agent}/respond");
    let old_respond = |session: &str| format!("/api/session/{session}/respond");
    let ui =
        |agent: &str, session: &str| format!("/api/agents/{agent}/sessions/{session}/ui-state");
    let mut refusals = vec![
        (
            Method::POST,
            respond(asking.agent_id()),
            answer(&wrong, &yes),
            409,
            "INVALID_TOOL_CALL_ID",
        ),
        (
            Method::POST,
            old_respond(asking.id()),
            old(&wrong, &yes),
            409,
            "INVALID_TOOL_CALL_ID",
        ),
        (
            Method::POST,
            old_respond(asking.id()),
            old(call, &json!({})),
            422,
            "INVALID_RESPONSE",
        ),
        // Where nothing waits, and where it is not this one that waits.
        (
            Method::POST,
            respond(chatting.agent_id()),
            answer(&wrong, &yes),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::POST,
            respond(chatting.agent_id()),
            answer(call, &yes),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::POST,
            old_respond(chatting.id()),
            old(call, &yes),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::PUT,
            ui(asking.agent_id(), asking.id()),
            kept(&wrong, &yes),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::PUT,
            ui(chatting.agent_id(), chatting.id()),
            kept(call, &yes),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::PUT,
            ui(chatting.agent_id(), asking.id()),
            kept(call, &yes),
            404,
            "SESSION_NOT_FOUND",
        ),
        (
            Method::PUT,
            ui(asking.agent_id(), asking.id()),
            kept(call, &json!("x".repeat(WIDGET_BYTES))),
            422,
            "INVALID",
        ),
    ];
    for response in [
        json!({ "confirmed": "maybe" }),
        json!({ "confirmed": null }),
        json!({}),
        json!([]),
        json!(7),
        Value::Null,
    ] {
        refusals.push((
            Method::POST,
            respond(asking.agent_id()),
            answer(call, &response),
            422,
            "INVALID_RESPONSE",
        ));
    }
    refusals
}

/// Returns the requests that are refused while the session is active.
fn in_the_way(stage: &Stage) -> Vec<Refusal> {
    let agent = stage.asking.agent();
    let free = stage.chatting.agent();
    vec![
        (
            Method::POST,
            format!("{agent}/sessions"),
            json!({ "session_type": "lesson" }),
            409,
            "SESSION_ALREADY_ACTIVE",
        ),
        (
            Method::POST,
            format!("{agent}/sessions"),
            json!({ "session_type": "chat", "time_limit_s": 60 }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            format!("{agent}/archive"),
            json!({}),
            409,
            "SESSION_ALREADY_ACTIVE",
        ),
        (
            Method::POST,
            format!("{agent}/archive"),
            json!({ "fresh": true }),
            409,
            "SESSION_ALREADY_ACTIVE",
        ),
        (
            Method::DELETE,
            format!("{free}/sessions/current"),
            Value::Null,
            409,
            "NO_ACTIVE_SESSION",
        ),
    ]
}

/// The same answer twice at the same time.
async fn one_of_two_answers_is_taken(stage: &Stage) -> Vec<String> {
    let answer = json!({ "tool_call_id": stage.call, "response": { "confirmed": true } });
    let respond = || {
        send(stage.ask(
            Method::POST,
            &format!("{}/respond", stage.asking.agent()),
            &answer,
        ))
    };
    let (one, other) = tokio::join!(respond(), respond());
    let mut received: Vec<(u16, String)> = [one, other]
        .into_iter()
        .map(Result::unwrap)
        .map(|said| (said.status, said.code()))
        .collect();
    received.sort();
    stage
        .host
        .until(&stage.asking, |seen| seen["status"] == "completed")
        .await;
    let wanted = [(202, "none".to_owned()), (409, "NOT_SUSPENDED".to_owned())];
    (received != wanted)
        .then(|| format!("two answers at once: {wanted:?} was to come, and came {received:?}"))
        .into_iter()
        .collect()
}

/// Returns the requests that are refused once the session has ended.
fn after_the_end(stage: &Stage) -> Vec<Refusal> {
    let agent = stage.asking.agent();
    let session = &stage.asking;
    let old = format!("/api/session/{}", stage.asking.id());
    let call = &stage.call;
    let yes = json!({ "confirmed": true });
    vec![
        (
            Method::POST,
            format!("{agent}/respond"),
            json!({ "tool_call_id": call, "response": yes }),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::POST,
            format!("{old}/respond"),
            json!({ "tool_call_id": call, "response": yes }),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::PUT,
            format!("{session}/ui-state"),
            json!({ "tool_call_id": call, "widget_partial_state": {} }),
            409,
            "NOT_SUSPENDED",
        ),
        (
            Method::POST,
            format!("{session}/messages"),
            json!({ "content": "hello?" }),
            409,
            "SESSION_CLOSED",
        ),
        (
            Method::DELETE,
            format!("{agent}/sessions/current"),
            Value::Null,
            409,
            "NO_ACTIVE_SESSION",
        ),
        (Method::DELETE, old, Value::Null, 409, "NO_ACTIVE_SESSION"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_was_asked_before_or_is_over_is_refused_and_makes_nothing() {
    let stage = stage().await;
    let before = stage.inspect().await;
    let mut findings = refused(&stage, assigned_already(&stage)).await;
    findings.extend(refused(&stage, made_already(&stage)).await);
    findings.extend(refused(&stage, begun_with_nonsense()).await);
    findings.extend(stage.compare(&before).await);
    findings.extend(a_key_is_one_message(&stage).await);
    findings.extend(a_key_is_one_session(&stage).await);
    findings.extend(an_archived_agent_takes_no_commands(&stage).await);
    end(&findings);
}

/// Requests against two rules: a user is assigned once, and an agent keeps a primary.
fn assigned_already(stage: &Stage) -> Vec<Refusal> {
    let agent = stage.asking.agent();
    let assign = |user: &str, role: &str| json!({ "user_id": user, "role": role });
    vec![
        (
            Method::POST,
            format!("{agent}/assign"),
            assign("erin", "mentee"),
            409,
            "USER_ALREADY_ASSIGNED",
        ),
        (
            Method::POST,
            format!("{agent}/assign"),
            assign("local", "primary"),
            409,
            "USER_ALREADY_ASSIGNED",
        ),
        (
            Method::POST,
            format!("{agent}/assign"),
            assign("frank", "boss"),
            422,
            "INVALID_ASSIGNMENT_ROLE",
        ),
        (
            Method::POST,
            format!("{agent}/assign"),
            assign("system", "shared"),
            422,
            "INVALID_FIELD",
        ),
        (
            Method::PUT,
            format!("{agent}/assignments/frank"),
            json!({ "role": "shared" }),
            404,
            "USER_NOT_ASSIGNED",
        ),
        (
            Method::DELETE,
            format!("{agent}/assignments/frank"),
            Value::Null,
            404,
            "USER_NOT_ASSIGNED",
        ),
        (
            Method::PUT,
            format!("{agent}/assignments/local"),
            json!({ "role": "shared" }),
            409,
            "LAST_PRIMARY",
        ),
        (
            Method::DELETE,
            format!("{agent}/assignments/local"),
            Value::Null,
            409,
            "LAST_PRIMARY",
        ),
        (
            Method::POST,
            format!("{agent}/handoff"),
            json!({ "user_id": "local" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            format!("{agent}/handoff"),
            json!({ "user_id": "frank", "keep": "boss" }),
            422,
            "INVALID_ASSIGNMENT_ROLE",
        ),
    ]
}

/// Requests against three rules: an agent is made once at a path and once under an id, and a key
/// has at most its issuer's rights.
fn made_already(stage: &Stage) -> Vec<Refusal> {
    let agents = || "/api/agents".to_owned();
    let keys = || "/api/keys".to_owned();
    let id = stage.asking.agent_id();
    vec![
        (
            Method::POST,
            agents(),
            json!({ "definition": "chats" }),
            409,
            "PATH_TAKEN",
        ),
        (
            Method::POST,
            agents(),
            json!({ "definition": "spare", "path": "/local/agent/asks" }),
            409,
            "PATH_TAKEN",
        ),
        (
            Method::POST,
            agents(),
            json!({ "definition": "spare", "id": id }),
            409,
            "AGENT_EXISTS",
        ),
        (
            Method::POST,
            agents(),
            json!({ "definition": "spare", "path": "/alice/agent/spare" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            agents(),
            json!({ "definition": "nobody" }),
            404,
            "DEFINITION_NOT_FOUND",
        ),
        (
            Method::POST,
            agents(),
            json!({ "definition": "spare", "agent_type": "puppet" }),
            422,
            "MISSING_FIELD",
        ),
        (Method::POST, agents(), json!({}), 422, "MISSING_FIELD"),
        (
            Method::POST,
            keys(),
            json!({ "scopes": [] }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            keys(),
            json!({ "scopes": ["read"], "expires_in_s": 59 }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            keys(),
            json!({ "scopes": ["everything"] }),
            422,
            "INVALID_FIELD",
        ),
        (
            Method::DELETE,
            "/api/keys/aaaaaaaaaaaa".to_owned(),
            Value::Null,
            404,
            "KEY_NOT_FOUND",
        ),
        (
            Method::POST,
            format!("/api/dead-letters/{NOBODY}/requeue"),
            Value::Null,
            404,
            "DEAD_LETTER_NOT_FOUND",
        ),
        (
            Method::POST,
            format!("/api/quarantine/{NOBODY}/release"),
            Value::Null,
            404,
            "NOT_QUARANTINED",
        ),
        (
            Method::POST,
            "/api/import".to_owned(),
            json!({ "format": "another/1", "sessions": [] }),
            422,
            "INVALID_FIELD",
        ),
    ]
}

/// Sessions that cannot begin, with an agent that would be made on the way: it is not made either.
fn begun_with_nonsense() -> Vec<Refusal> {
    let sessions = || "/api/agents/spare/sessions".to_owned();
    let old = || "/api/session".to_owned();
    let large = json!({ "x": "y".repeat(CONFIG_BYTES) });
    vec![
        (
            Method::POST,
            sessions(),
            json!({ "session_type": "dance" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            sessions(),
            json!({ "model": "nobody" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            sessions(),
            json!({ "name": "a\nb" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            sessions(),
            json!({ "config": large }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            sessions(),
            json!({ "session_type": "chat", "time_limit_s": 60 }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            old(),
            json!({ "session_type": "dancing" }),
            400,
            "INVALID_SESSION_TYPE",
        ),
        (
            Method::POST,
            old(),
            json!({ "session_type": "learning", "model_id": "nobody" }),
            422,
            "INVALID",
        ),
        (
            Method::POST,
            old(),
            json!({ "session_type": "learning", "config": large }),
            422,
            "INVALID",
        ),
    ]
}

fn keyed(stage: &Stage, path: &str, key: &str, body: &Value) -> RequestBuilder {
    stage
        .ask(Method::POST, path, body)
        .header("idempotency-key", key)
}

/// Repeats a request with a key that was used before. Returns findings when it is not answered as
/// it was then, or makes something.
async fn replays(stage: &Stage, request: RequestBuilder, first: &RawAnswer) -> Vec<String> {
    let position = stage.position().await;
    let again = send(request).await.unwrap();
    // The one thing that tells them apart.
    let same = again
        .text
        .replace("\"replayed\":true", "\"replayed\":false");
    let mut findings = Vec::new();
    if (again.status, &same) != (first.status, &first.text) {
        findings.push(format!(
            "a request once more: {} was to come, and came {}",
            first.shown(),
            again.shown()
        ));
    }
    findings.extend(stage.changed_since(position, "a request once more").await);
    findings
}

async fn a_key_is_one_message(stage: &Stage) -> Vec<String> {
    let session = &stage.chatting;
    let messages = format!("{session}/messages");
    let sessions = format!("{}/sessions", stage.chatting.agent());
    let said = json!({ "content": json!({ "steps": [{ "reply": "hello" }] }).to_string() });
    let first = send(keyed(stage, &messages, "one", &said)).await.unwrap();
    assert_eq!(first.status, 202, "{}", first.shown());
    let answered = |seen: &Value| {
        seen["run_id"].is_null()
            && seen["messages"]
                .as_array()
                .is_some_and(|messages| messages.len() == 2)
    };
    stage.host.until(session, answered).await;
    let mut findings = replays(stage, keyed(stage, &messages, "one", &said), &first).await;
    let reused = ExpectedRefusal::new(409, "IDEMPOTENCY_KEY_REUSED");
    for (what, path, body) in [
        (
            "the key of another message",
            &messages,
            json!({ "content": "something else" }),
        ),
        (
            "the key of a message for a session",
            &sessions,
            json!({ "session_type": "chat" }),
        ),
    ] {
        findings.extend(
            stage
                .refuses(what, keyed(stage, path, "one", &body), reused)
                .await,
        );
    }
    findings
}

async fn a_key_is_one_session(stage: &Stage) -> Vec<String> {
    let sessions = format!("{}/sessions", stage.chatting.agent());
    let chat = json!({ "session_type": "chat" });
    let other = json!({ "session_type": "chat", "name": "another" });
    let first = send(keyed(stage, &sessions, "two", &chat)).await.unwrap();
    assert_eq!(first.status, 201, "{}", first.shown());
    let mut findings = replays(stage, keyed(stage, &sessions, "two", &chat), &first).await;
    let reused = ExpectedRefusal::new(409, "IDEMPOTENCY_KEY_REUSED");
    findings.extend(
        stage
            .refuses(
                "the key of another session",
                keyed(stage, &sessions, "two", &other),
                reused,
            )
            .await,
    );
    // A key of its own makes no second structured session.
    let lesson = keyed(
        stage,
        &format!("{}/sessions", stage.asking.agent()),
        "three",
        &json!({ "session_type": "lesson" }),
    );
    findings.extend(
        stage
            .refuses(
                "a second lesson with a key",
                lesson,
                ExpectedRefusal::new(409, "SESSION_ALREADY_ACTIVE"),
            )
            .await,
    );
    findings
}

async fn an_archived_agent_takes_no_commands(stage: &Stage) -> Vec<String> {
    let archived = send(stage.ask(
        Method::POST,
        &format!("{}/archive", stage.chatting.agent()),
        &Value::Null,
    ))
    .await
    .unwrap();
    assert_eq!(archived.status, 200, "{}", archived.shown());
    let before = stage.inspect().await;
    let mut findings = Vec::new();
    for operation in Document::of(&stage.host).await.operations() {
        // What is still under way can be stopped, and what still waits taken back.
        let stops = ["/cancel", "/abort", "/inputs/{input}"]
            .iter()
            .any(|end| operation.path.ends_with(end));
        if operation.method == Method::GET
            || !operation.path.starts_with("/api/agents/{id}")
            || stops
        {
            continue;
        }
        let path = requests::path_at(stage, &operation, &stage.chatting);
        // Without a body when it takes none.
        let body = requests::body(stage, &operation).unwrap_or_default();
        let request = stage.ask(operation.method.clone(), &path, &body);
        findings.extend(
            stage
                .refuses(
                    &cut(&format!("{operation}, archived")),
                    request,
                    ExpectedRefusal::new(409, "AGENT_ARCHIVED"),
                )
                .await,
        );
    }
    findings.extend(stage.compare(&before).await);
    findings
}

//! Requests that are well formed and cannot be carried out. They answer no question, make what
//! exists already, repeat an earlier key, or come when all is over.

use super::document::Document;
use super::{ExpectedRefusal, NOBODY, RawAnswer, Stage, cut, end, requests, send, stage};
use agent_host_tests::process::Row;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// More than what a session is opened with may have in bytes.
const CONFIG_BYTES: usize = 300_000;
/// More than what is kept of a half-filled widget may have in bytes.
const WIDGET_BYTES: usize = 64 << 10;

/// Sends requests, a row each: `POST /path {"a":1} => 409 CODE`. Names in braces stand for what the
/// stage has. Returns findings for those that are not refused as their rows say.
async fn refused(stage: &Stage, rows: &[&str]) -> Vec<String> {
    let asking = &stage.asking;
    let chatting = &stage.chatting;
    let names: [(&str, &str); 13] = [
        ("{asking}", asking),
        ("{asker}", asking.agent()),
        ("{asker-id}", asking.agent_id()),
        ("{asking-id}", asking.id()),
        ("{chatting-id}", chatting.id()),
        ("{chatter}", chatting.agent()),
        ("{call}", &stage.call),
        ("{wrong}", &"ab".repeat(32)),
        ("{yes}", r#"{"confirmed":true}"#),
        ("{nobody}", NOBODY),
        ("{large}", &"x".repeat(CONFIG_BYTES)),
        ("{large-widget}", &"x".repeat(WIDGET_BYTES)),
        ("{ui-state}", &format!("{asking}/ui-state")),
    ];
    let mut findings = Vec::new();
    for row in rows {
        let row = Row::of(row, &names);
        let request = stage.ask(row.method, &row.path, &row.body.unwrap_or_default());
        let wanted = ExpectedRefusal::new(row.status, &row.code);
        findings.extend(stage.refuses(&row.shown, request, wanted).await);
    }
    findings
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_to_a_question_is_refused_and_the_question_waits_on() {
    let stage = stage().await;
    let before = stage.inspect().await;
    let mut findings = refused(&stage, NO_ANSWERS).await;
    findings.extend(refused(&stage, IN_THE_WAY).await);
    findings.extend(stage.compare(&before).await);
    findings.extend(one_of_two_answers_is_taken(&stage).await);
    findings.extend(refused(&stage, AFTER_THE_END).await);
    end(&findings);
}

/// Answers to other questions than the one that waits, and answers to it that do not fit.
const NO_ANSWERS: &[&str] = &[
    r#"POST {asker}/respond {"tool_call_id":"{wrong}","response":{yes}} => 409 INVALID_TOOL_CALL_ID"#,
    r#"POST /api/session/{asking-id}/respond {"tool_call_id":"{wrong}","response":{yes}} => 409 INVALID_TOOL_CALL_ID"#,
    r#"POST /api/session/{asking-id}/respond {"tool_call_id":"{call}","response":{}} => 422 INVALID_RESPONSE"#,
    // Where nothing waits, and where it is not this one that waits.
    r#"POST {chatter}/respond {"tool_call_id":"{wrong}","response":{yes}} => 409 NOT_SUSPENDED"#,
    r#"POST {chatter}/respond {"tool_call_id":"{call}","response":{yes}} => 409 NOT_SUSPENDED"#,
    r#"POST /api/session/{chatting-id}/respond {"tool_call_id":"{call}","response":{yes}} => 409 NOT_SUSPENDED"#,
    r#"PUT {ui-state} {"tool_call_id":"{wrong}","widget_partial_state":{yes}} => 409 NOT_SUSPENDED"#,
    r#"PUT {chatter}/sessions/{chatting-id}/ui-state {"tool_call_id":"{call}","widget_partial_state":{yes}} => 409 NOT_SUSPENDED"#,
    r#"PUT {chatter}/sessions/{asking-id}/ui-state {"tool_call_id":"{call}","widget_partial_state":{yes}} => 404 SESSION_NOT_FOUND"#,
    r#"PUT {ui-state} {"tool_call_id":"{call}","widget_partial_state":"{large-widget}"} => 422 INVALID"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":{"confirmed":"maybe"}} => 422 INVALID_RESPONSE"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":{"confirmed":null}} => 422 INVALID_RESPONSE"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":{}} => 422 INVALID_RESPONSE"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":[]} => 422 INVALID_RESPONSE"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":7} => 422 INVALID_RESPONSE"#,
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":null} => 422 INVALID_RESPONSE"#,
];

/// Requests that are refused while the session is active.
const IN_THE_WAY: &[&str] = &[
    r#"POST {asker}/sessions {"session_type":"lesson"} => 409 SESSION_ALREADY_ACTIVE"#,
    r#"POST {asker}/sessions {"session_type":"chat","time_limit_s":60} => 422 INVALID"#,
    "POST {asker}/archive {} => 409 SESSION_ALREADY_ACTIVE",
    r#"POST {asker}/archive {"fresh":true} => 409 SESSION_ALREADY_ACTIVE"#,
    "DELETE {chatter}/sessions/current => 409 NO_ACTIVE_SESSION",
];

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

/// Requests that are refused once the session has ended.
const AFTER_THE_END: &[&str] = &[
    r#"POST {asker}/respond {"tool_call_id":"{call}","response":{yes}} => 409 NOT_SUSPENDED"#,
    r#"POST /api/session/{asking-id}/respond {"tool_call_id":"{call}","response":{yes}} => 409 NOT_SUSPENDED"#,
    r#"PUT {ui-state} {"tool_call_id":"{call}","widget_partial_state":{}} => 409 NOT_SUSPENDED"#,
    r#"POST {asking}/messages {"content":"hello?"} => 409 SESSION_CLOSED"#,
    "DELETE {asker}/sessions/current => 409 NO_ACTIVE_SESSION",
    "DELETE /api/session/{asking-id} => 409 NO_ACTIVE_SESSION",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_was_asked_before_or_is_over_is_refused_and_makes_nothing() {
    let stage = stage().await;
    let before = stage.inspect().await;
    let mut findings = refused(&stage, ASSIGNED_ALREADY).await;
    findings.extend(refused(&stage, MADE_ALREADY).await);
    findings.extend(refused(&stage, BEGUN_WITH_NONSENSE).await);
    findings.extend(stage.compare(&before).await);
    findings.extend(a_key_is_one_message(&stage).await);
    findings.extend(a_key_is_one_session(&stage).await);
    findings.extend(an_archived_agent_takes_no_commands(&stage).await);
    end(&findings);
}

/// Requests against two rules: a user is assigned once, and an agent keeps a primary.
const ASSIGNED_ALREADY: &[&str] = &[
    r#"POST {asker}/assign {"user_id":"erin","role":"mentee"} => 409 USER_ALREADY_ASSIGNED"#,
    r#"POST {asker}/assign {"user_id":"local","role":"primary"} => 409 USER_ALREADY_ASSIGNED"#,
    r#"POST {asker}/assign {"user_id":"frank","role":"boss"} => 422 INVALID_ASSIGNMENT_ROLE"#,
    r#"POST {asker}/assign {"user_id":"system","role":"shared"} => 422 INVALID_FIELD"#,
    r#"PUT {asker}/assignments/frank {"role":"shared"} => 404 USER_NOT_ASSIGNED"#,
    "DELETE {asker}/assignments/frank => 404 USER_NOT_ASSIGNED",
    r#"PUT {asker}/assignments/local {"role":"shared"} => 409 LAST_PRIMARY"#,
    "DELETE {asker}/assignments/local => 409 LAST_PRIMARY",
    r#"POST {asker}/handoff {"user_id":"local"} => 422 INVALID"#,
    r#"POST {asker}/handoff {"user_id":"frank","keep":"boss"} => 422 INVALID_ASSIGNMENT_ROLE"#,
    r#"POST {asker}/assign {"user_id":"a b","role":"shared"} => 422 INVALID_FIELD"#,
    r#"POST {asker}/assign {"user":"bob"} => 422 UNKNOWN_FIELD"#,
    "DELETE {asker}/assignments/a%20b => 400 INVALID_ID",
];

/// Requests against three rules: an agent is made once at a path and once under an id, and a key
/// has at most its issuer's rights.
const MADE_ALREADY: &[&str] = &[
    r#"POST /api/agents {"definition":"chats"} => 409 PATH_TAKEN"#,
    r#"POST /api/agents {"definition":"spare","path":"/local/agent/asks"} => 409 PATH_TAKEN"#,
    r#"POST /api/agents {"definition":"spare","id":"{asker-id}"} => 409 AGENT_EXISTS"#,
    r#"POST /api/agents {"definition":"spare","path":"/alice/agent/spare"} => 422 INVALID"#,
    r#"POST /api/agents {"definition":"nobody"} => 404 DEFINITION_NOT_FOUND"#,
    r#"POST /api/agents {"definition":"spare","agent_type":"puppet"} => 422 MISSING_FIELD"#,
    "POST /api/agents {} => 422 MISSING_FIELD",
    r#"POST /api/keys {"scopes":[]} => 422 INVALID"#,
    r#"POST /api/keys {"scopes":["read"],"expires_in_s":59} => 422 INVALID"#,
    r#"POST /api/keys {"scopes":["everything"]} => 422 INVALID_FIELD"#,
    "DELETE /api/keys/aaaaaaaaaaaa => 404 KEY_NOT_FOUND",
    "POST /api/dead-letters/{nobody}/requeue => 404 DEAD_LETTER_NOT_FOUND",
    "POST /api/quarantine/{nobody}/release => 404 NOT_QUARANTINED",
    r#"POST /api/import {"format":"another/1","sessions":[]} => 422 INVALID_FIELD"#,
];

/// Sessions and turns that cannot begin, with an agent that would be made on the way: it is not
/// made either.
const BEGUN_WITH_NONSENSE: &[&str] = &[
    r#"POST /api/agents/spare/sessions {"session_type":"dance"} => 422 INVALID"#,
    r#"POST /api/agents/spare/sessions {"model":"nobody"} => 422 INVALID"#,
    r#"POST /api/agents/spare/sessions {"name":"a\nb"} => 422 INVALID"#,
    r#"POST /api/agents/spare/sessions {"config":{"x":"{large}"}} => 422 INVALID"#,
    r#"POST /api/agents/spare/sessions {"session_type":"chat","time_limit_s":60} => 422 INVALID"#,
    r#"POST /api/agents/spare/sessions {"session_type":"chat","time_limit_s":0} => 422 INVALID_FIELD"#,
    r#"PATCH {chatter} {"name":""} => 422 INVALID"#,
    r#"PATCH {chatter} {"settings":[]} => 422 INVALID_FIELD"#,
    "PATCH {chatter}/preferences {} => 422 MISSING_FIELD",
    r#"POST {chatter}/sessions/{chatting-id}/messages {"content":"x","model":"nobody"} => 422 INVALID"#,
    r#"POST /api/session {"session_type":"dancing"} => 400 INVALID_SESSION_TYPE"#,
    r#"POST /api/session {"session_type":"learning","model_id":"nobody"} => 422 INVALID"#,
    r#"POST /api/session {"session_type":"learning","config":{"x":"{large}"}} => 422 INVALID"#,
];

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

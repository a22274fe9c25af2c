//! Tests of the faults that a request can have, and of the problem that each is answered with.

use super::host::{Host, TOKEN};
use crate::Limits;
use crate::server::BODY_BYTES_MAX;

/// Faults of a request, each with the problem that answers it.
const CASES: &[&str] = &[
    "GET /nowhere => 404 ROUTE_NOT_FOUND",
    "GET /api/agents/a/b/c/d => 404 ROUTE_NOT_FOUND",
    "PUT /api/agents => 405 METHOD_NOT_ALLOWED",
    "POST /healthz => 405 METHOD_NOT_ALLOWED",
    "GET /api/agents/{other} => 404 AGENT_NOT_FOUND",
    "GET /api/agents/assistant => 404 AGENT_NOT_FOUND",
    "GET /api/agents/%2Flocal%2Fagent%2Fx => 404 AGENT_NOT_FOUND",
    "GET /api/agents/%ff => 400 INVALID_ID path:id",
    "POST /api/agents/nobody/sessions => 404 DEFINITION_NOT_FOUND",
    "GET {agent}/sessions/x => 400 INVALID_ID path:sid",
    "GET {agent}/sessions/{other} => 404 SESSION_NOT_FOUND",
    "GET /api/sessions/{other} => 404 SESSION_NOT_FOUND",
    "DELETE {agent}/sessions/current => 409 NO_ACTIVE_SESSION",
    "POST /api/dead-letters/{other}/requeue => 404 DEAD_LETTER_NOT_FOUND",
    "POST /api/dead-letters/x/requeue => 400 INVALID_ID path:id",
    "POST /api/quarantine/{other}/release => 404 NOT_QUARANTINED",
    "POST /api/quarantine/x/release => 400 INVALID_ID path:id",
    "DELETE /api/dead-letters/{other}?reason=done => 404 DEAD_LETTER_NOT_FOUND",
    "DELETE /api/dead-letters/x => 400 INVALID_ID path:id",
    "GET /api/dead-letters/{other} => 404 DEAD_LETTER_NOT_FOUND",
    "GET /api/dead-letters/x => 400 INVALID_ID path:id",
    r#"POST /api/agents {"definition": => 400 MALFORMED_JSON"#,
    "POST /api/agents \u{7f} => 400 MALFORMED_JSON",
    r#"POST /api/agents {"definitoin":"a"} => 422 UNKNOWN_FIELD /definitoin"#,
    "POST /api/agents {} => 422 MISSING_FIELD /definition",
    r#"POST /api/agents {"definition":7} => 422 INVALID_FIELD /definition"#,
    r#"POST /api/agents {"definition":"a","id":"x"} => 422 INVALID_FIELD /id"#,
    r#"POST /api/agents {"definition":"nobody"} => 404 DEFINITION_NOT_FOUND /definition"#,
    r#"POST /api/agents <> {"definition":"a"} => 415 UNSUPPORTED_MEDIA_TYPE header:Content-Type"#,
    "POST /api/agents <content-type: text/plain> {} => 415 UNSUPPORTED_MEDIA_TYPE header:Content-Type",
    r#"POST {messages} {"content":""} => 422 INVALID /content"#,
    r#"POST {messages} {"content":[]} => 422 INVALID /content"#,
    "POST {messages} {\"content\":\" \\n\\t\u{a0}\"} => 422 INVALID /content",
    r#"POST {messages} {"content":[{"type":"text","text":" "},{"type":"text","text":""}]} => 422 INVALID /content"#,
    r#"POST {messages} {"content":7} => 422 INVALID_FIELD /content"#,
    r#"POST {messages} {"content":[{"type":"image","text":"x"}]} => 422 INVALID_FIELD /content/0/type"#,
    r#"POST {messages} {"content":[{"type":"text","txt":"x"}]} => 422 UNKNOWN_FIELD /content/0/txt"#,
    r#"POST {messages} {"content":["text","x"]} => 422 INVALID_FIELD /content/0"#,
    r#"POST {messages} {"content":[["text","x"]]} => 422 INVALID_FIELD /content/0"#,
    r#"POST {messages} ["x",null] => 422 INVALID_FIELD"#,
    r#"POST {messages} {"content":"x","content":"y"} => 422 INVALID_FIELD /content"#,
    // The definition says which models may be named, and this one is gone.
    r#"POST {messages} {"content":"x","model":"nope"} => 409 DEFINITION_GONE"#,
    r#"POST {messages} <idempotency-key: > {"content":"x"} => 422 INVALID header:Idempotency-Key"#,
    "POST {messages} <idempotency-key: \u{e9}> {\"content\":\"x\"} \
     => 400 INVALID_IDEMPOTENCY_KEY header:Idempotency-Key",
    r#"POST {agent}/sessions/{other}/messages {"content":"x"} => 404 SESSION_NOT_FOUND"#,
    r#"POST {agent}/respond {"tool_call_id":"x","response":1} => 422 INVALID_FIELD /tool_call_id"#,
    r#"POST {agent}/respond {"tool_call_id":"x"} => 422 MISSING_FIELD /response"#,
    r#"POST {agent}/respond {"tool_call_id":"{call}","response":1} => 409 DEFINITION_GONE"#,
    "GET /api/agents?limti=1 => 400 INVALID_QUERY query:limti",
    "GET /api/agents?limit=x => 400 INVALID_QUERY query:limit",
    "GET /api/agents?after=x => 400 INVALID_QUERY query:after",
    "GET /api/events?after=-1 => 400 INVALID_QUERY query:after",
    "GET /api/events?session=x => 400 INVALID_QUERY query:session",
    "GET {agent}/stream <last-event-id: -1> => 400 INVALID_LAST_EVENT_ID header:Last-Event-ID",
    "GET {agent}/stream <last-event-id: 99999999999999999999> \
     => 400 INVALID_LAST_EVENT_ID header:Last-Event-ID",
    "GET {agent}/stream <last-event-id: garbage> => 400 INVALID_LAST_EVENT_ID header:Last-Event-ID",
    "GET {agent}/stream?after=x => 400 INVALID_LAST_EVENT_ID query:after",
    "GET {agent}/memory?q=tea&before=3 => 400 INVALID_QUERY query:before",
    "GET {agent}/stream?spawned=true => 400 INVALID_QUERY query:session",
    "GET {agent}/stream?session=x => 400 INVALID_QUERY query:session",
    "GET {agent}/stream?session={other} => 404 SESSION_NOT_FOUND",
    "GET /api/agents/{other}/stream => 404 AGENT_NOT_FOUND",
];

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_request_is_told_with_its_code_and_field() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let agent = format!("/api/agents/{agent}");
    let names: [(&str, &str); 4] = [
        (
            "{messages}",
            &format!("{agent}/sessions/{session}/messages"),
        ),
        ("{agent}", &agent),
        // The id of nothing.
        ("{other}", "7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f"),
        ("{call}", &"ab".repeat(32)),
    ];
    host.refuses(TOKEN, &names, CASES).await;
    assert_eq!(host.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_query_is_said_to_be_named_by_its_uuid_or_its_path() {
    let host = Host::start().await;
    for list in [
        "/api/tasks",
        "/api/tasks/stats",
        "/api/usage",
        "/api/telemetry",
    ] {
        let refused = host.get(&format!("{list}?agent=nosuch")).await.json();
        assert_eq!(refused["code"], "INVALID_QUERY", "{list}: {refused}");
        assert_eq!(refused["field"], "query:agent", "{list}: {refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(
            detail.contains("UUID") && detail.contains("path"),
            "{list}: {detail}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_the_token_or_with_another_name_is_refused() {
    let host = Host::start().await;
    let token = format!("authorization: Bearer {TOKEN}");
    for (headers, status, code, field) in [
        (
            vec!["host: localhost"],
            401,
            "UNAUTHORIZED",
            "header:Authorization",
        ),
        (
            vec!["host: localhost", "authorization: Bearer wrong"],
            401,
            "UNAUTHORIZED",
            "header:Authorization",
        ),
        (
            vec!["host: evil.example", &token],
            403,
            "HOST_NOT_ALLOWED",
            "header:Host",
        ),
        (
            vec!["host: localhost", "origin: https://evil.example", &token],
            403,
            "ORIGIN_NOT_ALLOWED",
            "header:Origin",
        ),
    ] {
        let answer = host.send_as_it_is("GET", "/api/agents", &headers, "").await;
        let problem = answer.json();
        assert_eq!(
            (
                answer.status,
                problem["code"].as_str(),
                problem["field"].as_str()
            ),
            (status, Some(code), Some(field))
        );
        assert_eq!(answer.has("www-authenticate: Bearer"), status == 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_read_and_while_it_is() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let messages = format!("/api/agents/{agent}/sessions/{session}/messages");
    let json = "content-type: application/json";
    let announced = host
        .send(
            "POST",
            "/api/agents",
            &[json, "content-length: 10000000000"],
            "{",
        )
        .await;
    assert_eq!(
        (announced.status, announced.json()["code"].as_str()),
        (413, Some("BODY_TOO_LARGE"))
    );
    assert!(
        announced.has("connection: close"),
        "whoever has sent the rest would send the next request after it"
    );
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let chunked = host
        .send(
            "POST",
            "/api/agents",
            &[json, "transfer-encoding: chunked"],
            &chunk.repeat(4),
        )
        .await;
    assert_eq!(
        (chunked.status, chunked.json()["code"].as_str()),
        (413, Some("BODY_TOO_LARGE"))
    );
    let message = format!("{{\"content\":\"{}\"}}", "x".repeat((1 << 20) + 1));
    assert!(message.len() < BODY_BYTES_MAX);
    let large = host.post(&messages, &message).await;
    assert_eq!(
        (large.status, large.json()["field"].as_str()),
        (413, Some("/content")),
        "{}",
        large.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_ends_is_given_up() {
    let host = Host::start_with(Limits {
        body_ms_max: 200,
        ..Limits::default()
    })
    .await;
    let late = host
        .send(
            "POST",
            "/api/agents",
            &["content-type: application/json", "content-length: 100"],
            "{",
        )
        .await;
    assert_eq!(
        (late.status, late.json()["code"].as_str()),
        (408, Some("BODY_TIMEOUT"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_host_starts_or_stops_it_says_so_and_when_to_try_again() {
    let host = Host::starting(Limits::default()).await;
    for path in ["/readyz", "/api/agents"] {
        let answer = host.get(path).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (503, Some("STARTING"))
        );
        assert!(answer.has("retry-after: "));
    }
    assert_eq!(host.get("/healthz").await.body, "ok");
    host.api.open(host.broker.clone(), host.edge.clone());
    assert_eq!(host.get("/readyz").await.status, 200);
    host.api.drain();
    assert_eq!(host.get("/readyz").await.json()["code"], "SHUTTING_DOWN");
    assert_eq!(
        host.post("/api/agents", "{\"definition\":\"a\"}")
            .await
            .json()["code"],
        "SHUTTING_DOWN"
    );
    assert_eq!(host.get("/api/agents").await.status, 200);
}

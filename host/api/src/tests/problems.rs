//! Tests of the faults that a request can have, and of the problem that each is answered with.

use super::host::{Host, TOKEN};
use crate::Limits;
use crate::server::BODY_BYTES_MAX;

/// Method, path, headers, body; status, code, field.
type Case = (
    &'static str,
    String,
    Vec<&'static str>,
    String,
    u16,
    &'static str,
    Option<&'static str>,
);

const JSON: &str = "content-type: application/json";
/// The id of nothing.
const OTHER: &str = "7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f";

fn of_routes_and_ids(agent: &str) -> Vec<Case> {
    vec![
        (
            "GET",
            "/nowhere".into(),
            vec![],
            "".into(),
            404,
            "ROUTE_NOT_FOUND",
            None,
        ),
        (
            "GET",
            "/api/agents/a/b/c/d".into(),
            vec![],
            "".into(),
            404,
            "ROUTE_NOT_FOUND",
            None,
        ),
        (
            "PUT",
            "/api/agents".into(),
            vec![],
            "".into(),
            405,
            "METHOD_NOT_ALLOWED",
            None,
        ),
        (
            "POST",
            "/healthz".into(),
            vec![],
            "".into(),
            405,
            "METHOD_NOT_ALLOWED",
            None,
        ),
        (
            "GET",
            format!("/api/agents/{OTHER}"),
            vec![],
            "".into(),
            404,
            "AGENT_NOT_FOUND",
            None,
        ),
        (
            "GET",
            "/api/agents/assistant".into(),
            vec![],
            "".into(),
            404,
            "AGENT_NOT_FOUND",
            None,
        ),
        (
            "GET",
            "/api/agents/%2Flocal%2Fagent%2Fx".into(),
            vec![],
            "".into(),
            404,
            "AGENT_NOT_FOUND",
            None,
        ),
        (
            "GET",
            "/api/agents/%ff".into(),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:id"),
        ),
        (
            "POST",
            "/api/agents/nobody/sessions".into(),
            vec![],
            "".into(),
            404,
            "DEFINITION_NOT_FOUND",
            None,
        ),
        (
            "GET",
            format!("{agent}/sessions/x"),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:sid"),
        ),
        (
            "GET",
            format!("{agent}/sessions/{OTHER}"),
            vec![],
            "".into(),
            404,
            "SESSION_NOT_FOUND",
            None,
        ),
        (
            "GET",
            format!("/api/sessions/{OTHER}"),
            vec![],
            "".into(),
            404,
            "SESSION_NOT_FOUND",
            None,
        ),
        (
            "DELETE",
            format!("{agent}/sessions/current"),
            vec![],
            "".into(),
            409,
            "NO_ACTIVE_SESSION",
            None,
        ),
        (
            "POST",
            format!("/api/dead-letters/{OTHER}/requeue"),
            vec![],
            "".into(),
            404,
            "DEAD_LETTER_NOT_FOUND",
            None,
        ),
        (
            "POST",
            format!("/api/quarantine/{OTHER}/release"),
            vec![],
            "".into(),
            404,
            "NOT_QUARANTINED",
            None,
        ),
        (
            "POST",
            "/api/quarantine/x/release".into(),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:id"),
        ),
        (
            "DELETE",
            format!("/api/dead-letters/{OTHER}?reason=done"),
            vec![],
            "".into(),
            404,
            "DEAD_LETTER_NOT_FOUND",
            None,
        ),
        (
            "DELETE",
            "/api/dead-letters/x".into(),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:id"),
        ),
        (
            "GET",
            format!("/api/dead-letters/{OTHER}"),
            vec![],
            "".into(),
            404,
            "DEAD_LETTER_NOT_FOUND",
            None,
        ),
        (
            "GET",
            "/api/dead-letters/x".into(),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:id"),
        ),
        (
            "POST",
            "/api/dead-letters/x/requeue".into(),
            vec![],
            "".into(),
            400,
            "INVALID_ID",
            Some("path:id"),
        ),
    ]
}

/// A body posted as JSON.
fn posted(
    path: &str,
    body: &str,
    status: u16,
    code: &'static str,
    field: Option<&'static str>,
) -> Case {
    (
        "POST",
        path.to_owned(),
        vec![JSON],
        body.to_owned(),
        status,
        code,
        field,
    )
}

fn of_agents() -> Vec<Case> {
    let agents = "/api/agents";
    vec![
        posted(agents, r#"{"definition":"#, 400, "MALFORMED_JSON", None),
        posted(agents, "\u{7f}", 400, "MALFORMED_JSON", None),
        posted(
            agents,
            r#"{"definitoin":"a"}"#,
            422,
            "UNKNOWN_FIELD",
            Some("/definitoin"),
        ),
        posted(agents, "{}", 422, "MISSING_FIELD", Some("/definition")),
        posted(
            agents,
            r#"{"definition":7}"#,
            422,
            "INVALID_FIELD",
            Some("/definition"),
        ),
        posted(
            agents,
            r#"{"definition":"a","id":"x"}"#,
            422,
            "INVALID_FIELD",
            Some("/id"),
        ),
        posted(
            agents,
            r#"{"definition":"nobody"}"#,
            404,
            "DEFINITION_NOT_FOUND",
            Some("/definition"),
        ),
        (
            "POST",
            agents.into(),
            vec![],
            r#"{"definition":"a"}"#.into(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            Some("header:Content-Type"),
        ),
        (
            "POST",
            agents.into(),
            vec!["content-type: text/plain"],
            "{}".into(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            Some("header:Content-Type"),
        ),
    ]
}

fn of_messages(agent: &str, session: &str) -> Vec<Case> {
    let messages = &format!("{agent}/sessions/{session}/messages");
    let elsewhere = &format!("{agent}/sessions/{OTHER}/messages");
    let respond = &format!("{agent}/respond");
    let answer = &format!(r#"{{"tool_call_id":"{}","response":1}}"#, "ab".repeat(32));
    let key = vec![JSON, "idempotency-key: \u{e9}"];
    let empty_key = vec![JSON, "idempotency-key: "];
    vec![
        posted(
            messages,
            r#"{"content":""}"#,
            422,
            "INVALID",
            Some("/content"),
        ),
        posted(
            messages,
            r#"{"content":[]}"#,
            422,
            "INVALID",
            Some("/content"),
        ),
        posted(
            messages,
            "{\"content\":\" \\n\\t\u{a0}\"}",
            422,
            "INVALID",
            Some("/content"),
        ),
        posted(
            messages,
            r#"{"content":[{"type":"text","text":" "},{"type":"text","text":""}]}"#,
            422,
            "INVALID",
            Some("/content"),
        ),
        posted(
            messages,
            r#"{"content":7}"#,
            422,
            "INVALID_FIELD",
            Some("/content"),
        ),
        posted(
            messages,
            r#"{"content":[{"type":"image","text":"x"}]}"#,
            422,
            "INVALID_FIELD",
            Some("/content/0/type"),
        ),
        posted(
            messages,
            r#"{"content":[{"type":"text","txt":"x"}]}"#,
            422,
            "UNKNOWN_FIELD",
            Some("/content/0/txt"),
        ),
        posted(
            messages,
            r#"{"content":["text","x"]}"#,
            422,
            "INVALID_FIELD",
            Some("/content/0"),
        ),
        posted(
            messages,
            r#"{"content":[["text","x"]]}"#,
            422,
            "INVALID_FIELD",
            Some("/content/0"),
        ),
        posted(messages, r#"["x",null]"#, 422, "INVALID_FIELD", None),
        posted(
            messages,
            r#"{"content":"x","content":"y"}"#,
            422,
            "INVALID_FIELD",
            Some("/content"),
        ),
        posted(
            messages,
            // The definition says which models may be named, and this one is gone.
            r#"{"content":"x","model":"nope"}"#,
            409,
            "DEFINITION_GONE",
            None,
        ),
        (
            "POST",
            messages.clone(),
            empty_key,
            r#"{"content":"x"}"#.into(),
            422,
            "INVALID",
            Some("header:Idempotency-Key"),
        ),
        (
            "POST",
            messages.clone(),
            key,
            r#"{"content":"x"}"#.into(),
            400,
            "INVALID_IDEMPOTENCY_KEY",
            Some("header:Idempotency-Key"),
        ),
        posted(
            elsewhere,
            r#"{"content":"x"}"#,
            404,
            "SESSION_NOT_FOUND",
            None,
        ),
        posted(
            respond,
            r#"{"tool_call_id":"x","response":1}"#,
            422,
            "INVALID_FIELD",
            Some("/tool_call_id"),
        ),
        posted(
            respond,
            r#"{"tool_call_id":"x"}"#,
            422,
            "MISSING_FIELD",
            Some("/response"),
        ),
        posted(respond, answer, 409, "DEFINITION_GONE", None),
    ]
}

fn of_queries_and_streams(agent: &str) -> Vec<Case> {
    vec![
        (
            "GET",
            "/api/agents?limti=1".into(),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:limti"),
        ),
        (
            "GET",
            "/api/agents?limit=x".into(),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:limit"),
        ),
        (
            "GET",
            "/api/agents?after=x".into(),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:after"),
        ),
        (
            "GET",
            "/api/events?after=-1".into(),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:after"),
        ),
        (
            "GET",
            "/api/events?session=x".into(),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:session"),
        ),
        (
            "GET",
            format!("{agent}/stream"),
            vec!["last-event-id: -1"],
            "".into(),
            400,
            "INVALID_LAST_EVENT_ID",
            Some("header:Last-Event-ID"),
        ),
        (
            "GET",
            format!("{agent}/stream"),
            vec!["last-event-id: 99999999999999999999"],
            "".into(),
            400,
            "INVALID_LAST_EVENT_ID",
            Some("header:Last-Event-ID"),
        ),
        (
            "GET",
            format!("{agent}/stream"),
            vec!["last-event-id: garbage"],
            "".into(),
            400,
            "INVALID_LAST_EVENT_ID",
            Some("header:Last-Event-ID"),
        ),
        (
            "GET",
            format!("{agent}/stream?after=x"),
            vec![],
            "".into(),
            400,
            "INVALID_LAST_EVENT_ID",
            Some("query:after"),
        ),
        (
            "GET",
            format!("{agent}/memory?q=tea&before=3"),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:before"),
        ),
        (
            "GET",
            format!("{agent}/stream?spawned=true"),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:session"),
        ),
        (
            "GET",
            format!("{agent}/stream?session=x"),
            vec![],
            "".into(),
            400,
            "INVALID_QUERY",
            Some("query:session"),
        ),
        (
            "GET",
            format!("{agent}/stream?session={OTHER}"),
            vec![],
            "".into(),
            404,
            "SESSION_NOT_FOUND",
            None,
        ),
        (
            "GET",
            format!("/api/agents/{OTHER}/stream"),
            vec![],
            "".into(),
            404,
            "AGENT_NOT_FOUND",
            None,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_request_is_told_with_its_code_and_field() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let agent = format!("/api/agents/{agent}");
    let session = session.to_string();
    let cases = [
        of_routes_and_ids(&agent),
        of_agents(),
        of_messages(&agent, &session),
        of_queries_and_streams(&agent),
    ]
    .concat();
    for (method, path, headers, body, status, code, field) in cases {
        let answer = host.send(method, &path, &headers, &body).await;
        let problem = answer.json();
        let shown = format!("{method} {path} {body}: {problem}");
        assert_eq!(
            (
                answer.status,
                problem["code"].as_str(),
                problem["field"].as_str()
            ),
            (status, Some(code), field),
            "{shown}"
        );
        assert_eq!(
            problem["status"].as_u64(),
            Some(u64::from(status)),
            "{shown}"
        );
        assert!(
            answer.has("content-type: application/problem+json"),
            "{shown}"
        );
        assert!(
            problem["type"]
                .as_str()
                .unwrap()
                .starts_with("urn:agent-host:problem:")
                && problem["title"].is_string(),
            "{shown}"
        );
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{shown}");
    }
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

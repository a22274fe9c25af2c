//! Everything that can be wrong with a request, and the problem that it is answered with.

use super::host::{Host, TOKEN};
use crate::Limits;
use crate::server::BODY_BYTES_MAX;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_request_is_told_with_its_code_and_field() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let other = uuid::Uuid::new_v4();
    let json = "content-type: application/json";
    let agent_path = format!("/api/agents/{agent}");
    let messages = format!("{agent_path}/sessions/{session}/messages");
    let respond = format!("{agent_path}/respond");
    let stream = format!("{agent_path}/stream");
    let call = "ab".repeat(32);
    let with = |path: &str, rest: &str| format!("{path}{rest}");
    let responded = format!("{{\"call_id\":\"{call}\",\"response\":1}}");
    let cases: Vec<(&str, String, Vec<&str>, &str, u16, &str, Option<&str>)> = vec![
        ("GET", "/nowhere".into(), vec![], "", 404, "ROUTE_NOT_FOUND", None),
        ("GET", "/api/agents/a/b/c/d".into(), vec![], "", 404, "ROUTE_NOT_FOUND", None),
        ("PUT", "/api/agents".into(), vec![], "", 405, "METHOD_NOT_ALLOWED", None),
        ("POST", "/healthz".into(), vec![], "", 405, "METHOD_NOT_ALLOWED", None),
        ("POST", "/api/agents".into(), vec![json], "{\"definition\":", 400, "MALFORMED_JSON", None),
        ("POST", "/api/agents".into(), vec![json], "\u{7f}", 400, "MALFORMED_JSON", None),
        ("POST", "/api/agents".into(), vec![json], "{\"definitoin\":\"a\"}", 422, "UNKNOWN_FIELD", Some("/definitoin")),
        ("POST", "/api/agents".into(), vec![json], "{}", 422, "MISSING_FIELD", Some("/definition")),
        ("POST", "/api/agents".into(), vec![json], "{\"definition\":7}", 422, "INVALID_FIELD", Some("/definition")),
        ("POST", "/api/agents".into(), vec![json], "{\"definition\":\"a\",\"id\":\"x\"}", 422, "INVALID_FIELD", Some("/id")),
        ("POST", "/api/agents".into(), vec![json], "{\"definition\":\"nobody\"}", 404, "DEFINITION_NOT_FOUND", Some("/definition")),
        ("POST", "/api/agents".into(), vec![], "{\"definition\":\"a\"}", 415, "UNSUPPORTED_MEDIA_TYPE", None),
        ("POST", "/api/agents".into(), vec!["content-type: text/plain"], "{}", 415, "UNSUPPORTED_MEDIA_TYPE", None),
        ("GET", "/api/agents?limti=1".into(), vec![], "", 400, "INVALID_QUERY", None),
        ("GET", "/api/agents?limit=x".into(), vec![], "", 400, "INVALID_QUERY", None),
        ("GET", "/api/agents?after=x".into(), vec![], "", 400, "INVALID_QUERY", None),
        ("GET", format!("/api/agents/{other}"), vec![], "", 404, "AGENT_NOT_FOUND", None),
        ("GET", "/api/agents/assistant".into(), vec![], "", 404, "AGENT_NOT_FOUND", None),
        ("GET", "/api/agents/%2Flocal%2Fagent%2Fx".into(), vec![], "", 404, "AGENT_NOT_FOUND", None),
        ("GET", "/api/agents/%ff".into(), vec![], "", 400, "INVALID_ID", None),
        ("POST", "/api/agents/nobody/sessions".into(), vec![], "", 404, "DEFINITION_NOT_FOUND", None),
        ("GET", with(&agent_path, "/sessions/x"), vec![], "", 400, "INVALID_ID", None),
        ("GET", format!("{agent_path}/sessions/{other}"), vec![], "", 404, "SESSION_NOT_FOUND", None),
        ("GET", format!("/api/sessions/{other}"), vec![], "", 404, "SESSION_NOT_FOUND", None),
        ("POST", messages.clone(), vec![json], "{\"content\":\"\"}", 422, "INVALID", Some("/content")),
        ("POST", messages.clone(), vec![json], "{\"content\":[]}", 422, "INVALID", Some("/content")),
        ("POST", messages.clone(), vec![json], "{\"content\":7}", 422, "INVALID_FIELD", Some("/content")),
        (
            "POST",
            messages.clone(),
            vec![json],
            "{\"content\":[{\"type\":\"image\",\"text\":\"x\"}]}",
            422,
            "INVALID_FIELD",
            Some("/content/0/type"),
        ),
        (
            "POST",
            messages.clone(),
            vec![json],
            "{\"content\":[{\"type\":\"text\",\"txt\":\"x\"}]}",
            422,
            "UNKNOWN_FIELD",
            Some("/content/0/txt"),
        ),
        ("POST", messages.clone(), vec![json], "{\"content\":\"x\",\"model\":\"nope\"}", 422, "INVALID", Some("/model")),
        ("POST", messages.clone(), vec![json, "idempotency-key: \u{e9}"], "{\"content\":\"x\"}", 400, "INVALID_IDEMPOTENCY_KEY", None),
        ("POST", format!("{agent_path}/sessions/{other}/messages"), vec![json], "{\"content\":\"x\"}", 404, "SESSION_NOT_FOUND", None),
        ("POST", respond.clone(), vec![json], "{\"call_id\":\"x\",\"response\":1}", 422, "INVALID_FIELD", Some("/call_id")),
        ("POST", respond.clone(), vec![json], "{\"call_id\":\"x\"}", 422, "MISSING_FIELD", Some("/response")),
        ("POST", respond, vec![json], &responded, 409, "NOT_SUSPENDED", None),
        ("DELETE", with(&agent_path, "/sessions/current"), vec![], "", 409, "NO_ACTIVE_SESSION", None),
        ("POST", format!("/api/dead-letters/{other}/requeue"), vec![], "", 404, "DEAD_LETTER_NOT_FOUND", None),
        ("POST", "/api/dead-letters/x/requeue".into(), vec![], "", 400, "INVALID_ID", None),
        ("GET", "/api/events?after=-1".into(), vec![], "", 400, "INVALID_QUERY", None),
        ("GET", "/api/events?session=x".into(), vec![], "", 400, "INVALID_QUERY", None),
        ("GET", stream.clone(), vec!["last-event-id: -1"], "", 400, "INVALID_LAST_EVENT_ID", None),
        ("GET", stream.clone(), vec!["last-event-id: 99999999999999999999"], "", 400, "INVALID_LAST_EVENT_ID", None),
        ("GET", stream.clone(), vec!["last-event-id: 1000000"], "", 400, "INVALID_LAST_EVENT_ID", None),
        ("GET", stream.clone(), vec!["last-event-id: garbage"], "", 400, "INVALID_LAST_EVENT_ID", None),
        ("GET", with(&stream, "?after=x"), vec![], "", 400, "INVALID_LAST_EVENT_ID", None),
        ("GET", format!("{stream}?session={other}"), vec![], "", 404, "SESSION_NOT_FOUND", None),
        ("GET", format!("/api/agents/{other}/stream"), vec![], "", 404, "AGENT_NOT_FOUND", None),
    ];
    for (method, path, headers, body, status, code, field) in cases {
        let answer = host.send(method, &path, &headers, body).await;
        let problem = answer.json();
        let shown = format!("{method} {path} {body}: {problem}");
        assert_eq!((answer.status, problem["code"].as_str(), problem["field"].as_str()), (status, Some(code), field), "{shown}");
        assert_eq!(problem["status"].as_u64(), Some(u64::from(status)), "{shown}");
        assert!(answer.has("content-type: application/problem+json"), "{shown}");
        assert!(problem["type"].as_str().unwrap().starts_with("urn:agent-host:problem:") && problem["title"].is_string(), "{shown}");
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{shown}");
    }
    assert_eq!(host.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_the_token_or_with_another_name_is_refused() {
    let host = Host::start().await;
    let token = format!("authorization: Bearer {TOKEN}");
    for (headers, status, code) in [
        (vec!["host: localhost"], 401, "UNAUTHORIZED"),
        (vec!["host: localhost", "authorization: Bearer wrong"], 401, "UNAUTHORIZED"),
        (vec!["host: evil.example", &token], 403, "HOST_NOT_ALLOWED"),
        (vec!["host: localhost", "origin: https://evil.example", &token], 403, "ORIGIN_NOT_ALLOWED"),
    ] {
        let answer = host.send_as_it_is("GET", "/api/agents", &headers, "").await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)));
        assert_eq!(answer.has("www-authenticate: Bearer"), status == 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_read_and_while_it_is() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let messages = format!("/api/agents/{agent}/sessions/{session}/messages");
    let json = "content-type: application/json";
    let announced = host.send("POST", "/api/agents", &[json, "content-length: 10000000000"], "{").await;
    assert_eq!((announced.status, announced.json()["code"].as_str()), (413, Some("BODY_TOO_LARGE")));
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let chunked = host.send("POST", "/api/agents", &[json, "transfer-encoding: chunked"], &chunk.repeat(4)).await;
    assert_eq!((chunked.status, chunked.json()["code"].as_str()), (413, Some("BODY_TOO_LARGE")));
    let message = format!("{{\"content\":\"{}\"}}", "x".repeat((1 << 20) + 1));
    assert!(message.len() < BODY_BYTES_MAX);
    let large = host.post(&messages, &message).await;
    assert_eq!((large.status, large.json()["field"].as_str()), (413, Some("/content")), "{}", large.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_ends_is_given_up() {
    let host = Host::start_with(Limits { body_ms_max: 200, ..Limits::default() }).await;
    let late = host.send("POST", "/api/agents", &["content-type: application/json", "content-length: 100"], "{").await;
    assert_eq!((late.status, late.json()["code"].as_str()), (408, Some("BODY_TIMEOUT")));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_host_starts_or_stops_it_says_so_and_when_to_try_again() {
    let host = Host::starting(Limits::default()).await;
    for path in ["/readyz", "/api/agents"] {
        let answer = host.get(path).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (503, Some("STARTING")));
        assert!(answer.has("retry-after: "));
    }
    assert_eq!(host.get("/healthz").await.body, "ok");
    host.api.open(host.broker.clone());
    assert_eq!(host.get("/readyz").await.status, 200);
    host.api.drain();
    assert_eq!(host.get("/readyz").await.json()["code"], "SHUTTING_DOWN");
    assert_eq!(host.post("/api/agents", "{\"definition\":\"a\"}").await.json()["code"], "SHUTTING_DOWN");
    assert_eq!(host.get("/api/agents").await.status, 200);
}

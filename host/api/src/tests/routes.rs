//! The list of routes: as documented, as served, as guarded.

use super::host::Host;
use crate::routes::description;
use serde_json::Value;
use std::collections::BTreeSet;

/// Every documented operation: method and path.
pub(super) fn documented() -> Vec<(String, String)> {
    let document = description();
    let paths = document["paths"].as_object().unwrap();
    let mut all: Vec<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object()
                .unwrap()
                .keys()
                .map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    all.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    all
}

/// Returns whether an operation needs no credential of this host: none at all, or a visitor's
/// token.
pub(super) fn is_open(security: &Value) -> bool {
    let open = [
        serde_json::json!([{}]),
        serde_json::json!([{ "visitor": [] }]),
    ];
    open.contains(security)
}

#[test]
fn every_operation_says_what_it_answers_when_something_is_wrong() {
    let document = description();
    for (method, path) in documented() {
        let operation = &document["paths"][&path][method.to_lowercase()];
        let schema = &operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
            ["$ref"];
        assert_eq!(schema, "#/components/schemas/Problem", "{method} {path}");
        assert!(
            operation["responses"]
                .as_object()
                .unwrap()
                .keys()
                .any(|status| status.starts_with('2')),
            "{method} {path}"
        );
        assert!(
            operation["summary"].is_string() || operation["description"].is_string(),
            "{method} {path}"
        );
    }
    let required = document["components"]["schemas"]["Problem"]["required"]
        .as_array()
        .unwrap();
    for field in ["type", "title", "status", "detail", "code", "retryable"] {
        assert!(required.contains(&field.into()), "{field}");
    }
    for place in ["JSON pointer", "header:", "query:", "path:"] {
        assert!(
            document["components"]["schemas"]["Problem"]["properties"]["field"]["description"]
                .as_str()
                .unwrap()
                .contains(place),
            "{place}"
        );
    }
}

/// The description says that a body which may be missing may be `null`.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_may_be_missing_may_be_null() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let document = description();
    let mut asked = 0;
    for (method, path) in documented() {
        let body = &document["paths"][&path][method.to_lowercase()]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        let Some(choices) = schema["oneOf"].as_array() else {
            continue;
        };
        if !choices.iter().any(|choice| choice["type"] == "null") {
            continue;
        }
        let id = if path.contains("/agents/") {
            agent.to_string()
        } else {
            "00".repeat(32)
        };
        let path = path
            .replace("{id}", &id)
            .replace("{sid}", &session.to_string());
        let path = path.replace("{task_id}", &"00".repeat(32));
        for null in ["null", " null\n"] {
            let answer = host
                .send(&method, &path, &["content-type: application/json"], null)
                .await;
            assert!(
                !answer.body.contains("invalid type") && answer.status != 415,
                "{method} {path}: {}",
                answer.body
            );
        }
        asked += 1;
    }
    assert!(asked >= 7, "{asked} operations");
}

#[test]
fn every_operation_lists_the_codes_that_it_may_say_no_with_by_status() {
    let document = description();
    for (method, path) in documented() {
        let operation = &document["paths"][&path][method.to_lowercase()];
        let is_open = is_open(&operation["security"]);
        let mut listed = Vec::new();
        for (status, response) in operation["responses"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, response)| !response["x-codes"].is_null())
        {
            assert!(
                status.parse::<u16>().unwrap() >= 400,
                "{method} {path} {status}"
            );
            let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(
                schema, "#/components/schemas/Problem",
                "{method} {path} {status}"
            );
            listed.extend(
                response["x-codes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|code| format!("{status} {}", code.as_str().unwrap())),
            );
        }
        let has = |code: &str| listed.iter().any(|listed| listed == code);
        for code in [
            "401 UNAUTHORIZED",
            "403 SCOPE_MISSING",
            "503 STORE_UNAVAILABLE",
        ] {
            assert!(has(code) || is_open, "{method} {path}: {code}");
        }
        assert_eq!(
            has("400 MALFORMED_JSON"),
            operation["requestBody"]["content"]["application/json"].is_object(),
            "{method} {path}"
        );
        let keyed = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|parameter| parameter["name"] == "Idempotency-Key");
        assert_eq!(has("409 IDEMPOTENCY_KEY_REUSED"), keyed, "{method} {path}");
    }
}

#[test]
fn every_frame_of_an_event_stream_is_described_under_its_name() {
    let document = description();
    let events = &document["paths"]["/api/agents/{id}/stream"]["get"]["x-events"];
    let names = |events: &Value| -> BTreeSet<String> {
        events.as_object().unwrap().keys().cloned().collect()
    };
    let set = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    let session = [
        "client_action",
        "client_action_withdrawn",
        "connected",
        "content_chunk",
        "content_complete",
        "content_discarded",
        "content_so_far",
        "disconnected",
        "error",
        "file_uploaded",
        "heartbeat",
        "message_accepted",
        "message_complete",
        "message_withdrawn",
        "program_tool_call",
        "reset",
        "run_resumed",
        "run_started",
        "run_suspended",
        "session_completed",
        "session_expired",
        "state_change",
        "stream_complete",
        "terminated",
        "thread_message",
        "thinking_chunk",
        "thinking_complete",
        "tool_calls_detected",
        "tool_executing",
        "tool_progress",
        "tool_result",
    ];
    assert_eq!(names(&events["session"]), set(&session));
    assert_eq!(
        names(&events["log"]),
        set(&["*", "attempt-discarded", "delta", "reset"])
    );
    assert_eq!(
        document["paths"]["/api/session/{sid}/stream"]["get"]["x-events"],
        serde_json::json!({ "session": events["session"] })
    );
    // What is said of them for people names each of them too.
    let reported = document["paths"]["/api/agents/{id}/stream"]["get"]["description"]
        .as_str()
        .unwrap();
    for name in session {
        assert!(reported.contains(&format!("`{name}`")), "{name}");
    }
    let properties = |name: &str| {
        let schema = events["session"][name]["$ref"]
            .as_str()
            .unwrap()
            .strip_prefix('#')
            .unwrap();
        names(&document.pointer(schema).unwrap()["properties"])
    };
    assert_eq!(
        properties("connected"),
        set(&["control_mode", "pending_action", "session_id", "status"])
    );
    assert_eq!(
        properties("run_suspended"),
        set(&["run_id", "session_id", "spawned", "time", "tool_call_id"])
    );
}

#[test]
fn the_frames_of_telemetry_are_described_and_told_for_people() {
    let document = description();
    let operation = &document["paths"]["/api/telemetry"]["get"];
    assert_eq!(
        operation["x-events"],
        serde_json::json!({
            "*": { "$ref": "#/components/schemas/TelemetryEvent" },
            "lag": { "$ref": "#/components/schemas/TelemetryLag" },
        })
    );
    let reported = operation["description"].as_str().unwrap();
    for kind in domain::telemetry::TelemetryKind::ALL {
        assert!(reported.contains(&format!("`{kind}`")), "{kind}");
    }
    assert!(reported.contains("`lag`"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_route_is_served_and_needs_the_token_unless_it_says_otherwise() {
    let host = Host::start().await;
    let document = host.get("/openapi.json").await;
    assert_eq!(document.status, 200);
    assert!(
        document.json()["openapi"]
            .as_str()
            .unwrap()
            .starts_with("3.")
    );
    for (method, path) in documented() {
        let open = document.json()["paths"][&path][method.to_lowercase()]["security"]
            == serde_json::json!([{}]);
        let path = path.replace(['{', '}'], "");
        let without = host
            .send_as_it_is(&method, &path, &["host: localhost"], "")
            .await;
        // Calls of services and webhooks have no token: they prove themselves otherwise.
        let is_refused = without.status == 401 && without.json()["code"] == "UNAUTHORIZED";
        assert_eq!(is_refused, !open, "{method} {path}: {}", without.status);
        let path = super::scopes::ending(&path);
        let with = host.send(&method, &path, &[], "").await;
        assert!(
            ![404, 405].contains(&with.status) || with.json()["code"] != "ROUTE_NOT_FOUND",
            "{method} {path}"
        );
        assert_ne!(with.status, 405, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_out_of_its_range_is_refused_with_the_range() {
    let host = Host::start().await;
    let (agent, _) = host.agent_with_session().await;
    for (path, max) in [
        ("/api/agents".to_owned(), 200),
        (format!("/api/agents/{agent}/sessions"), 200),
        ("/api/events".to_owned(), 1_000),
        ("/api/audit".to_owned(), 1_000),
        ("/api/dead-letters".to_owned(), 200),
        ("/api/tasks".to_owned(), 200),
        ("/api/keys".to_owned(), 200),
    ] {
        for wrong in [0, max + 1] {
            let answer = host.get(&format!("{path}?limit={wrong}")).await;
            let problem = answer.json();
            assert_eq!(
                (answer.status, &problem["code"], &problem["field"]),
                (400, &"INVALID_QUERY".into(), &"query:limit".into()),
                "{path}"
            );
            assert_eq!(
                problem["detail"],
                format!("limit: {wrong} is out of its range: it must be from 1 to {max}")
            );
        }
        for right in [1, max] {
            assert_eq!(
                host.get(&format!("{path}?limit={right}")).await.status,
                200,
                "{path}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_sessions_and_events_can_be_looked_at() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let list = host.get("/api/agents").await.json();
    assert_eq!(
        (list["agents"][0]["id"].as_str(), &list["next_after"]),
        (Some(agent.to_string().as_str()), &Value::Null)
    );
    let path = list["agents"][0]["path"]
        .as_str()
        .unwrap()
        .replace('/', "%2F");
    assert_eq!(
        host.get(&format!("/api/agents/{path}")).await.json()["id"],
        agent.to_string()
    );
    let sessions = host
        .get(&format!("/api/agents/{agent}/sessions"))
        .await
        .json();
    assert_eq!(sessions["sessions"][0]["session_id"], session.to_string());
    for path in [
        format!("/api/agents/{agent}/sessions/{session}"),
        format!("/api/sessions/{session}?from=1&to=0"),
    ] {
        let view = host.get(&path).await.json();
        assert_eq!(
            (view["session_id"].as_str(), view["status"].as_str()),
            (Some(session.to_string().as_str()), Some("active"))
        );
        assert_eq!(view["run_status"], Value::Null);
        assert_eq!(
            (&view["messages"], &view["further_actions"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
    }
    let page = host.get("/api/events?limit=1").await.json();
    assert_eq!(
        (
            page["events"].as_array().unwrap().len(),
            page["next_after"].as_u64(),
            page["last_position"].as_u64()
        ),
        (1, Some(1), Some(2))
    );
    let rest = host.get("/api/events?after=1").await.json();
    assert_eq!(
        (
            rest["events"][0]["position"].as_u64(),
            rest["next_after"].as_u64()
        ),
        (Some(2), Some(2))
    );
    assert_eq!(
        host.get("/api/components").await.json(),
        serde_json::json!({ "components": [] })
    );
    assert!(host.get("/api/definitions").await.json()["definitions"].is_array());
    assert_eq!(
        host.get("/api/dead-letters").await.json(),
        serde_json::json!({ "dead_letters": [], "next_after": null })
    );
    assert_eq!(
        host.get("/api/quarantine").await.json(),
        serde_json::json!({ "quarantined": [] })
    );
    let cancelled = host
        .post(
            &format!("/api/agents/{agent}/sessions/{session}/cancel"),
            "{}",
        )
        .await;
    assert_eq!(
        (cancelled.status, cancelled.json()),
        (200, serde_json::json!({ "cancelled": false }))
    );
    assert_eq!(
        host.post("/api/verifications", "").await.json()["intact"],
        true
    );
    let state = host.get("/api/store").await.json();
    let numbers =
        ["log_bytes", "log_bytes_max", "reads_ended", "failures"].map(|name| state[name].as_u64());
    assert_eq!(
        (&state["health"], numbers[1..].to_vec()),
        (&"well".into(), vec![Some(256 << 20), Some(0), Some(0)]),
        "{state}"
    );
    assert!(
        numbers[0].is_some_and(|bytes| bytes > 0) && state.get("log_failing").is_none(),
        "{state}"
    );
    for clock in [
        host.get("/api/clock").await.json(),
        host.post("/api/clock/confirm", "").await.json(),
    ] {
        assert!(
            clock["now"].is_string() && clock["wall"].is_string(),
            "{clock}"
        );
        assert!(
            clock["wall_ahead_ms"]
                .as_i64()
                .is_some_and(|ms| ms.abs() < 60_000),
            "{clock}"
        );
        assert!(
            clock.get("jump").is_none() && clock.get("gap").is_none(),
            "{clock}"
        );
    }
    assert_eq!(host.get("/api/rebuilds").await.json()["state"], "never");
    let begun = host.post("/api/rebuilds", "").await;
    assert_eq!(
        (begun.status, begun.json()["state"].as_str()),
        (202, Some("running")),
        "{}",
        begun.body
    );
    let done = loop {
        let rebuild = host.get("/api/rebuilds").await.json();
        if rebuild["state"] != "running" {
            break rebuild;
        }
    };
    assert_eq!(
        (&done["state"], &done["events"], &done["replaced"]),
        (&"done".into(), &2.into(), &serde_json::json!([])),
        "{done}"
    );
    let backup = host.post("/api/backups", "").await;
    assert_eq!(backup.status, 201, "{}", backup.body);
    assert!(std::path::Path::new(backup.json()["file"].as_str().unwrap()).is_file());
}

#[test]
fn what_a_client_reads_of_headers_is_described() {
    let document = description();
    let named = |path: &str, method: &str, status: &str| -> Vec<String> {
        let headers = document["paths"][path][method]["responses"][status]["headers"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        headers.into_iter().map(|(name, _)| name).collect()
    };
    for (path, method, status, expected) in [
        ("/api/agents", "post", "201", ["Location"].as_slice()),
        ("/api/agents", "post", "401", &["WWW-Authenticate"]),
        ("/api/agents", "post", "429", &["Retry-After"]),
        ("/api/agents/{id}/sessions", "post", "201", &["Location"]),
        ("/api/keys", "post", "201", &["Location"]),
        (
            "/api/agents/{id}/sessions/{sid}/files/{digest}",
            "get",
            "200",
            &["Content-Disposition", "ETag"],
        ),
        (
            "/api/agents/{id}/sessions/{sid}/files/{digest}",
            "get",
            "304",
            &["ETag"],
        ),
        ("/api/session/{sid}", "get", "200", &["Deprecation", "Link"]),
        ("/api/session/{sid}", "get", "404", &["Deprecation", "Link"]),
        (
            "/api/session",
            "post",
            "503",
            &["Deprecation", "Link", "Retry-After"],
        ),
    ] {
        assert_eq!(
            named(path, method, status),
            expected,
            "{method} {path} {status}"
        );
    }
}

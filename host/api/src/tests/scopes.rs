//! Tests of every route with a credential of each scope: whatever is not listed here is refused.

use super::host::Host;
use super::routes::{documented, is_open};
use domain::key::{Issuer, NewKey};
use domain::user::{Scope, UserId};

/// All operations, with the scopes that each accepts; one of them is enough. Those with none need
/// no key of a user.
const NEEDED: &[(&str, &[&str])] = &[
    ("GET /api/agents", &["read"]),
    ("POST /api/agents", &["write"]),
    ("GET /api/agents/{id}", &["read"]),
    ("PATCH /api/agents/{id}", &["write"]),
    ("POST /api/agents/{id}/archive", &["write"]),
    ("POST /api/agents/{id}/assign", &["write"]),
    ("DELETE /api/agents/{id}/assignments/{user}", &["write"]),
    ("PUT /api/agents/{id}/assignments/{user}", &["write"]),
    ("POST /api/agents/{id}/handoff", &["write"]),
    ("GET /api/agents/{id}/history", &["read"]),
    ("GET /api/agents/{id}/memory", &["read"]),
    ("DELETE /api/agents/{id}/memory/{note}", &["write"]),
    ("GET /api/agents/{id}/preferences", &["read"]),
    ("PATCH /api/agents/{id}/preferences", &["write"]),
    ("GET /api/agents/{id}/sessions/{sid}/files", &["read"]),
    ("POST /api/agents/{id}/sessions/{sid}/files", &["write"]),
    (
        "GET /api/agents/{id}/sessions/{sid}/files/{digest}",
        &["read"],
    ),
    ("GET /api/agents/{id}/sessions/{sid}/items", &["read"]),
    ("PUT /api/agents/{id}/sessions/{sid}/ui-state", &["write"]),
    ("POST /api/messages", &["write"]),
    ("GET /api/personas", &["read"]),
    ("GET /api/agents/{id}/sessions/{sid}/inputs", &["read"]),
    (
        "GET /api/agents/{id}/sessions/{sid}/inputs/{input}",
        &["read"],
    ),
    (
        "DELETE /api/agents/{id}/sessions/{sid}/inputs/{input}",
        &["write"],
    ),
    ("PUT /api/agents/{id}/sessions/{sid}/queue", &["write"]),
    ("DELETE /api/agents/{id}/sessions/{sid}/queue", &["write"]),
    ("POST /api/agents/{id}/sessions/import", &["write"]),
    ("PATCH /api/agents/{id}/sessions/{sid}", &["write"]),
    ("DELETE /api/agents/{id}/sessions/{sid}", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/clear", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/compact", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/fork", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/panels", &["write"]),
    ("GET /api/agents/{id}/prompt", &["read"]),
    ("POST /api/agents/{id}/sessions/{sid}/switch", &["write"]),
    ("POST /api/paths/messages", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/return", &["write"]),
    ("GET /api/agents/{id}/sessions/{sid}/tree", &["read"]),
    ("GET /api/agents/{id}/sessions/{sid}/diff", &["read"]),
    ("GET /api/agents/{id}/sessions/{sid}/export", &["read"]),
    ("GET /api/turns/{turn_id}", &["read"]),
    ("GET /api/search", &["read"]),
    ("POST /api/agents/{id}/abort", &["write"]),
    ("GET /api/agents/{id}/reply-target", &["read"]),
    ("GET /api/paths", &["read"]),
    ("GET /api/paths/fetch", &["read"]),
    ("GET /api/users/{user}/connectors", &["read", "admin"]),
    ("PUT /api/users/{user}/connectors/{key}", &["admin"]),
    ("DELETE /api/users/{user}/connectors/{key}", &["admin"]),
    ("POST /external/sessions", &["write"]),
    ("POST /api/import", &["admin"]),
    ("POST /api/purges", &["admin"]),
    ("GET /api/rebuilds", &["admin"]),
    ("POST /api/rebuilds", &["admin"]),
    ("GET /api/session", &["read"]),
    ("POST /api/session", &["write"]),
    ("DELETE /api/session/{sid}", &["write"]),
    ("GET /api/session/{sid}", &["read"]),
    ("POST /api/session/{sid}/respond", &["write"]),
    ("GET /api/session/{sid}/state", &["read"]),
    ("GET /api/session/{sid}/stream", &["read"]),
    ("POST /api/agents/{id}/respond", &["write"]),
    ("GET /api/agents/{id}/sessions", &["read"]),
    ("POST /api/agents/{id}/sessions", &["write"]),
    ("DELETE /api/agents/{id}/sessions/current", &["write"]),
    ("GET /api/agents/{id}/sessions/{sid}", &["read"]),
    ("POST /api/agents/{id}/sessions/{sid}/cancel", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/memory", &["write"]),
    ("POST /api/agents/{id}/sessions/{sid}/messages", &["write"]),
    ("GET /api/agents/{id}/sessions/{sid}/stats", &["read"]),
    ("GET /api/agents/{id}/stream", &["read"]),
    ("GET /api/audit", &["admin"]),
    ("POST /api/backups", &["admin"]),
    ("GET /api/clock", &["admin"]),
    ("POST /api/clock/confirm", &["admin"]),
    ("GET /api/config/pending", &["admin"]),
    ("POST /api/config/reload", &["admin"]),
    ("GET /api/components", &["admin"]),
    ("GET /api/tasks", &["read", "admin"]),
    ("GET /api/tasks/stats", &["read", "admin"]),
    ("GET /api/tasks/{task_id}", &["read", "admin"]),
    ("POST /api/tasks/{task_id}/cancel", &["write"]),
    ("GET /api/dead-letters", &["admin"]),
    ("GET /api/dead-letters/{id}", &["admin"]),
    ("DELETE /api/dead-letters/{id}", &["admin"]),
    ("POST /api/dead-letters/{id}/requeue", &["admin"]),
    ("GET /api/quarantine", &["admin"]),
    ("POST /api/quarantine/{id}/release", &["admin"]),
    ("GET /api/definitions", &["read"]),
    ("POST /api/definitions", &["write"]),
    ("GET /api/definitions/{definition}", &["read"]),
    ("DELETE /api/definitions/{definition}", &["write"]),
    ("GET /api/events", &["admin"]),
    ("GET /api/keys", &["keys", "admin"]),
    ("POST /api/keys", &["keys", "admin"]),
    ("DELETE /api/keys/{id}", &["keys", "admin"]),
    ("GET /api/models", &["read"]),
    ("GET /api/me", &["read", "write", "keys", "admin"]),
    ("GET /api/conversations/{conversation}", &["read"]),
    ("GET /api/sessions", &["read"]),
    ("GET /api/sessions/{sid}", &["read"]),
    ("GET /api/status", &["admin"]),
    ("GET /api/store", &["admin"]),
    ("GET /api/telemetry", &["admin"]),
    ("GET /api/triggers", &["read", "admin"]),
    ("POST /api/triggers", &["admin"]),
    ("GET /api/triggers/{trigger}", &["read", "admin"]),
    ("PUT /api/triggers/{trigger}", &["admin"]),
    ("DELETE /api/triggers/{trigger}", &["write", "admin"]),
    ("GET /api/triggers/{trigger}/history", &["read", "admin"]),
    ("POST /api/triggers/{trigger}/pause", &["write", "admin"]),
    ("POST /api/triggers/{trigger}/resume", &["write", "admin"]),
    ("POST /api/triggers/{trigger}/run", &["write", "admin"]),
    ("GET /api/connectors", &["admin"]),
    (
        "GET /api/connectors/{connector}/outbound-messages",
        &["admin"],
    ),
    (
        "POST /api/connectors/{connector}/outbound-messages/{outbound_message}/requeue",
        &["admin"],
    ),
    ("POST /api/connectors/{connector}/test", &["admin"]),
    ("GET /api/pairings", &["admin"]),
    ("POST /api/pairings/{code}", &["write", "admin"]),
    ("DELETE /api/pairings/{code}", &["admin"]),
    ("GET /api/usage", &["read", "admin"]),
    ("POST /api/verifications", &["admin"]),
    ("POST /chat/{connector}/answers", &[]),
    ("GET /chat/{connector}/events", &[]),
    ("POST /chat/{connector}/messages", &[]),
    ("POST /chat/{connector}/visitors", &[]),
    ("GET /connectors/{connector}/webhook", &[]),
    ("POST /connectors/{connector}/webhook", &[]),
    ("POST /external/sessions/{name}/messages", &[]),
    ("GET /healthz", &[]),
    ("POST /hooks/{name}", &[]),
    ("POST /hooks/{name}/{rest}", &[]),
    ("GET /openapi.json", &[]),
    ("GET /proof", &[]),
    ("GET /readyz", &[]),
    ("GET /startupz", &[]),
    ("GET /version", &[]),
];

/// A key with these scopes, issued by the operator.
pub(super) async fn key(host: &Host, user: &str, scopes: &[Scope]) -> String {
    let operator = Issuer {
        user: UserId::local(),
        scopes: Scope::ALL.into(),
        key: None,
    };
    let scopes = scopes.iter().copied().collect();
    let asked = NewKey {
        user: user.parse().unwrap(),
        name: String::new(),
        scopes,
        lifetime_s: Some(3_600),
    };
    host.broker
        .keys()
        .issue(&operator, asked, None)
        .await
        .unwrap()
        .key
        .expose()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_closed_to_a_credential_without_its_scope() {
    let host = Host::start().await;
    let document = host.get("/openapi.json").await.json();
    let mut keys = Vec::new();
    for scope in Scope::ALL {
        keys.push((scope, key(&host, "alice", &[scope]).await));
    }
    let mut seen = 0;
    for (method, path) in documented() {
        let route = format!("{method} {path}");
        seen += 1;
        let needed = NEEDED
            .iter()
            .find(|(known, _)| *known == route)
            .unwrap_or_else(|| panic!("say what `{route}` needs"))
            .1;
        let is_open = is_open(&document["paths"][&path][method.to_lowercase()]["security"]);
        assert_eq!(is_open, needed.is_empty(), "{route}");
        if is_open {
            continue;
        }
        // The description says the same of it.
        let said = match needed {
            all if all.len() == Scope::ALL.len() => serde_json::json!([{ "token": [] }]),
            some => some
                .iter()
                .map(|scope| serde_json::json!({ "token": [scope] }))
                .collect(),
        };
        assert_eq!(
            document["paths"][&path][method.to_lowercase()]["security"],
            said,
            "{route}"
        );
        // A user asks of themselves, and anything else in a path is nothing that there is.
        let path: Vec<&str> = path
            .split('/')
            .map(|part| {
                if part == "{user}" {
                    "alice"
                } else {
                    part.trim_matches(['{', '}'])
                }
            })
            .collect();
        let path = ending(&path.join("/"));
        for (scope, key) in &keys {
            let answer = host.send_with(key, &method, &path, &[], "").await;
            let is_closed = answer.status == 403 && answer.json()["code"] == "SCOPE_MISSING";
            assert_eq!(
                is_closed,
                !needed.contains(&scope.as_str()),
                "{route} with `{}`: {} {}",
                scope.as_str(),
                answer.status,
                answer.body
            );
            if is_closed {
                let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                assert!(
                    needed
                        .iter()
                        .all(|scope| detail.contains(&format!("`{scope}`"))),
                    "{detail}"
                );
            }
        }
    }
    assert_eq!(seen, NEEDED.len());
}

/// The path of a request that is answered to its end. The stream of telemetry has nothing that is
/// not there, so it is asked for what it never tells.
pub(super) fn ending(path: &str) -> String {
    match path {
        "/api/telemetry" => format!("{path}?type=nothing"),
        path => path.to_owned(),
    }
}

#[test]
fn a_route_that_declares_no_scope_is_closed_to_everybody() {
    let caller = crate::caller::Caller::local();
    let scopes = crate::routes::scopes();
    let check = |method: http::Method, route| {
        scopes
            .check(&caller, &method, route)
            .map_err(|problem| problem.code.as_str())
    };
    for method in [http::Method::GET, http::Method::HEAD] {
        assert_eq!(check(method, Some("/api/agents/{id}")), Ok(()));
    }
    for route in ["/api/session", "/api/session/"] {
        assert_eq!(check(http::Method::POST, Some(route)), Ok(()));
    }
    for route in [
        None,
        Some("/api/new"),
        Some("/api/agents/{id}/anything"),
        Some("/api/agentsx"),
        Some("/api/events/{id}"),
        Some("/api/keys/{id}/more"),
        Some("/"),
    ] {
        assert_eq!(
            check(http::Method::GET, route),
            Err("SCOPE_MISSING"),
            "{route:?}"
        );
    }
}

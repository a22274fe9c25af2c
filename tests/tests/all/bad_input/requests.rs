//! Requests as they should be, one for each endpoint: a bad one differs from them in one thing.

use super::document::Operation;
use super::{NOBODY, Session, Stage};
use reqwest::Method;
use serde_json::{Value, json};

/// The body for endpoints that take any bytes.
const ESSAY: &[u8] = b"an essay";
/// The session of another program, in which nothing was said.
const TRANSCRIPT: &[u8] =
    br#"{"type":"session","version":3,"id":"x","timestamp":"2025-12-15T09:30:00.000Z","cwd":"/"}"#;
/// The id of no turn.
const NO_TURN: &str = "abababababababababababababababababababababababababababababababab";

/// A trigger that the operator may make, and that waits for the turn of the year.
pub(super) fn trigger(name: &str) -> Value {
    json!({ "name": name, "spec": yearly() })
}

fn yearly() -> Value {
    json!({
        "schedule": { "cron": "0 8 1 1 *" },
        "target": { "agent": "chats" },
        "message": "a new year",
    })
}

/// The bytes that an endpoint takes which takes no JSON.
pub(super) fn bytes(operation: &Operation) -> &'static [u8] {
    if operation.path.ends_with("/import") {
        TRANSCRIPT
    } else {
        ESSAY
    }
}

/// The path with ids in it that there are, and with the query that it needs.
pub(super) fn path(stage: &Stage, operation: &Operation) -> String {
    // A chat can be archived, aborted, talked in and deleted; the rest is for the one that asks.
    let is_deletion =
        operation.method == Method::DELETE && operation.path.ends_with("/sessions/{sid}");
    let is_of_chat = ["/archive", "/abort", "/messages", "/switch", "/return"]
        .iter()
        .any(|end| operation.path.ends_with(end))
        || is_deletion;
    path_at(
        stage,
        operation,
        if is_of_chat {
            &stage.chatting
        } else {
            &stage.asking
        },
    )
}

/// The same, of a certain agent and session.
pub(super) fn path_at(stage: &Stage, operation: &Operation, place: &Session) -> String {
    filled(operation, place, |name| {
        known(stage, operation, place, name)
    })
}

/// The path with something else in the place of one id, written as it stands in a path.
pub(super) fn path_with(stage: &Stage, operation: &Operation, id: &str, text: &str) -> String {
    let good = path(stage, operation);
    let place = if good.contains(stage.chatting.agent_id()) {
        &stage.chatting
    } else {
        &stage.asking
    };
    filled(operation, place, |name| {
        if name == id {
            text
        } else {
            known(stage, operation, place, name)
        }
    })
}

fn filled<'a>(operation: &Operation, place: &Session, id: impl Fn(&str) -> &'a str) -> String {
    let path = operation
        .ids
        .iter()
        .fold(operation.path.clone(), |path, name| {
            path.replace(&format!("{{{name}}}"), id(name))
        });
    let value = |name: &str| {
        if name == "with" {
            place.id().to_owned()
        } else {
            name.to_owned()
        }
    };
    let needed: Vec<String> = operation
        .queries
        .iter()
        .filter(|query| query.is_required)
        .map(|query| format!("{}={}", query.name, value(&query.name)))
        .collect();
    if needed.is_empty() {
        path
    } else {
        format!("{path}?{}", needed.join("&"))
    }
}

fn known<'a>(stage: &'a Stage, operation: &Operation, place: &'a Session, name: &str) -> &'a str {
    match name {
        "id" if operation.path.starts_with("/api/agents/") => place.agent_id(),
        "id" if operation.path.starts_with("/api/keys/") => &stage.key,
        // There is none: everything was dealt with.
        "id" if operation.path.starts_with("/api/dead-letters/") => NOBODY,
        // Nothing is in quarantine.
        "id" if operation.path.starts_with("/api/quarantine/") => NOBODY,
        "sid" => place.id(),
        "user" => "erin",
        "key" => "site:1",
        "digest" => &stage.file,
        // There is none: no turn has ended.
        "turn_id" => NO_TURN,
        // There is none: nothing was handed over.
        "task_id" => NO_TURN,
        // There is none: nothing was kept.
        "note" => NOBODY,
        "input" => &stage.input,
        "definition" => "spare",
        // There is none: no agent is an external one, and no trigger a webhook.
        "name" => "nowhere",
        // There is none: no session was opened with one.
        "conversation" => NOBODY,
        "rest" => "more",
        "trigger" => "yearly",
        "connector" => "site",
        // There is none: nothing was sent.
        "outbound_message" => NO_TURN,
        // There is none: no sender was told one.
        "code" => "ABCD2345",
        _ => panic!("{operation}: say here which `{name}` there is"),
    }
}

/// The body that an endpoint takes, if it takes one.
pub(super) fn body(stage: &Stage, operation: &Operation) -> Option<Value> {
    operation.body.as_ref()?;
    let call = &stage.call;
    Some(match (operation.method.as_str(), operation.path.as_str()) {
        ("POST", "/api/agents") => json!({ "definition": "spare", "name": "Spare" }),
        ("PATCH", "/api/agents/{id}") => json!({ "name": "Other", "settings": { "a": 1 } }),
        ("PATCH", "/api/agents/{id}/preferences") => json!({ "preferences": { "tone": "warm" } }),
        ("POST", "/api/agents/{id}/assign") => json!({ "user_id": "frank", "role": "shared" }),
        ("PUT", "/api/agents/{id}/assignments/{user}") => json!({ "role": "mentee" }),
        ("POST", "/api/agents/{id}/handoff") => json!({ "user_id": "carol", "keep": "primary" }),
        ("POST", "/api/agents/{id}/respond") => {
            json!({ "tool_call_id": call, "response": { "confirmed": true } })
        }
        ("PATCH", "/api/agents/{id}/sessions/{sid}") => {
            json!({ "name": "Other", "pinned": true, "attributes": { "a": 1 } })
        }
        ("POST", "/api/agents/{id}/sessions/{sid}/fork") => json!({ "name": "Other" }),
        ("POST", "/api/agents/{id}/sessions/{sid}/panels") => {
            json!({
                "type": "panel_inventory", "selected_panel_id": "p",
                "panels": [{ "panel_id": "p", "panel_type": "artifacts" }],
            })
        }
        ("POST", "/api/agents/{id}/sessions") => json!({ "session_type": "chat" }),
        ("POST", "/api/agents/{id}/sessions/{sid}/messages") => json!({ "content": "hello" }),
        ("PUT", "/api/agents/{id}/sessions/{sid}/ui-state") => {
            json!({ "tool_call_id": call, "widget_partial_state": { "half": true } })
        }
        (
            "POST",
            "/api/agents/{id}/abort"
            | "/api/agents/{id}/archive"
            | "/api/agents/{id}/sessions/{sid}/cancel"
            | "/api/tasks/{task_id}/cancel",
        )
        | ("DELETE", "/api/session/{sid}") => json!({ "reason": "enough" }),
        ("PUT", "/api/agents/{id}/sessions/{sid}/queue") => {
            json!({ "mode": "collect", "debounce_ms": "2s", "cap": 25, "drop": "old" })
        }
        ("POST", "/api/import") => json!({ "format": "agent-host.sessions/1", "sessions": [] }),
        ("POST", "/api/messages") => {
            json!({
                "to": { "session": stage.chatting.id() }, "content": "hello",
                "queue": { "mode": "steer" }, "priority": "high",
            })
        }
        ("POST", "/api/purges") => {
            json!({ "agent_id": stage.chatting.agent_id(), "session_id": stage.chatting.id() })
        }
        ("POST", "/api/keys") => json!({ "name": "another", "scopes": ["read"] }),
        ("POST", "/api/definitions") => json!({ "template": "spare", "display_name": "Mine" }),
        ("POST", "/api/agents/{id}/sessions/{sid}/switch") => {
            json!({ "agent": "spare", "message": "hello" })
        }
        ("POST", "/api/paths/messages") => json!({ "content": "hello" }),
        // That agent is no external one, which is found last.
        ("POST", "/external/sessions") => json!({ "agent": "spare", "session": "s-1" }),
        ("POST", "/api/session") => json!({ "session_type": "learning" }),
        ("POST", "/api/session/{sid}/respond") => {
            json!({ "tool_call_id": call, "response": { "confirmed": true } })
        }
        _ => edge_body(operation),
    })
}

/// The same, of endpoints about triggers, connectors and chats for web pages.
fn edge_body(operation: &Operation) -> Value {
    match (operation.method.as_str(), operation.path.as_str()) {
        ("POST", "/api/triggers") => trigger("evening"),
        ("PUT", "/api/triggers/{trigger}") => json!({ "spec": yearly() }),
        ("POST", "/api/connectors/{connector}/test") => {
            json!({ "chat": "somebody", "text": "hello" })
        }
        // Nobody was told the code.
        ("POST", path) if path.ends_with("/{code}") => json!({ "user": "erin" }),
        ("POST", "/chat/{connector}/messages") => json!({ "id": "m-1", "text": "hello" }),
        ("POST", "/chat/{connector}/answers") => json!({ "id": "m-2", "value": "yes" }),
        _ => panic!("{operation}: say here which body it takes"),
    }
}

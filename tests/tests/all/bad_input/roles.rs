//! The refusals by authority: of strangers, of roles that allow less, and of keys of too small a
//! scope, at every endpoint of the document.

use super::document::{Document, Operation};
use super::{Stage, cut, end, requests, stage};
use agent_host_tests::process::Line;
use reqwest::Method;

/// The endpoint at which everybody may have notes of their own sessions forgotten, whatever their
/// role is by now. There is no note here.
const FORGET: &str = "DELETE /api/agents/{id}/memory/{note}";

/// The endpoints for talking with an agent, each with how a mentee is answered there whose session
/// it is not.
const TALKING: [&str; 24] = [
    "DELETE /api/agents/{id}/memory/{note} => 404 NOTE_NOT_FOUND",
    // Turns of their own they may stop.
    "POST /api/agents/{id}/abort => taken",
    "POST /api/agents/{id}/respond => 404 SESSION_NOT_FOUND",
    // Sessions of their own they may begin.
    "POST /api/agents/{id}/sessions => taken",
    // Nor do they learn that there is one.
    "DELETE /api/agents/{id}/sessions/current => 409 NO_ACTIVE_SESSION",
    // Or carry in.
    "POST /api/agents/{id}/sessions/import => taken",
    "DELETE /api/agents/{id}/sessions/{sid} => 404 SESSION_NOT_FOUND",
    "PATCH /api/agents/{id}/sessions/{sid} => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/clear => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/compact => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/fork => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/cancel => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/files => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/memory => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/messages => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/panels => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/return => 404 SESSION_NOT_FOUND",
    "POST /api/agents/{id}/sessions/{sid}/switch => 404 SESSION_NOT_FOUND",
    "DELETE /api/agents/{id}/sessions/{sid}/inputs/{input} => 404 SESSION_NOT_FOUND",
    "PUT /api/agents/{id}/sessions/{sid}/queue => 404 SESSION_NOT_FOUND",
    "DELETE /api/agents/{id}/sessions/{sid}/queue => 404 SESSION_NOT_FOUND",
    "PUT /api/agents/{id}/sessions/{sid}/ui-state => 404 SESSION_NOT_FOUND",
    "DELETE /api/session/{sid} => 404 SESSION_NOT_FOUND",
    "POST /api/session/{sid}/respond => 404 SESSION_NOT_FOUND",
];

/// All users but the operator, with a key that may be used to look and to change.
struct Others {
    alice: Line,
    bob: Line,
    carol: Line,
    dave: Line,
    /// The operator's own key, which may be used to look alone.
    looking: Line,
}

impl Others {
    async fn of(stage: &Stage) -> Self {
        let host = &stage.host;
        let scopes = ["read", "write"];
        Self {
            alice: host.user("alice", &scopes).await,
            bob: host.user("bob", &scopes).await,
            carol: host.user("carol", &scopes).await,
            dave: host.user("dave", &scopes).await,
            looking: host.user("local", &["read"]).await,
        }
    }

    /// Returns the callers that an endpoint refuses, with the status and code for each.
    fn refused(&self, operation: &Operation) -> Vec<(&'static str, &Line, u16, &'static str)> {
        let of_agent = operation.path.starts_with("/api/agents/{id}");
        let of_session = operation.ids.iter().any(|id| id == "sid");
        let mut refused = Vec::new();
        if operation.is_of_visitors {
            // No key of a user opens a visitor's chat.
            refused.push(("alice, no visitor,", &self.alice, 401, "UNAUTHORIZED"));
            let operator = "the operator, no visitor,";
            refused.push((operator, &self.looking, 401, "UNAUTHORIZED"));
            return refused;
        }
        if let Some((status, code)) = of_unknown_sender(operation) {
            refused.push(("alice, a stranger,", &self.alice, status, code));
        }
        if operation.method == Method::GET || operation.is_open {
            return refused;
        }
        refused.push((
            "a key that may only look",
            &self.looking,
            403,
            "SCOPE_MISSING",
        ));
        if !(of_agent || of_session) {
            return refused;
        }
        let observed = if operation.to_string() == FORGET {
            (404, "NOTE_NOT_FOUND")
        } else {
            (403, "ROLE_FORBIDS")
        };
        refused.push(("dave, an observer,", &self.dave, observed.0, observed.1));
        let row = operation.to_string() + " => ";
        match TALKING
            .iter()
            .find_map(|talking| talking.strip_prefix(&row))
        {
            Some("taken") => {}
            Some(refusal) => {
                let (status, code) = refusal.split_once(' ').unwrap();
                refused.push(("bob, a mentee,", &self.bob, status.parse().unwrap(), code));
            }
            // Whatever else changes an agent takes the role primary.
            None => {
                refused.push(("bob, a mentee,", &self.bob, 403, "ROLE_FORBIDS"));
                refused.push(("carol, who is shared,", &self.carol, 403, "ROLE_FORBIDS"));
            }
        }
        refused
    }
}

/// Returns the refusal of a stranger, who may look and change, at an endpoint of something of
/// somebody's; none where everybody may ask.
fn of_unknown_sender(operation: &Operation) -> Option<(u16, &'static str)> {
    let has = |name: &str| operation.ids.iter().any(|id| id == name);
    let path = operation.path.as_str();
    match operation.to_string().as_str() {
        "POST /api/triggers" | "PUT /api/triggers/{trigger}" => Some((403, "SCOPE_MISSING")),
        _ if has("trigger") => Some((404, "TRIGGER_NOT_FOUND")),
        // Only the operator says of others who they are at a service.
        _ if path.starts_with("/api/connectors") || has("code") => Some((403, "SCOPE_MISSING")),
        _ if path.starts_with("/api/agents/{id}") => Some((404, "AGENT_NOT_FOUND")),
        _ if has("sid") => Some((404, "SESSION_NOT_FOUND")),
        _ => None,
    }
}

/// Sends an endpoint valid requests of users who may not make them.
async fn refuse(stage: &Stage, others: &Others, operation: &Operation) -> Vec<String> {
    let path = requests::path(stage, operation);
    let body = requests::body(stage, operation);
    let mut findings = Vec::new();
    for (who, line, status, code) in others.refused(operation) {
        match line
            .ask(operation.method.clone(), &path, body.as_ref())
            .attempt()
            .await
        {
            Ok(answer) if !operation.may_say(answer.status, &answer.text("code")) => {
                findings.push(format!(
                    "{who} at {operation}: it is not documented that it may say {}",
                    cut(&format!("{answer:?}"))
                ));
            }
            Ok(answer) if (answer.status, answer.text("code").as_str()) == (status, code) => {}
            Ok(answer) => {
                findings.push(format!(
                    "{who} at {operation}: {status} {code} was to come, and came {}",
                    cut(&format!("{answer:?}"))
                ));
            }
            Err(lost) => findings.push(format!("{who} at {operation}: no answer: {lost:?}")),
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread")]
async fn no_stranger_role_or_scope_does_more_than_it_may_at_any_endpoint() {
    let stage = stage().await;
    let others = Others::of(&stage).await;
    let operations = Document::of(&stage.host).await.operations();
    for talking in TALKING {
        let is_listed = operations.iter().any(|operation| {
            let row = operation.to_string() + " => ";
            talking.starts_with(&row)
        });
        assert!(is_listed, "`{talking}` is no endpoint any more");
    }
    let before = stage.inspect().await;
    let mut findings = Vec::new();
    for operation in &operations {
        let position = stage.position().await;
        findings.extend(refuse(&stage, &others, operation).await);
        findings.extend(stage.changed_since(position, &operation.to_string()).await);
    }
    findings.extend(stage.compare(&before).await);
    end(&findings);
}

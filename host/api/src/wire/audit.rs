//! The ledger in public form: one flat line for each decision of the boundary, so that it can be
//! filtered and exported.

#[cfg(test)]
mod tests;

use domain::egress::Hop;
use domain::event::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, ComponentAdmitted, Event, OPERATOR_READ,
    OperatorRead, Recorded,
};
use domain::grant::OwnedFolder;
use domain::grant::capability::{FILES_READ, FILES_WRITE};
use serde::Serialize;
use serde_json::Value;

/// One line of the ledger: who, which code, which grant, which call, what was decided, and by which
/// rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct AuditLine {
    /// The position of its event, which is chained to all others by hash. Several lines may come
    /// from one event.
    pub(crate) position: u64,
    /// The time of the decision, ISO 8601.
    pub(crate) time: String,
    /// `decision`, `request` (one hop of an HTTP request), `admission` of a component, or
    /// `reading`: the operator read what users say.
    pub(crate) kind: &'static str,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    /// The agent's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<String>,
    /// The user for whom the turn acts, of lines since that is recorded; of a reading, who read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<String>,
    /// The operation, that is the call; none for a step of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operation_id: Option<String>,
    /// The segment of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segment: Option<u32>,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// The operator's name of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) component: Option<String>,
    /// The digest of its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// The version of that code, by its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The digest of what it is granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<String>,
    /// The capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capability: Option<String>,
    /// The verdict `granted`, `refused` or `limited`; for a request, its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Number of times within the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<u64>,
    /// The subject of the first such decision; for a request, the request without its query. For an
    /// admission, a note that it differs from the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The folder that was used, where it is one that the user, the agent or the session has of its
    /// own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<String>,
    /// The path under which that folder is granted, with its placeholders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder_granted: Option<String>,
    /// The status of a request's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Bytes that a request received, head included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_in: Option<u64>,
    /// Bytes that it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_out: Option<u64>,
    /// Number of decisions of the call that were left out because there
    /// were too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<u64>,
}

/// The lines of an event; none when it is not of the ledger, or was erased.
pub(crate) fn audit(recorded: &Recorded) -> Vec<AuditLine> {
    let line = AuditLine {
        position: recorded.position,
        time: recorded.time.to_string(),
        agent_id: recorded.subject.agent.map(|id| id.to_string()),
        session_id: recorded.subject.session.map(|id| id.to_string()),
        run_id: recorded.subject.run.map(|id| id.to_string()),
        ..AuditLine::default()
    };
    match &recorded.event {
        Some(Event::BoundaryDecided(decided)) => decisions(&line, decided),
        Some(Event::ComponentAdmitted(admitted)) => vec![admission(line, admitted)],
        Some(Event::OperatorRead(read)) => vec![reading(line, read)],
        _ => Vec::new(),
    }
}

fn admission(line: AuditLine, admitted: &ComponentAdmitted) -> AuditLine {
    AuditLine {
        kind: "admission",
        component: Some(admitted.component.clone()),
        code: Some(admitted.code.reference()),
        version: admitted.version.clone(),
        grant: Some(admitted.grant.reference()),
        detail: admitted.replaces.map(|before| {
            format!(
                "not what was admitted before ({}), and not pinned",
                before.reference()
            )
        }),
        ..line
    }
}

fn reading(line: AuditLine, read: &OperatorRead) -> AuditLine {
    let turn = read
        .turn
        .map(|turn| format!(" turn {turn}"))
        .unwrap_or_default();
    AuditLine {
        kind: "reading",
        user_id: Some(read.user_id.to_string()),
        capability: Some(OPERATOR_READ.to_owned()),
        verdict: Some(enum_name(&serde_json::json!(BoundaryVerdict::Granted))),
        detail: Some(format!("{}{turn}", read.request)),
        ..line
    }
}

fn decisions(line: &AuditLine, it: &BoundaryDecided) -> Vec<AuditLine> {
    // What a connector shows while a run goes on is an event of no run; its content names the run.
    let run = || it.run.map(|run| run.to_string());
    let call = AuditLine {
        run_id: line.run_id.clone().or_else(run),
        definition: Some(it.definition.to_string()),
        user_id: it.user_id.as_ref().map(ToString::to_string),
        operation_id: it.operation.map(|id| id.to_string()),
        segment: it.operation.map(|_| it.segment),
        tool: it.tool.clone(),
        component: it.component.clone(),
        code: it.code.map(|code| code.reference()),
        version: it.version.clone(),
        grant: it.grant.map(|grant| grant.reference()),
        ..line.clone()
    };
    let decided = it
        .decisions
        .iter()
        .map(|decision| decision_line(&call, decision, &it.folders));
    let requests = it.egress.hops.iter().map(|hop| request_line(&call, hop));
    let more = (it.left_out > 0).then(|| AuditLine {
        kind: "decision",
        left_out: Some(it.left_out),
        ..call.clone()
    });
    decided.chain(requests).chain(more).collect()
}

fn decision_line(
    call: &AuditLine,
    decision: &BoundaryDecision,
    folders: &[OwnedFolder],
) -> AuditLine {
    let is_about_files = [FILES_READ, FILES_WRITE].contains(&decision.capability.as_str());
    let is_in = |folder: &&OwnedFolder| {
        let rest = decision
            .detail
            .strip_prefix(folder.at.trim_end_matches('/'));
        is_about_files && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let folder = folders
        .iter()
        .filter(is_in)
        .max_by_key(|folder| folder.at.len());
    AuditLine {
        folder: folder.map(|folder| folder.folder.clone()),
        folder_granted: folder.map(|folder| folder.granted.clone()),
        kind: "decision",
        capability: Some(decision.capability.clone()),
        verdict: Some(enum_name(&serde_json::json!(decision.verdict))),
        rule: Some(decision.rule.to_string()),
        times: Some(decision.times),
        detail: (!decision.detail.is_empty()).then(|| decision.detail.clone()),
        ..call.clone()
    }
}

fn request_line(call: &AuditLine, hop: &Hop) -> AuditLine {
    let scheme = hop
        .scheme
        .map(|scheme| enum_name(&serde_json::json!(scheme)));
    let target = match (scheme, &hop.host, hop.port) {
        (Some(scheme), Some(host), Some(port)) => format!(
            "{scheme}://{host}:{port}{}",
            hop.path.as_deref().unwrap_or_default()
        ),
        _ => "a URL that was not accepted".to_owned(),
    };
    AuditLine {
        kind: "request",
        capability: Some(domain::grant::capability::NET_HTTP.to_owned()),
        verdict: Some(hop.verdict.clone()),
        detail: Some(format!("{} {target}", hop.method)),
        times: (hop.times > 1).then_some(hop.times),
        status: hop.status,
        bytes_in: Some(hop.bytes_in),
        bytes_out: Some(hop.bytes_out),
        ..call.clone()
    }
}

/// Returns the name that an enum is written as.
fn enum_name(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

//! The ledger in public form: one flat line for each decision of the boundary, so that it can be
//! filtered and exported.

#[cfg(test)]
mod tests;

use super::values::{ContentDigest, Time};
use domain::definition::DefinitionId;
use domain::egress::Hop;
use domain::event::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, ComponentAdmitted, Event, OPERATOR_READ,
    OperatorRead, Recorded,
};
use domain::grant::OwnedFolder;
use domain::grant::capability::{FILES_READ, FILES_WRITE, NET_HTTP};
use domain::id::{AgentId, OperationId, RunId, SessionId};
use domain::user::UserId;
use serde::Serialize;

/// One line of the ledger: who, which code, which grant, which call, what was decided, and by which
/// rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct AuditLine {
    /// The position of its event, which is chained to all others by hash. Several lines may come
    /// from one event.
    position: u64,
    /// The time of the decision, ISO 8601.
    time: Time,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<AgentId>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    /// The decision, request, admission or reading.
    #[serde(flatten)]
    entry: AuditEntry,
}

/// The subject of a line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AuditEntry {
    /// A decision of the boundary.
    Decision {
        #[serde(flatten)]
        call: AuditedCall,
        /// The capability.
        capability: String,
        /// The verdict.
        #[schema(value_type = String)]
        verdict: BoundaryVerdict,
        /// The rule that decided.
        rule: String,
        /// Number of times within the call.
        times: u64,
        /// The subject of the first such decision.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The folder that was used, where it is one that the user, the agent or the session has of
        /// its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        /// The path under which that folder is granted, with its placeholders.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder_granted: Option<String>,
    },
    /// One hop of an HTTP request.
    Request {
        #[serde(flatten)]
        call: AuditedCall,
        /// The capability.
        capability: &'static str,
        /// The outcome of the request.
        verdict: String,
        /// Number of times within the call, if more than one.
        #[serde(skip_serializing_if = "Option::is_none")]
        times: Option<u64>,
        /// The request without its query.
        detail: String,
        /// The status of its answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Bytes that it received, head included.
        bytes_in: u64,
        /// Bytes that it sent.
        bytes_out: u64,
    },
    /// Decisions of a call that have no line because there were too many.
    LeftOut {
        #[serde(flatten)]
        call: AuditedCall,
        /// Always `decision`.
        of: &'static str,
        /// Their number.
        left_out: u64,
    },
    /// A component was admitted.
    Admission {
        /// The operator's name of the component.
        component: String,
        /// The digest of its code.
        code: ContentDigest,
        /// The version of that code, by its manifest.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The digest of what it is granted.
        grant: ContentDigest,
        /// A note that it differs from the one before.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The operator read what users say.
    Reading {
        /// The operator's user.
        user_id: UserId,
        /// The capability.
        capability: &'static str,
        /// Always `granted`.
        #[schema(value_type = String)]
        verdict: BoundaryVerdict,
        /// The request, and the turn that was read.
        detail: String,
    },
}

/// The call, or the step, that a line of the ledger is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct AuditedCall {
    /// The agent's definition.
    definition: DefinitionId,
    /// The user for whom the turn acts, of lines since that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    /// The operation, that is the call; none for a step of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<OperationId>,
    /// The segment of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u32>,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The operator's name of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    /// The digest of its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ContentDigest>,
    /// The version of that code, by its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The digest of what it is granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<ContentDigest>,
}

/// The subject by which lines are filtered.
#[derive(Debug, Default)]
pub(crate) struct AuditSubject {
    pub(crate) definition: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) component: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) capability: Option<String>,
    pub(crate) verdict: Option<String>,
}

impl AuditLine {
    /// Returns what it is filtered by.
    pub(crate) fn subject(&self) -> AuditSubject {
        let of = |call: &AuditedCall| AuditSubject {
            definition: Some(call.definition.to_string()),
            user: call.user_id.as_ref().map(ToString::to_string),
            component: call.component.clone(),
            tool: call.tool.clone(),
            ..AuditSubject::default()
        };
        match &self.entry {
            AuditEntry::Decision {
                call,
                capability,
                verdict,
                ..
            } => AuditSubject {
                capability: Some(capability.clone()),
                verdict: Some(enum_name(verdict)),
                ..of(call)
            },
            AuditEntry::Request {
                call,
                capability,
                verdict,
                ..
            } => AuditSubject {
                capability: Some((*capability).to_owned()),
                verdict: Some(verdict.clone()),
                ..of(call)
            },
            AuditEntry::LeftOut { call, .. } => of(call),
            AuditEntry::Admission { component, .. } => AuditSubject {
                component: Some(component.clone()),
                ..AuditSubject::default()
            },
            AuditEntry::Reading {
                user_id,
                capability,
                verdict,
                ..
            } => AuditSubject {
                user: Some(user_id.to_string()),
                capability: Some((*capability).to_owned()),
                verdict: Some(enum_name(verdict)),
                ..AuditSubject::default()
            },
        }
    }
}

/// The lines of an event; none when it is not of the ledger, or was erased.
pub(crate) fn audit(recorded: &Recorded) -> Vec<AuditLine> {
    // What a connector shows while a run goes on is an event of no run; its content names the run.
    let (entries, run) = match &recorded.event {
        Some(Event::ComponentAdmitted(admitted)) => (vec![admission(admitted)], None),
        Some(Event::OperatorRead(read)) => (vec![reading(read)], None),
        Some(event) => {
            let ledger = event.ledger();
            let run = ledger.first().and_then(|entry| entry.run);
            (ledger.iter().flat_map(decisions).collect(), run)
        }
        None => (Vec::new(), None),
    };
    let line = |entry| AuditLine {
        position: recorded.position,
        time: Time(recorded.time),
        agent_id: recorded.subject.agent,
        session_id: recorded.subject.session,
        run_id: recorded.subject.run.or(run),
        entry,
    };
    entries.into_iter().map(line).collect()
}

fn admission(admitted: &ComponentAdmitted) -> AuditEntry {
    AuditEntry::Admission {
        component: admitted.component.clone(),
        code: ContentDigest(admitted.code),
        version: admitted.version.clone(),
        grant: ContentDigest(admitted.grant),
        detail: admitted.replaces.map(|before| {
            format!(
                "not what was admitted before ({}), and not pinned",
                before.reference()
            )
        }),
    }
}

fn reading(read: &OperatorRead) -> AuditEntry {
    let turn = read
        .turn
        .map(|turn| format!(" turn {turn}"))
        .unwrap_or_default();
    AuditEntry::Reading {
        user_id: read.user_id.clone(),
        capability: OPERATOR_READ,
        verdict: BoundaryVerdict::Granted,
        detail: format!("{}{turn}", read.request),
    }
}

fn decisions(it: &BoundaryDecided) -> Vec<AuditEntry> {
    let call = AuditedCall {
        definition: it.definition.clone(),
        user_id: it.user_id.clone(),
        operation_id: it.operation,
        segment: it.operation.map(|_| it.segment),
        tool: it.tool.clone(),
        component: it.component.clone(),
        code: it.code.map(ContentDigest),
        version: it.version.clone(),
        grant: it.grant.map(ContentDigest),
    };
    let decided = it.decisions.iter().map(|decision| {
        let folder = used_folder(decision, &it.folders);
        AuditEntry::Decision {
            call: call.clone(),
            capability: decision.capability.clone(),
            verdict: decision.verdict,
            rule: decision.rule.to_string(),
            times: decision.times,
            detail: (!decision.detail.is_empty()).then(|| decision.detail.clone()),
            folder: folder.map(|folder| folder.folder.clone()),
            folder_granted: folder.map(|folder| folder.granted.clone()),
        }
    });
    let requests = it.egress.hops.iter().map(|hop| request(&call, hop));
    let more = (it.left_out > 0).then(|| AuditEntry::LeftOut {
        call: call.clone(),
        of: "decision",
        left_out: it.left_out,
    });
    decided.chain(requests).chain(more).collect()
}

/// Returns the folder of its own that a decision about files is about.
fn used_folder<'a>(
    decision: &BoundaryDecision,
    folders: &'a [OwnedFolder],
) -> Option<&'a OwnedFolder> {
    let is_about_files = [FILES_READ, FILES_WRITE].contains(&decision.capability.as_str());
    let is_in = |folder: &&OwnedFolder| {
        let rest = decision
            .detail
            .strip_prefix(folder.at.trim_end_matches('/'));
        is_about_files && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    folders
        .iter()
        .filter(is_in)
        .max_by_key(|folder| folder.at.len())
}

fn request(call: &AuditedCall, hop: &Hop) -> AuditEntry {
    let target = match (hop.scheme, &hop.host, hop.port) {
        (Some(scheme), Some(host), Some(port)) => format!(
            "{}://{host}:{port}{}",
            enum_name(&scheme),
            hop.path.as_deref().unwrap_or_default()
        ),
        _ => "a URL that was not accepted".to_owned(),
    };
    AuditEntry::Request {
        call: call.clone(),
        capability: NET_HTTP,
        verdict: hop.verdict.clone(),
        times: (hop.times > 1).then_some(hop.times),
        detail: format!("{} {target}", hop.method),
        status: hop.status,
        bytes_in: hop.bytes_in,
        bytes_out: hop.bytes_out,
    }
}

/// Returns the name that an enum is written as.
fn enum_name(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

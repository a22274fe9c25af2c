//! Decisions of the boundary: the ledger's events.

use crate::access::egress::Traffic;
use crate::access::grant::OwnedFolder;
use crate::access::ruling::Rule;
use crate::access::user::UserId;
use crate::agents::definition::DefinitionId;
use crate::values::digest::Digest;
use crate::values::id::{OperationId, RunId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Decisions of one call that are recorded individually. Further ones are counted.
pub const DECISIONS_RECORDED_MAX: usize = 64;
/// Bytes of a decision's detail.
pub const DETAIL_BYTES_MAX: usize = 256;
/// Beginning of the detail of a failed call that was given folders and opened nothing in them. It
/// may have searched elsewhere, which the host does not see.
pub const NOTHING_OPENED: &str = "nothing was opened in ";

/// Result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryVerdict {
    /// It was done, under a grant.
    Granted,
    /// A rule refused it.
    Refused,
    /// A limit was met.
    Limited,
}

/// All requests of a call for one capability that had the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundaryDecision {
    /// The capability, such as `files.write`. An interface without a capability has its own name
    /// here, such as `wasi:sockets`.
    pub capability: String,
    /// The answer.
    pub verdict: BoundaryVerdict,
    /// The rule behind it.
    pub rule: Rule,
    /// Number of times.
    pub times: u64,
    /// Detail of the first request: a function, a path, a host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// See [`super::Event::BoundaryDecided`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundaryDecided {
    /// The run. None for a call outside a run: a trigger run, a poll of a connector, a message of
    /// no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The performed operation; none for a step of the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Its segment, counted from 0.
    pub segment: u32,
    /// The calling agent, by its definition; for other calls, `trigger:` or `connector:` and the
    /// name of the caller.
    pub definition: DefinitionId,
    /// The user for whom it acts; none for a call outside a user's turn or trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The tool, or the other subject of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The operator's name of the called component; none if no component was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Digest>,
    /// The version of that code, by its manifest; none if the manifest has no version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its grant, as [`crate::events::event::ComponentAdmitted`] names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Digest>,
    /// One entry for each capability, verdict and rule. Uses of secrets and limits of the call have
    /// entries of their own.
    pub decisions: Vec<BoundaryDecision>,
    /// Number of further decisions that are not listed.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub left_out: u64,
    /// The folders of the call that belong to its user, its agent or its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<OwnedFolder>,
    /// HTTP traffic of the call.
    #[serde(default, skip_serializing_if = "Traffic::is_empty")]
    pub egress: Traffic,
    /// Time of the record.
    pub time: Timestamp,
}

/// See [`super::Event::ComponentAdmitted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentAdmitted {
    /// The operator's name.
    pub component: String,
    /// Its code.
    pub code: Digest,
    /// The version of that code, by its manifest; none if the manifest has no version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The component's grant: a blob of JSON.
    pub grant: Digest,
    /// Digest of the component's own description.
    pub described: Digest,
    /// The code that was admitted under this name before. Present if that is other code or has
    /// another description, and no digest in the configuration confirms the new code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Digest>,
    /// Time of the admission.
    pub time: Timestamp,
}

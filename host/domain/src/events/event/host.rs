//! Payloads of events that concern the host as a whole.

use crate::access::bucket::WrittenEntry;
use crate::access::egress::Traffic;
use crate::access::grant::{BucketPlace, OwnedFolder};
use crate::access::key::KeyId;
use crate::access::ruling::Rule;
use crate::access::user::{Scope, UserId};
use crate::agents::definition::{DefinitionId, OwnDefinition};
use crate::agents::path::ConnectorKey;
use crate::values::difference::Difference;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, OperationId, RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::trouble::ServiceTrouble;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The operator's choice about work that was open at the time of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreChoice {
    /// No call was open.
    NothingOpen,
    /// The call continues, and requests from after the backup are sent again.
    Resumed,
    /// It is settled, with an unknown outcome.
    SettledUnknown,
}

/// See [`super::Event::HostRestored`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRestored {
    /// Time of the backup.
    pub made_at: Timestamp,
    /// The choice about work that was open.
    pub choice: RestoreChoice,
    /// Turns that would continue without further input.
    pub turns: u64,
    /// Calls of models and tools that these turns would repeat.
    pub operations: u64,
    /// Inputs that waited for a turn.
    pub inputs: u64,
    /// Time of the restore.
    pub time: Timestamp,
}

/// The ledger's name for an operator's reading of messages.
pub const OPERATOR_READ: &str = "operator.read";

/// See [`super::Event::OperatorRead`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRead {
    /// The user of the credential.
    pub user_id: UserId,
    /// The request, such as `GET /api/agents/{id}/sessions/{sid}`.
    pub request: String,
    /// The agent whose users' messages were read.
    pub agent: AgentId,
    /// The session, if the request named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Time of the request.
    pub time: Timestamp,
}

/// The cause of a reload of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadCause {
    /// Its file changed.
    File,
    /// A request over HTTP.
    Request,
    /// The process got the signal SIGHUP.
    Signal,
}

/// See [`super::Event::ConfigReloaded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReloaded {
    /// The configuration in force from now on. Turns that begin under it name it
    /// ([`super::RunStarted::configuration`]).
    pub configuration: Digest,
    /// The previous configuration.
    pub replaces: Digest,
    /// The trigger event.
    pub because: ReloadCause,
    /// The user who asked for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The keys that differ, without their values; at most
    /// [`DIFFERENCES_MAX`](crate::values::difference::DIFFERENCES_MAX).
    pub differences: Vec<Difference>,
    /// Number of differences beyond these.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub left_out: u64,
    /// The changed keys that only a restart applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
    /// Time from which it applies.
    pub time: Timestamp,
}

/// Bytes of the reason in the record of a refused configuration.
pub const REFUSAL_BYTES_MAX: usize = 4 << 10;

/// See [`super::Event::ConfigRefused`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRefused {
    /// The configuration in force, which is unchanged.
    pub configuration: Digest,
    /// The cause of the reload.
    pub because: ReloadCause,
    /// The user who asked for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The reason in words, without secrets; [`REFUSAL_BYTES_MAX`] at most.
    pub reason: String,
    /// Time of the refusal.
    pub time: Timestamp,
}

/// See [`super::Event::ProviderTroubled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTroubled {
    /// The provider, as the configuration names it.
    pub provider: String,
    /// The trouble.
    pub trouble: ServiceTrouble,
    /// Time at which it was noticed.
    pub time: Timestamp,
}

// Payloads of the host's stream about services' keys for users.

/// See [`super::Event::ConnectorKeyBound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyBound {
    /// The service's key for the user.
    pub key: ConnectorKey,
    /// The user.
    pub user_id: UserId,
    /// The user who bound it.
    pub bound_by: UserId,
    /// Time of the binding.
    pub time: Timestamp,
}

/// See [`super::Event::ConnectorKeyUnbound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyUnbound {
    /// The service's key for the user.
    pub key: ConnectorKey,
    /// The user for whom it stood.
    pub user_id: UserId,
    /// The user who removed the binding.
    pub unbound_by: UserId,
    /// Time of the removal.
    pub time: Timestamp,
}

// Payloads of the host's stream about users' definitions.

/// See [`super::Event::DefinitionMade`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionMade {
    /// Its id.
    pub definition: DefinitionId,
    /// The configured definition that it was made from. It is read again at every start: what the
    /// template loses, this definition loses too.
    pub template: DefinitionId,
    /// The user who made it.
    pub user_id: UserId,
    /// Everything that the user specified.
    pub own: OwnDefinition,
    /// Time of its making.
    pub time: Timestamp,
}

/// See [`super::Event::DefinitionRemoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRemoved {
    /// Its id.
    pub definition: DefinitionId,
    /// The user who had made the definition.
    pub user_id: UserId,
    /// The user who removed it.
    pub removed_by: UserId,
    /// The position of the event that made it, whose texts are erased with it.
    pub position: u64,
    /// Time of the removal.
    pub time: Timestamp,
}

// Payloads of the host's own stream about API keys. No secret is in any of them.

/// See [`super::Event::KeyIssued`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIssued {
    /// The key.
    pub key_id: KeyId,
    /// The user to whom the key belongs.
    pub user_id: UserId,
    /// Name of the key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Scopes for which the key may be used.
    pub scopes: BTreeSet<Scope>,
    /// The SHA-256 of its secret.
    pub hash: Digest,
    /// The user who issued it.
    pub issued_by: UserId,
    /// The key that was used to issue it; none if it was issued with other credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_with: Option<KeyId>,
    /// Time of issue.
    pub issued_at: Timestamp,
    /// Time at which the key expires.
    pub expires_at: Timestamp,
}

/// See [`super::Event::KeyRevoked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevoked {
    /// The key.
    pub key_id: KeyId,
    /// The user who revoked it.
    pub revoked_by: UserId,
    /// Time of the revocation.
    pub revoked_at: Timestamp,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

// Payloads about tools' values in buckets.

/// See [`super::Event::KeyValueWritten`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValueWritten {
    /// The run.
    pub run: RunId,
    /// The call that wrote.
    pub operation: OperationId,
    /// Its segment, counted from 0.
    pub segment: u32,
    /// The bucket.
    pub place: BucketPlace,
    /// The new value of each key, in the order of the keys, each key once.
    pub entries: Vec<WrittenEntry>,
    /// Time of the write.
    pub time: Timestamp,
}

// Decisions of the boundary: the ledger's events.

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

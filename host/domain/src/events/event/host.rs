//! Payloads of events that concern the host as a whole.

use crate::access::user::UserId;
use crate::values::difference::Difference;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::trouble::ServiceTrouble;
use serde::{Deserialize, Serialize};

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

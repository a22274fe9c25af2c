//! Rulings: the rule that decided about a call or a capability.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Stands for calling a tool, where a decision is not about a capability.
pub const TOOL_CALL: &str = "tools.call";
/// Stands for a step of the agent itself.
pub const STEP: &str = "agents.step";
/// Stands for asking a model.
pub const MODEL_CALL: &str = "models.call";
/// Stands for dispatching to another agent.
pub const AGENT_CALL: &str = "agents.call";

/// The rule that decided. For the operator; a guest and a model learn only that something was
/// denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// It is granted to the component, and no list is against it.
    #[serde(rename = "grant")]
    Granted,
    /// It is one of the host's own tools, which pass allow lists.
    #[serde(rename = "system")]
    System,
    /// The tool does not ask for it.
    #[serde(rename = "notAsked")]
    NotAsked,
    /// It is not granted to the component.
    #[serde(rename = "notGranted")]
    NotGranted,
    /// The agent's `toolAllowlist` lacks it.
    #[serde(rename = "toolAllowlist")]
    ToolAllowlist,
    /// The agent's `toolDenylist` has it.
    #[serde(rename = "toolDenylist")]
    ToolDenylist,
    /// The agent's `capabilityAllowlist` lacks it.
    #[serde(rename = "capabilityAllowlist")]
    CapabilityAllowlist,
    /// The agent's `capabilityDenylist` has it.
    #[serde(rename = "capabilityDenylist")]
    CapabilityDenylist,
    /// The agent's `agentAllowlist` lacks it.
    #[serde(rename = "agentAllowlist")]
    AgentAllowlist,
    /// The agent's `agentDenylist` has it.
    #[serde(rename = "agentDenylist")]
    AgentDenylist,
    /// A deny list of an agent that handed the work down has it.
    #[serde(rename = "callersDenylist")]
    CallersDenylist,
    /// The other agent is not visible.
    #[serde(rename = "uiVisible")]
    UiVisible,
    /// The role, the persona or the path does not permit it.
    #[serde(rename = "permissions")]
    Permissions,
    /// It was not granted when the run began.
    #[serde(rename = "ceiling")]
    Ceiling,
    /// The tool declares that it only reads, and may therefore run again at the same time.
    #[serde(rename = "readOnly")]
    ReadOnly,
    /// One of the component's limits, of the turn's or of the host's.
    #[serde(rename = "limits")]
    Limits,
    /// A user has to agree to it first.
    #[serde(rename = "approval")]
    Approval,
    /// There is no such thing.
    #[serde(rename = "unknown")]
    Unknown,
    /// The guest returned something that its contract with the host does not allow.
    #[serde(rename = "contract")]
    Contract,
}

impl Rule {
    /// Its name, as in events and in the config.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "grant",
            Self::System => "system",
            Self::NotAsked => "notAsked",
            Self::NotGranted => "notGranted",
            Self::ToolAllowlist => "toolAllowlist",
            Self::ToolDenylist => "toolDenylist",
            Self::CapabilityAllowlist => "capabilityAllowlist",
            Self::CapabilityDenylist => "capabilityDenylist",
            Self::AgentAllowlist => "agentAllowlist",
            Self::AgentDenylist => "agentDenylist",
            Self::CallersDenylist => "callersDenylist",
            Self::UiVisible => "uiVisible",
            Self::Permissions => "permissions",
            Self::Ceiling => "ceiling",
            Self::ReadOnly => "readOnly",
            Self::Limits => "limits",
            Self::Approval => "approval",
            Self::Unknown => "unknown",
            Self::Contract => "contract",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decision on one capability, with the rule behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The capability.
    pub capability: String,
    /// True if the capability may be used.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: Rule,
}

//! Rulings: the rule that decided about a call or a capability.

use crate::values::text::words;
use serde::{Deserialize, Serialize};

/// The name of a tool call, in a decision that is not about a capability.
pub const TOOL_CALL: &str = "tools.call";
/// The name of a step of the agent itself.
pub const STEP: &str = "agents.step";
/// The name of a model call.
pub const MODEL_CALL: &str = "models.call";
/// The name of starting a program of the operating system in a model's place.
pub const PROGRAM_RUN: &str = "programs.run";
/// The name of a dispatch to another agent.
pub const AGENT_CALL: &str = "agents.call";

/// The rule that decided. For the operator; a guest and a model learn only that something was
/// denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// It is granted to the component, and no list forbids it.
    #[serde(rename = "grant")]
    Granted,
    /// It is one of the host's own tools, which bypass allow lists.
    System,
    /// The tool does not ask for it.
    NotAsked,
    /// It is not granted to the component.
    NotGranted,
    /// The agent's `toolAllowlist` lacks it.
    ToolAllowlist,
    /// The agent's `toolDenylist` has it.
    ToolDenylist,
    /// The agent's `capabilityAllowlist` lacks it.
    CapabilityAllowlist,
    /// The agent's `capabilityDenylist` has it.
    CapabilityDenylist,
    /// The agent's `agentAllowlist` lacks it.
    AgentAllowlist,
    /// The agent's `agentDenylist` has it.
    AgentDenylist,
    /// The agent's `modelAllowlist` lacks it, or lacks its exact name although it is a program.
    ModelAllowlist,
    /// A deny list of an agent that handed the work down contains it.
    CallersDenylist,
    /// The other agent is not visible.
    UiVisible,
    /// The role, the persona or the path does not permit it.
    Permissions,
    /// It was not granted when the run began.
    Ceiling,
    /// The tool declares that it only reads, and may therefore run again, in parallel too.
    ReadOnly,
    /// A limit of the component, the turn or the host.
    Limits,
    /// A user has to approve it first.
    Approval,
    /// The name does not exist.
    Unknown,
    /// The guest's result violates its contract with the host.
    Contract,
}

words!(Rule {
    Granted = "grant",
    System = "system",
    NotAsked = "notAsked",
    NotGranted = "notGranted",
    ToolAllowlist = "toolAllowlist",
    ToolDenylist = "toolDenylist",
    CapabilityAllowlist = "capabilityAllowlist",
    CapabilityDenylist = "capabilityDenylist",
    AgentAllowlist = "agentAllowlist",
    AgentDenylist = "agentDenylist",
    ModelAllowlist = "modelAllowlist",
    CallersDenylist = "callersDenylist",
    UiVisible = "uiVisible",
    Permissions = "permissions",
    Ceiling = "ceiling",
    ReadOnly = "readOnly",
    Limits = "limits",
    Approval = "approval",
    Unknown = "unknown",
    Contract = "contract",
});

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

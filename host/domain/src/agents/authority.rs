//! Authority: what one tool call may do, and which rule decided each part.
//!
//! Effective authority is what the tool asks for ∩ the operator's grant to its component ∩ the
//! calling agent's lists ∩ the permissions of persona, role and path − every deny list. Deny lists
//! include those of the agents that handed the work down. An agent's allow lists are its own and do
//! not travel. Denies travel, and so do permissions of personas, roles and paths, so authority only
//! shrinks along a chain of callers. A tool that asks to write also asks to read: an agent that may
//! not read may not call it. The ceiling of a run is the authority at its start. A grant or list
//! that is widened later does not apply to the run, nor does an agent that is added later. A grant
//! or list that is narrowed later does apply.
//!
//! Effective authority is computed only here. The result is bound into the instance that runs the
//! call.

mod explain;
mod inherited;
mod models;
mod within;

use crate::access::grant::{
    Access, Bound, BucketGrant, DirectoryGrant, Grant, PatternList, capability,
};
use crate::access::ruling::{Rule, Ruling, TOOL_CALL};
use crate::access::tool::ToolDefinition;
use crate::agents::definition::{Definition, DefinitionId};
use crate::agents::skill::BASH;
use crate::values::digest::Digest;
pub use explain::{ListCheck, Says};
pub use inherited::{Denies, Permissions};
pub use models::{ModelStatus, NamedModel};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A refusal by one of the operator's rules. The guest sees a uniform denial; this is for the
/// operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` is not allowed by `{rule}`")]
pub struct Denied {
    /// The rule that decided.
    pub rule: Rule,
    /// The thing that was asked for.
    pub what: String,
}

impl Denied {
    /// The capability that a call of this tool lacks; [`TOOL_CALL`] if the tool itself may not be
    /// called.
    #[must_use]
    pub fn capability<'a>(&'a self, tool: &str) -> &'a str {
        if self.what == tool {
            TOOL_CALL
        } else {
            &self.what
        }
    }
}

/// The requirements of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRequirements<'a> {
    /// Its name.
    pub tool: &'a str,
    /// The capabilities that it needs.
    pub capabilities: &'a [String],
}

impl ToolRequirements<'_> {
    /// All its requirements, each once: the capabilities that it names, and those that they imply.
    fn needed(&self) -> Vec<Needed> {
        let mut all: Vec<Needed> = Vec::new();
        for name in self.capabilities {
            let with = capability::implied(name).map(|implied| Needed {
                name: implied,
                with: Some(name.clone()),
            });
            for needed in std::iter::once(Needed {
                name: name.clone(),
                with: None,
            })
            .chain(with)
            {
                if !all.iter().any(|known| known.name == needed.name)
                    && (needed.with.is_none() || !self.capabilities.contains(&needed.name))
                {
                    all.push(needed);
                }
            }
        }
        all
    }

    /// The names of all capabilities that it needs: those it asks for, and those that these imply.
    #[must_use]
    pub fn capabilities_needed(&self) -> Vec<String> {
        self.needed()
            .into_iter()
            .map(|needed| needed.name)
            .collect()
    }
}

/// A capability that a tool needs.
struct Needed {
    name: String,
    /// The capability that implies it, if the tool does not name it.
    with: Option<String>,
}

impl<'a> From<&'a ToolDefinition> for ToolRequirements<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            tool: &tool.name,
            capabilities: &tool.capabilities,
        }
    }
}

/// The most authority that a run's agent could have when the run began. Stored once per
/// configuration as a blob, which the run names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Its definition, with the lists.
    pub agent: Definition,
    /// The grants of all components that offer tools and of the agent's own component, by the
    /// operator's names.
    pub grants: BTreeMap<String, Grant>,
    /// The code of the components that offer tools.
    pub code: BTreeMap<String, Digest>,
    /// The definitions that existed at that time.
    pub agents: BTreeSet<DefinitionId>,
}

impl Ceiling {
    /// Returns whether a definition existed when the run began, or is unknown to this agent at all
    /// times.
    #[must_use]
    pub fn knew(&self, other: &Definition) -> bool {
        self.agents.contains(&other.agent_id) || !other.is_known_to(&self.agent)
    }

    /// Returns the grant of the agent's own component.
    #[must_use]
    pub fn own_grant(&self) -> Grant {
        let own = self.grants.get(&self.agent.component);
        own.cloned().unwrap_or_default()
    }
}

/// The calling agent, with the rules of the chain of its callers.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The agent that calls.
    pub agent: &'a Definition,
    /// Denials of the agents above it.
    pub denies: &'a Denies,
    /// Permissions of its role, persona and path.
    pub permissions: &'a Permissions,
}

impl Caller<'_> {
    /// Checks whether the lists let the agent call a tool at all. `system_*` tools bypass allow
    /// lists, except for an agent that only delegates; a deny always wins. A tool needs all of the
    /// capabilities that it asks for, and those that they imply.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_call<'a>(&self, asked: impl Into<ToolRequirements<'a>>) -> Result<Rule, Denied> {
        let asked = asked.into();
        let tool = asked.tool;
        let agent = self.agent;
        let system = is_system(tool) && !only_delegates(agent);
        refuse_by(
            tool,
            [
                (self.denies.tools.matches(tool), Rule::CallersDenylist),
                (has(agent.tool_denylist.as_ref(), tool), Rule::ToolDenylist),
                (
                    !system && lacks(agent.tool_allowlist.as_ref(), tool),
                    Rule::ToolAllowlist,
                ),
                (!self.permissions.permit_tool(tool), Rule::Permissions),
            ],
        )?;
        for needed in asked.needed() {
            match self.may_have(&needed.name) {
                Err(denied) if !system || denied.rule != Rule::CapabilityAllowlist => {
                    return Err(denied);
                }
                Err(_) | Ok(()) => {}
            }
        }
        Ok(if system { Rule::System } else { Rule::Granted })
    }

    /// Checks whether the lists let the agent use its skills by commands. Only a deny forbids it:
    /// each call of a command needs its tool to be allowed by the agent's lists.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_use_skills(&self) -> Result<(), Denied> {
        refuse_by(
            BASH,
            [
                (self.denies.tools.matches(BASH), Rule::CallersDenylist),
                (
                    has(self.agent.tool_denylist.as_ref(), BASH),
                    Rule::ToolDenylist,
                ),
            ],
        )
    }

    /// Returns whether a user must first approve a call of the tool, when its component has this
    /// grant. The approval may be required by the agent's definition, by that of an agent that
    /// handed it the work, or by the grant.
    #[must_use]
    pub fn must_ask(&self, tool: &ToolDefinition, grant: &Grant) -> bool {
        [&self.agent.confirm, &self.denies.confirm, &grant.confirm]
            .into_iter()
            .any(|confirm| confirm.asks(tool))
    }

    /// Checks whether the lists let the agent's tools use a capability.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_have(&self, capability: &str) -> Result<(), Denied> {
        let agent = self.agent;
        let allowlist = agent.capability_allowlist.as_ref();
        let denylist = agent.capability_denylist.as_ref();
        refuse_by(
            capability,
            [
                (
                    self.denies.capabilities.matches(capability),
                    Rule::CallersDenylist,
                ),
                (has(denylist, capability), Rule::CapabilityDenylist),
                (lacks(allowlist, capability), Rule::CapabilityAllowlist),
                (
                    !self.permissions.permit_capability(capability),
                    Rule::Permissions,
                ),
            ],
        )
    }

    /// Checks whether the agent may dispatch to another one by name. `granted` is the grant of its
    /// component.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_reach(&self, other: &Definition, granted: &Grant) -> Result<(), Denied> {
        self.may_hand_over(other, granted)?;
        refuse_by(&other.agent_id.0, [(!other.ui_visible, Rule::UiVisible)])
    }

    /// Checks whether the agent may hand work to another agent, visible or not. Agents that the
    /// host's own `delegate` leads to need not be visible. Agents of a user's definition are known
    /// only to that user's other definitions.
    ///
    /// # Errors
    /// The rule that decided.
    pub fn may_hand_over(&self, other: &Definition, granted: &Grant) -> Result<(), Denied> {
        let name = &other.agent_id.0;
        let agent = self.agent;
        refuse_by(
            name,
            [
                (!other.is_known_to(agent), Rule::UiVisible),
                (self.denies.agents.matches(name), Rule::CallersDenylist),
                (
                    has(agent.agent_denylist.as_ref(), name),
                    Rule::AgentDenylist,
                ),
                (
                    lacks(agent.agent_allowlist.as_ref(), name),
                    Rule::AgentAllowlist,
                ),
                (!granted.agents.matches(name), Rule::NotGranted),
            ],
        )
    }

    /// Returns what a call of the tool may do when its component has this grant.
    ///
    /// # Errors
    /// The tool may not be called at all.
    pub fn bound<'a>(
        &self,
        asked: impl Into<ToolRequirements<'a>>,
        grant: &Grant,
    ) -> Result<Bound, Denied> {
        let asked = asked.into();
        self.may_call(asked)?;
        let needed = asked.capabilities_needed();
        let mut names: Vec<String> = granted(grant).chain(needed.iter().cloned()).collect();
        names.sort();
        names.dedup();
        let rulings = names
            .into_iter()
            .map(|capability| self.ruling(asked.tool, &needed, grant, capability))
            .collect();
        Ok(bound(grant, rulings))
    }

    fn ruling(&self, tool: &str, needed: &[String], grant: &Grant, capability: String) -> Ruling {
        let passes = |denied: &Denied| denied.rule == Rule::CapabilityAllowlist && is_system(tool);
        let rule = if !needed.contains(&capability) {
            Rule::NotAsked
        } else if let Some(denied) = self
            .may_have(&capability)
            .err()
            .filter(|denied| !passes(denied))
        {
            denied.rule
        } else if !granted(grant).any(|granted| granted == capability) {
            Rule::NotGranted
        } else {
            Rule::Granted
        };
        Ruling {
            capability,
            allowed: rule == Rule::Granted,
            rule,
        }
    }
}

/// Refuses by the first rule that is broken.
fn refuse_by<const N: usize>(what: &str, rules: [(bool, Rule); N]) -> Result<(), Denied> {
    match rules.into_iter().find(|(broken, _)| *broken) {
        None => Ok(()),
        Some((_, rule)) => Err(Denied {
            rule,
            what: what.to_owned(),
        }),
    }
}

/// Returns whether a list exists and contains a name.
fn has(list: Option<&PatternList>, name: &str) -> bool {
    list.is_some_and(|list| list.matches(name))
}

/// Returns whether a list exists and lacks a name.
fn lacks(list: Option<&PatternList>, name: &str) -> bool {
    list.is_some_and(|list| !list.matches(name))
}

/// The name of the tool that hands work to another agent.
pub const DELEGATE: &str = "delegate";

/// Returns whether an agent's list contains the tool `delegate` and nothing else. Such an agent
/// sees no other tool, and no sign that other tools exist.
#[must_use]
pub fn only_delegates(agent: &Definition) -> bool {
    agent
        .tool_allowlist
        .as_ref()
        .is_some_and(|list| list.0 == [DELEGATE])
}

/// Returns whether a name is reserved for the host's own tools, which bypass allow lists. No
/// component may offer a tool of this name.
#[must_use]
pub fn is_system(tool: &str) -> bool {
    tool.starts_with("system_")
}

/// The capabilities of a grant.
pub fn granted(grant: &Grant) -> impl Iterator<Item = String> {
    let writes = grant
        .directories
        .iter()
        .any(|directory| directory.access == Access::ReadWrite);
    let plain = [
        (capability::FILES_READ, !grant.directories.is_empty()),
        (capability::FILES_WRITE, writes),
        (capability::NET_HTTP, !grant.network.is_empty()),
        (capability::ENV_READ, !grant.environment.is_empty()),
        (capability::SECRETS_USE, !grant.secrets.is_empty()),
    ];
    let plain = plain
        .into_iter()
        .filter(|(_, there)| *there)
        .map(|(name, _)| name.to_owned());
    let buckets = grant.key_value.iter().flat_map(|bucket| {
        let writing = (bucket.access == Access::ReadWrite).then(|| bucket.writing());
        std::iter::once(bucket.reading()).chain(writing)
    });
    plain.chain(buckets)
}

/// A grant reduced to the permitted capabilities: without `files.read` no folders, without
/// `files.write` read-only folders, and so on. Even a hostile tool therefore cannot do for an agent
/// what the agent's lists rule out.
fn bound(grant: &Grant, rulings: Vec<Ruling>) -> Bound {
    let has = |name: &str| {
        rulings
            .iter()
            .any(|ruling| ruling.allowed && ruling.capability == name)
    };
    let capped = |read: bool, write: bool, access: Access| match (read, write) {
        (true, true) => Some(access),
        (true, false) => Some(Access::ReadOnly),
        (false, _) => None,
    };
    let read = has(capability::FILES_READ);
    let write = has(capability::FILES_WRITE);
    let directories = grant.directories.iter().filter_map(|directory| {
        capped(read, write, directory.access).map(|access| DirectoryGrant {
            access,
            ..directory.clone()
        })
    });
    let key_value = grant.key_value.iter().filter_map(|bucket| {
        let access = capped(
            has(&bucket.reading()),
            has(&bucket.writing()),
            bucket.access,
        )?;
        Some(BucketGrant {
            access,
            ..bucket.clone()
        })
    });
    let http = has(capability::NET_HTTP);
    let directories = directories.collect();
    let key_value = key_value.collect();
    Bound {
        directories,
        network: if http {
            grant.network.clone()
        } else {
            Vec::new()
        },
        environment: if has(capability::ENV_READ) {
            grant.environment.clone()
        } else {
            BTreeMap::new()
        },
        key_value,
        secrets: if http && has(capability::SECRETS_USE) {
            grant.secrets.clone()
        } else {
            Vec::new()
        },
        limits: grant.limits,
        rulings,
    }
}

// Requested against granted: the capabilities that a component will be refused, and the grants
// that it does not use.

/// The status of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilityStatus {
    /// Asked for and granted.
    Granted,
    /// Requested and not granted: the tools run without it.
    Refused,
    /// Granted, and requested by no tool.
    Unused,
}

/// One capability of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// The capability.
    pub capability: String,
    /// Its status.
    pub status: CapabilityStatus,
    /// The tools that ask for it.
    pub tools: Vec<String>,
}

/// Every capability that the tools request or the grant contains, by name.
#[must_use]
pub fn review(tools: &[ToolDefinition], grant: &Grant) -> Vec<Reviewed> {
    let given: Vec<String> = granted(grant).collect();
    let needs = |tool: &ToolDefinition| ToolRequirements::from(tool).capabilities_needed();
    let mut names: Vec<String> = tools
        .iter()
        .flat_map(needs)
        .chain(given.iter().cloned())
        .collect();
    names.sort();
    names.dedup();
    let reviewed = names.into_iter().map(|capability| {
        let asking = tools
            .iter()
            .filter(|tool| needs(tool).contains(&capability));
        let asking: Vec<String> = asking.map(|tool| tool.name.clone()).collect();
        let status = match (asking.is_empty(), given.contains(&capability)) {
            (false, true) => CapabilityStatus::Granted,
            (false, false) => CapabilityStatus::Refused,
            (true, _) => CapabilityStatus::Unused,
        };
        Reviewed {
            capability,
            status,
            tools: asking,
        }
    });
    reviewed.collect()
}

#[cfg(test)]
mod tests;

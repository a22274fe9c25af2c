//! Bounds that travel with the work: denials of the agents that handed it down, and permissions of
//! roles, personas and paths.

use crate::access::confirm::Confirm;
use crate::access::grant::PatternList;
use crate::agents::definition::Definition;
use serde::{Deserialize, Serialize};

/// Denials of the agents that handed work down. They bind every agent that does the work for them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Denies {
    /// Tools.
    #[serde(default, skip_serializing_if = "PatternList::is_empty")]
    pub tools: PatternList,
    /// Capabilities.
    #[serde(default, skip_serializing_if = "PatternList::is_empty")]
    pub capabilities: PatternList,
    /// Agents.
    #[serde(default, skip_serializing_if = "PatternList::is_empty")]
    pub agents: PatternList,
    /// Tools that need a user's approval.
    #[serde(default, skip_serializing_if = "Confirm::is_nothing")]
    pub confirm: Confirm,
}

impl Denies {
    /// These denials, and those of one more agent of the chain.
    #[must_use]
    pub fn and_of(&self, agent: &Definition) -> Self {
        Self {
            tools: self.tools.and(agent.tool_denylist.as_ref()),
            capabilities: self.capabilities.and(agent.capability_denylist.as_ref()),
            agents: self.agents.and(agent.agent_denylist.as_ref()),
            confirm: self.confirm.both(&agent.confirm),
        }
    }

    /// Returns the denials of both.
    #[must_use]
    pub fn both(&self, others: &Self) -> Self {
        Self {
            tools: self.tools.and(Some(&others.tools)),
            capabilities: self.capabilities.and(Some(&others.capabilities)),
            agents: self.agents.and(Some(&others.agents)),
            confirm: self.confirm.both(&others.confirm),
        }
    }

    /// Returns whether there are no denials.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && self.capabilities.is_empty()
            && self.agents.is_empty()
            && self.confirm.is_nothing()
    }
}

/// Permissions of a role, a persona or a path. Unlike an agent's own allow lists they travel: they
/// limit every agent that works for a turn, in every turn that follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Permissions {
    /// Tools; without it, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<PatternList>,
    /// Capabilities; without it, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<PatternList>,
    /// Models; without it, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<PatternList>,
    /// Further permissions: only what all of them permit is permitted. Their own `and` is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and: Vec<Self>,
}

impl Permissions {
    /// Returns whether they permit everything.
    #[must_use]
    pub fn are_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sets of permissions that are not among those of others.
    #[must_use]
    pub fn beyond(&self, others: &Self) -> Self {
        let others: Vec<Self> = others.each().map(Self::alone).collect();
        let each = self.each().map(Self::alone);
        each.filter(|one| !others.contains(one))
            .fold(Self::default(), |all, one| all.both(&one))
    }

    /// Returns the permissions of both, without duplicates.
    #[must_use]
    pub fn both(&self, others: &Self) -> Self {
        let mut each: Vec<Self> = Vec::new();
        for one in self.each().chain(others.each()) {
            let one = one.alone();
            if !one.are_all() && !each.contains(&one) {
                each.push(one);
            }
        }
        let mut each = each.into_iter();
        let first = each.next().unwrap_or_default();
        Self {
            and: each.collect(),
            ..first
        }
    }

    /// Returns whether all of them permit a tool.
    #[must_use]
    pub fn permit_tool(&self, tool: &str) -> bool {
        self.each()
            .filter_map(|one| one.tools.as_ref())
            .all(|list| list.matches(tool))
    }

    /// Returns whether all of them permit a capability.
    #[must_use]
    pub fn permit_capability(&self, capability: &str) -> bool {
        self.each()
            .filter_map(|one| one.capabilities.as_ref())
            .all(|list| list.matches(capability))
    }

    /// Returns whether all of them permit a model, by its alias.
    #[must_use]
    pub fn permit_model(&self, alias: &str) -> bool {
        self.each()
            .filter_map(|one| one.models.as_ref())
            .all(|list| list.matches(alias))
    }

    /// These permissions without those in `and`.
    fn alone(&self) -> Self {
        Self {
            and: Vec::new(),
            ..self.clone()
        }
    }

    /// Each set of permissions, these first.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.and)
    }
}

//! Explanation of a decision: every list and grant that applies to a call, in the order in which
//! they are checked.

use super::{Caller, Needed, ToolRequirements, granted, is_system, only_delegates};
use crate::access::grant::{Grant, PatternList};
use crate::access::ruling::Rule;
use crate::agents::skill::BASH;
use serde::{Deserialize, Serialize};

/// The verdict of one list or grant on one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Says {
    /// No such list exists, so it forbids nothing.
    Nothing,
    /// It allows the name, by this pattern if any.
    Passes {
        /// The pattern.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// It forbids the name, by this pattern if any.
    Stops {
        /// The pattern.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
}

/// One check of one list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCheck {
    /// The list.
    pub rule: Rule,
    /// The name of the tool or the capability.
    pub name: String,
    /// Its verdict.
    #[serde(flatten)]
    pub says: Says,
    /// The capability that implies this one, if the tool does not name it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

impl ListCheck {
    /// Returns whether it decides against the call.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self.says, Says::Stops { .. })
    }
}

impl Caller<'_> {
    /// Returns every list and grant that applies to a tool call. They decide whether the agent may
    /// call it, and what the call may use. The first list that forbids a name decides. A missing
    /// capability does not forbid the call: the call runs without it.
    #[must_use]
    pub fn explain<'a>(
        &self,
        asked: impl Into<ToolRequirements<'a>>,
        grant: &Grant,
    ) -> Vec<ListCheck> {
        let asked = asked.into();
        let tool = asked.tool;
        let system = is_system(tool) && !only_delegates(self.agent);
        let mut checks = vec![
            deny(Rule::CallersDenylist, Some(&self.denies.tools), tool),
            deny(Rule::ToolDenylist, self.agent.tool_denylist.as_ref(), tool),
            if system {
                passed(Rule::System, tool)
            } else {
                allow(
                    Rule::ToolAllowlist,
                    self.agent.tool_allowlist.as_ref(),
                    tool,
                )
            },
        ];
        checks.extend(
            self.permissions
                .each()
                .map(|one| allow(Rule::Permissions, one.tools.as_ref(), tool)),
        );
        for Needed { name, with } in asked.needed() {
            let listed = self.agent.capability_allowlist.as_ref();
            let says = if granted(grant).any(|granted| granted == name) {
                Says::Passes { pattern: None }
            } else {
                Says::Stops { pattern: None }
            };
            let about = [
                deny(
                    Rule::CallersDenylist,
                    Some(&self.denies.capabilities),
                    &name,
                ),
                deny(
                    Rule::CapabilityDenylist,
                    self.agent.capability_denylist.as_ref(),
                    &name,
                ),
                if system {
                    passed(Rule::System, &name)
                } else {
                    allow(Rule::CapabilityAllowlist, listed, &name)
                },
            ];
            let permitted = self
                .permissions
                .each()
                .map(|one| allow(Rule::Permissions, one.capabilities.as_ref(), &name));
            let about =
                about
                    .into_iter()
                    .chain(permitted)
                    .chain([inspect(Rule::NotGranted, &name, says)]);
            checks.extend(about.map(|check| ListCheck {
                with: with.clone(),
                ..check
            }));
        }
        checks
    }

    /// Returns every list that applies to the use of skills by command lines. Each call of a line
    /// is decided by the lists for its own tool.
    #[must_use]
    pub fn explain_skills(&self) -> Vec<ListCheck> {
        vec![
            deny(Rule::CallersDenylist, Some(&self.denies.tools), BASH),
            deny(Rule::ToolDenylist, self.agent.tool_denylist.as_ref(), BASH),
        ]
    }
}

fn passed(rule: Rule, name: &str) -> ListCheck {
    inspect(rule, name, Says::Passes { pattern: None })
}

fn inspect(rule: Rule, name: &str, says: Says) -> ListCheck {
    ListCheck {
        rule,
        name: name.to_owned(),
        says,
        with: None,
    }
}

fn deny(rule: Rule, list: Option<&PatternList>, name: &str) -> ListCheck {
    let says = match list.filter(|list| !list.is_empty()) {
        None => Says::Nothing,
        Some(list) => match list.matching(name) {
            Some(pattern) => Says::Stops {
                pattern: Some(pattern.to_owned()),
            },
            None => Says::Passes { pattern: None },
        },
    };
    inspect(rule, name, says)
}

fn allow(rule: Rule, list: Option<&PatternList>, name: &str) -> ListCheck {
    let says = match list {
        None => Says::Nothing,
        Some(list) => match list.matching(name) {
            Some(pattern) => Says::Passes {
                pattern: Some(pattern.to_owned()),
            },
            None => Says::Stops { pattern: None },
        },
    };
    inspect(rule, name, says)
}

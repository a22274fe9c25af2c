//! Work that agents give each other: the switches of the host's tools for it, and delegations.

use super::finding::Finding;
use super::patterns;
use domain::delegate::{self, CacheLimits};
use domain::direct_message;
use domain::grant::PatternList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The key of the list in the configuration.
const DISABLED: &str = "agentTools.disabled";

/// Settings of the host's own tools with which agents reach each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct AgentToolsConfig {
    /// The tools that no agent has, whatever its lists say: `agents_message`, `dispatch_to_agent`,
    /// `reply_to_caller` and `delegate`, or patterns such as `agents_*`. Tools of components are
    /// not switched off by it.
    pub(crate) disabled: PatternList,
}

/// Settings of delegations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DelegationConfig {
    /// The cache for results of operations that only read. Off without it. A result is used again
    /// for the same operation and parameters of the same agent, user and authority, until it is too
    /// old, something is written for that user, a session or an agent is purged, or the
    /// configuration or a component changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheLimits>,
}

impl AgentToolsConfig {
    /// Finds patterns that cannot match, or match none of these tools.
    pub(crate) fn check(&self) -> Vec<Finding> {
        let known: BTreeSet<&str> = direct_message::NAMES
            .into_iter()
            .chain([delegate::NAME])
            .collect();
        let list = Some(&self.disabled);
        let mut findings = patterns::entries(DISABLED, list);
        if findings.is_empty() {
            let what = "tool of the host's that reaches agents";
            findings = patterns::nothing(DISABLED, list, what, &known);
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::AgentToolsConfig;
    use serde_json::json;

    #[test]
    fn patterns_that_switch_nothing_off_are_told() {
        let check = |disabled| {
            let config: AgentToolsConfig =
                serde_json::from_value(json!({ "disabled": disabled })).unwrap();
            config.check().len()
        };
        for (disabled, findings) in [
            (json!([]), 0),
            (json!(["agents_*", "delegate"]), 0),
            (json!(["agent_message"]), 1),
            (json!(["read_file"]), 1),
            (json!([" agents_message"]), 1),
        ] {
            assert_eq!(check(disabled.clone()), findings, "{disabled}");
        }
    }
}

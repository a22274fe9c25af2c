//! Patterns in agents' lists that match nothing there is: a slip of the pen in a deny list denies
//! nothing.

use super::finding::Finding;
use super::patterns;
use domain::authority::Asked;
use domain::definition::Definition;
use domain::delegate::{self, Target};
use domain::grant::PatternList;
use domain::talk;
use domain::tool::ToolDefinition;
use std::collections::BTreeSet;

/// A warning for each pattern of each agent's lists of tools, capabilities and agents that matches
/// none. `tools` are those of all components. The lists of skills are not looked at: there are none
/// in this version, which is a finding of its own.
pub(crate) fn unmatched<'a>(
    agents: &'a [Definition],
    tools: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Vec<Finding> {
    let tools: Vec<&ToolDefinition> = tools.into_iter().collect();
    let mut names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let of_components = names.clone();
    let needed: Vec<String> = tools
        .iter()
        .flat_map(|tool| Asked::from(*tool).capabilities_needed())
        .collect();
    let capabilities: BTreeSet<&str> = needed.iter().map(String::as_str).collect();
    let ids: BTreeSet<&str> = agents
        .iter()
        .map(|agent| agent.agent_id.0.as_str())
        .collect();
    // The host builds it for whoever there is to delegate to.
    names.extend(
        Target::ALL
            .iter()
            .any(|target| ids.contains(target.as_str()))
            .then_some(delegate::NAME),
    );
    // And these for whoever may have somebody to talk to.
    names.extend(talk::NAMES.into_iter().filter(|_| agents.len() > 1));
    let mut findings = Vec::new();
    for (index, agent) in agents.iter().enumerate() {
        let confirmed = Some(agent.confirm.tools.clone());
        for (list, patterns, what, known) in [
            ("toolAllowlist", &agent.tool_allowlist, "tool", &names),
            ("toolDenylist", &agent.tool_denylist, "tool", &names),
            (
                "capabilityAllowlist",
                &agent.capability_allowlist,
                "capability of a tool",
                &capabilities,
            ),
            (
                "capabilityDenylist",
                &agent.capability_denylist,
                "capability of a tool",
                &capabilities,
            ),
            ("confirm", &confirmed, "tool of a component", &of_components),
            ("agentAllowlist", &agent.agent_allowlist, "agent", &ids),
            ("agentDenylist", &agent.agent_denylist, "agent", &ids),
        ] {
            findings.extend(patterns::nothing(
                &format!("agents[{index}].{list}"),
                patterns.as_ref(),
                what,
                known,
            ));
        }
    }
    findings
}

/// Returns whether a pattern matches one of the names. A pattern for everything always does, even
/// without names.
pub(super) fn matches_any(pattern: &str, names: &BTreeSet<&str>) -> bool {
    let everything = !pattern.is_empty() && pattern.chars().all(|c| c == '*');
    let list = PatternList(vec![pattern.to_owned()]);
    everything || names.iter().any(|name| list.matches(name))
}

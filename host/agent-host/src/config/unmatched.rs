//! Patterns in agents' lists that match nothing there is: a slip of the pen in a deny list denies
//! nothing.

use super::finding::Finding;
use super::patterns;
use domain::authority::ToolRequirements;
use domain::definition::{Definition, ToolExposure};
use domain::delegate::{self, Target};
use domain::direct_message;
use domain::grant::PatternList;
use domain::memory;
use domain::panels;
use domain::skill;
use domain::tool::ToolDefinition;
use domain::trigger;
use std::collections::BTreeSet;

/// A warning for each pattern of each agent's lists of tools, capabilities and agents that matches
/// none, and for each agent that has destructive tools confirmed where there are none. `tools` are
/// those of all components. The lists of skills are looked at with the configuration alone.
pub(crate) fn unmatched<'a>(
    agents: &'a [Definition],
    tools: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Vec<Finding> {
    let tools: Vec<&ToolDefinition> = tools.into_iter().collect();
    let of_components: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let names = with_own_tools(agents, of_components.clone());
    let needed: Vec<String> = tools
        .iter()
        .flat_map(|tool| ToolRequirements::from(*tool).capabilities_needed())
        // The host's own tools for triggers need it.
        .chain(are_triggers_granted(agents).then(|| trigger::TRIGGERS_WRITE.to_owned()))
        .collect();
    let capabilities: BTreeSet<&str> = needed.iter().map(String::as_str).collect();
    let ids: BTreeSet<&str> = agents
        .iter()
        .map(|agent| agent.agent_id.0.as_str())
        .collect();
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
        findings.extend(patterns::none_destructive(
            &format!("agents[{index}].confirm"),
            &agent.confirm,
            "tool of a component",
            tools.iter().copied(),
        ));
    }
    findings
}

/// Returns whether any of these agents may set itself triggers.
fn are_triggers_granted(agents: &[Definition]) -> bool {
    agents
        .iter()
        .any(|agent| trigger::are_triggers_granted(agent.capability_allowlist.as_ref()))
}

/// Returns the names of tools together with those of the tools that the host itself offers to these
/// agents.
pub(super) fn with_own_tools<'a>(
    agents: &[Definition],
    mut names: BTreeSet<&'a str>,
) -> BTreeSet<&'a str> {
    // The host builds it for whoever there is to delegate to.
    let is_target = |agent: &Definition| {
        let mut targets = Target::ALL.iter();
        targets.any(|target| target.as_str() == agent.agent_id.0)
    };
    names.extend(agents.iter().any(is_target).then_some(delegate::NAME));
    // And these for whoever may have somebody to talk to.
    names.extend(
        direct_message::NAMES
            .into_iter()
            .filter(|_| agents.len() > 1),
    );
    // And these for whoever lists them.
    let lists = |tool: &&str| {
        let mut lists = agents.iter().map(|agent| agent.tool_allowlist.as_ref());
        lists.any(|list| memory::is_listed(list, tool))
    };
    names.extend(memory::NAMES.into_iter().filter(lists));
    // And these for whoever names them.
    names.extend(panels::NAMES);
    // And these for whoever is granted them.
    let of_triggers = trigger::OWN_TOOLS.into_iter();
    names.extend(of_triggers.filter(|_| are_triggers_granted(agents)));
    // And this for whoever is offered skills.
    let has_skills = |agent: &Definition| agent.tool_exposure != ToolExposure::Tools;
    names.extend(agents.iter().any(has_skills).then_some(skill::BASH));
    names
}

/// Returns whether a pattern matches one of the names. A pattern for everything always does, even
/// without names.
pub(super) fn matches_any(pattern: &str, names: &BTreeSet<&str>) -> bool {
    let everything = !pattern.is_empty() && pattern.chars().all(|c| c == '*');
    let list = PatternList(vec![pattern.to_owned()]);
    everything || names.iter().any(|name| list.matches(name))
}

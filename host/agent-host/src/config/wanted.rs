//! Tools that an agent's component says it is of little use without, and that nothing offers.

use super::finding::{Finding, warning};
use super::key::nearest;
use super::unmatched::with_own_tools;
use broker::Entry;
use domain::definition::Definition;
use domain::shown::visible;
use domain::tool::ToolDefinition;
use runtime::Described;
use std::collections::BTreeSet;

/// Bytes that are shown of the name of a wanted tool.
const SHOWN_BYTES_MAX: usize = 80;

/// Warns of each agent whose component wants a tool that no component and not the host offers.
pub(crate) fn wanted<'a>(
    agents: &[Definition],
    entries: impl IntoIterator<Item = &'a Entry>,
    tools: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Vec<Finding> {
    let names: BTreeSet<&str> = tools.into_iter().map(|tool| tool.name.as_str()).collect();
    let names = with_own_tools(agents, names);
    let mut findings = Vec::new();
    for entry in entries {
        let Described::Agent(description) = entry.component.describes() else {
            continue;
        };
        for (index, agent) in agents.iter().enumerate() {
            if agent.component == entry.name {
                findings.extend(without(index, &description.wants, &names));
            }
        }
    }
    findings
}

/// Returns a finding for each wanted tool that is not among the names.
fn without(agent: usize, wants: &[String], names: &BTreeSet<&str>) -> Vec<Finding> {
    let missing = wants.iter().filter(|want| !names.contains(want.as_str()));
    let told = missing.map(|want| {
        let known: Vec<&str> = names.iter().copied().collect();
        let fix = match nearest(want, &known) {
            Some(nearest) => format!("the nearest is `{nearest}`"),
            None => "add the component that has it to `components`".to_owned(),
        };
        let message = format!(
            "its component wants the tool `{}`, which nothing offers; {fix}",
            visible(want, SHOWN_BYTES_MAX)
        );
        warning(format!("agents[{agent}].component"), message)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_wanted_tool_that_nothing_offers_is_told_with_the_agent() {
        let wants = ["delegate", "read_fiel", "teleport"].map(str::to_owned);
        let told: Vec<String> = without(2, &wants, &["delegate", "read_file"].into())
            .into_iter()
            .map(|finding| format!("{}: {}", finding.key, finding.message))
            .collect();
        assert_eq!(
            told,
            [
                "agents[2].component: its component wants the tool `read_fiel`, which nothing \
                 offers; the nearest is `read_file`",
                "agents[2].component: its component wants the tool `teleport`, which nothing \
                 offers; add the component that has it to `components`",
            ]
        );
    }
}

//! Tools that an agent's component says it is of little use without, and that nothing offers.

use super::finding::{Finding, warning};
use super::key::nearest;
use super::unmatched::with_own_tools;
use broker::Entry;
use domain::definition::Definition;
use domain::delegate::{self, Target};
use domain::grant::PatternList;
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
    let offered: BTreeSet<&str> = tools.into_iter().map(|tool| tool.name.as_str()).collect();
    let names = with_own_tools(agents, offered.clone());
    let mut findings = Vec::new();
    for entry in entries {
        let Described::Agent(description) = entry.component.describes() else {
            continue;
        };
        for (index, agent) in agents.iter().enumerate() {
            if agent.component == entry.name {
                let wants = missed(&description.wants, agent, &offered);
                findings.extend(without(index, &wants, &names));
            }
        }
    }
    findings
}

/// Returns the wanted tools that an agent would miss. An operator who leaves one out of its list,
/// or denies it, does not miss it. `delegate` is missed only by an agent that may call no tool of
/// any component.
fn missed<'a>(wants: &'a [String], agent: &Definition, offered: &BTreeSet<&str>) -> Vec<&'a str> {
    let may_call = |tool: &str| {
        let is_in = |list: &PatternList| list.matches(tool);
        agent.tool_allowlist.as_ref().is_none_or(is_in)
            && !agent.tool_denylist.as_ref().is_some_and(is_in)
    };
    let has_others = offered.iter().any(|tool| may_call(tool));
    let is_missed = |want: &&str| may_call(want) && !(*want == delegate::NAME && has_others);
    wants.iter().map(String::as_str).filter(is_missed).collect()
}

/// Returns a finding for each wanted tool that is not among the names.
fn without(agent: usize, wants: &[&str], names: &BTreeSet<&str>) -> Vec<Finding> {
    let missing = wants.iter().filter(|want| !names.contains(*want));
    let reported = missing.map(|want| {
        let known: Vec<&str> = names.iter().copied().collect();
        let fix = match nearest(want, &known) {
            Some(nearest) => format!("the nearest is `{nearest}`"),
            None if *want == delegate::NAME => {
                let targets = Target::ALL.map(|target| format!("`{}`", target.as_str()));
                let targets = targets.join(", ");
                format!("the host offers it beside an agent whose `agentId` is one of {targets}")
            }
            None => "add the component that has it to `components`".to_owned(),
        };
        let message = format!(
            "its component wants the tool `{}`, which nothing offers; {fix}",
            visible(want, SHOWN_BYTES_MAX)
        );
        warning(format!("agents[{agent}].component"), message)
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use super::{missed, without};
    use domain::definition::Definition;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    #[test]
    fn a_wanted_tool_that_nothing_offers_is_told_with_the_agent() {
        let wants = ["delegate", "read_fiel", "teleport"];
        let reported: Vec<String> = without(2, &wants, &["delegate", "read_file"].into())
            .into_iter()
            .map(|finding| format!("{}: {}", finding.key, finding.message))
            .collect();
        assert_eq!(
            reported,
            [
                "agents[2].component: its component wants the tool `read_fiel`, which nothing \
                 offers; the nearest is `read_file`",
                "agents[2].component: its component wants the tool `teleport`, which nothing \
                 offers; add the component that has it to `components`",
            ]
        );
    }

    #[test]
    fn a_tool_that_an_agents_list_leaves_out_is_not_missed() {
        let wants = ["delegate", "read_file"].map(str::to_owned);
        let all = ["delegate", "read_file"].as_slice();
        let file = ["read_file"].as_slice();
        for (allows, denies, offered, expected) in [
            (json!([]), json!([]), [].as_slice(), [].as_slice()),
            (json!(["read_*"]), json!([]), &[], file),
            (
                json!(["delegate"]),
                json!([]),
                &["list_files"],
                &["delegate"],
            ),
            (Value::Null, json!([]), &[], all),
            (Value::Null, json!(["delegate"]), &[], file),
            // The agent has other tools to work with.
            (Value::Null, json!([]), &["list_files"], file),
            (Value::Null, json!(["list_*"]), &["list_files"], all),
        ] {
            let agent = json!({
                "agentId": "a", "displayName": "A",
                "toolAllowlist": allows, "toolDenylist": denies,
            });
            let read: Definition = serde_json::from_value(agent.clone()).unwrap();
            let offered: BTreeSet<&str> = offered.iter().copied().collect();
            assert_eq!(missed(&wants, &read, &offered), expected, "{agent}");
        }
    }

    #[test]
    fn the_tool_of_the_host_itself_is_told_with_the_agents_that_bring_it() {
        let reported = without(0, &["delegate"], &["fetch_url"].into());
        let message = &reported[0].message;
        assert!(
            message.contains("the host offers it beside an agent") && message.contains("`worker`"),
            "{message}"
        );
    }
}

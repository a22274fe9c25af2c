//! Lists of names and patterns: entries that match nothing; tools that a component
//! wants and nothing offers; models and agents that a component is granted for nothing.

use super::component::ComponentConfig;
use super::finding::{Finding, closest, error, nearest, warning};
use broker::Entry;
use domain::authority::ToolRequirements;
use domain::confirm::Confirm;
use domain::definition::{Definition, ToolExposure};
use domain::delegate::Target;
use domain::grant::capability::Buckets;
use domain::grant::{PatternList, capability};
use domain::shown::visible;
use domain::tool::ToolDefinition;
use domain::{delegate, direct_message, memory, panels, skill, trigger};
use llm::ModelConfig;
use runtime::Described;
use std::collections::{BTreeMap, BTreeSet};

/// Entries without a `*` that are the name of no capability: in a deny list they deny nothing.
pub(super) fn capabilities(key: &str, list: Option<&PatternList>) -> Vec<Finding> {
    let entries = list.into_iter().flat_map(|list| &list.0).enumerate();
    let wrong = entries
        .filter(|(_, entry)| !entry.contains('*') && entry.trim() == *entry && !entry.is_empty())
        .filter_map(|(index, entry)| {
            let unknown = capability::check(entry, Buckets::Imported).err()?;
            let message = format!(
                "`{entry}` is no capability of this host; the nearest is `{}`",
                unknown.nearest
            );
            Some(error(format!("{key}[{index}]"), message))
        });
    wrong.collect()
}

/// A warning for each entry that matches no alias of a configured model.
pub(super) fn models(
    key: &str,
    list: Option<&PatternList>,
    models: &BTreeMap<String, ModelConfig>,
) -> Vec<Finding> {
    let known: BTreeSet<&str> = models.keys().map(String::as_str).collect();
    nothing(key, list, "model", &known)
}

/// A warning for each entry that matches none of the names.
pub(super) fn nothing(
    key: &str,
    list: Option<&PatternList>,
    what: &str,
    known: &BTreeSet<&str>,
) -> Vec<Finding> {
    let entries = list.into_iter().flat_map(|list| &list.0).enumerate();
    let unmatched = entries
        // The schema says what is wrong with the others.
        .filter(|(_, pattern)| !pattern.is_empty() && pattern.trim() == *pattern)
        .filter(|(_, pattern)| !matches_any(pattern, known))
        .map(|(index, pattern)| {
            let nearest = match closest(pattern, known.iter().copied()) {
                Some(nearest) => format!("the nearest is `{nearest}`"),
                None => "there is none".to_owned(),
            };
            warning(
                format!("{key}[{index}]"),
                format!("`{pattern}` matches no {what}; {nearest}"),
            )
        });
    unmatched.collect()
}

/// A warning where tools that declare themselves destructive are to be confirmed and there are
/// none.
pub(super) fn none_destructive<'a>(
    key: &str,
    confirm: &Confirm,
    what: &str,
    tools: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Option<Finding> {
    let is_any = tools.into_iter().any(|tool| tool.destructive);
    (confirm.destructive && !is_any).then(|| {
        let message = format!(
            "it asks about nothing: no {what} declares itself destructive; list the tools to be \
             confirmed, such as [\"delete_*\"]"
        );
        warning(key, message)
    })
}

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
            findings.extend(nothing(
                &format!("agents[{index}].{list}"),
                patterns.as_ref(),
                what,
                known,
            ));
        }
        findings.extend(none_destructive(
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

/// Warns of each agent component that drives an agent and is granted no model. Also warns of each
/// other component for which the configuration names models or agents, or lets a user confirm calls
/// of tools that it does not have.
pub(crate) fn mute<'a>(
    agents: &[Definition],
    components: &BTreeMap<String, ComponentConfig>,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Entry {
        name,
        component,
        grant,
        ..
    } in entries
    {
        match component.describes() {
            Described::Agent(_)
                if grant.models.is_empty()
                    && agents
                        .iter()
                        .any(|agent| agent.component == *name && agent.program().is_none()) =>
            {
                let message = "it drives an agent and may ask no model; name the models that it may ask, or \
                     all of them with models = [\"*\"]";
                findings.push(warning(format!("components.{name}.models"), message));
            }
            Described::Agent(_) => {}
            Described::Tools(tools) => {
                if let Some(config) = components.get(name) {
                    findings.extend(for_nothing(name, config));
                    findings.extend(confirms_nothing(name, config, tools));
                }
            }
            Described::Trigger(_) | Described::Connector(_) => {
                if let Some(config) = components.get(name) {
                    findings.extend(for_nothing(name, config));
                    findings.extend(confirms_nothing(name, config, &[]));
                }
            }
        }
    }
    findings
}

/// Returns findings about grants that a component which is no agent cannot use.
fn for_nothing(name: &str, config: &ComponentConfig) -> Vec<Finding> {
    let named = [("models", &config.models), ("agents", &config.agents)]
        .into_iter()
        .filter(|(_, list)| list.is_some());
    let reported = named.map(|(key, _)| {
        let message = format!(
            "it is no agent, and only a component that is one has use for `{key}`; take it out"
        );
        warning(format!("components.{name}.{key}"), message)
    });
    reported.collect()
}

/// Returns findings about tools to be confirmed of which the component has none.
fn confirms_nothing(
    name: &str,
    config: &ComponentConfig,
    tools: &[ToolDefinition],
) -> Vec<Finding> {
    let own: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let key = format!("components.{name}.confirm");
    let what = "tool of this component";
    let mut findings = nothing(&key, Some(&config.confirm.tools), what, &own);
    findings.extend(none_destructive(&key, &config.confirm, what, tools));
    findings
}

#[cfg(test)]
mod tests {
    use super::{confirms_nothing, for_nothing, missed, without};
    use crate::config::ComponentConfig;
    use domain::confirm::Confirm;
    use domain::definition::Definition;
    use domain::grant::PatternList;
    use domain::tool::ToolDefinition;
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

    fn tool(name: &str, destructive: bool) -> ToolDefinition {
        let tool = json!({ "name": name, "description": "", "arguments": {}, "effect": "idempotent", "destructive": destructive });
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn a_component_of_tools_has_no_use_for_models_and_agents() {
        let config = ComponentConfig {
            models: Some(PatternList::everything()),
            ..ComponentConfig::default()
        };
        let keys: Vec<String> = for_nothing("web", &config)
            .into_iter()
            .map(|found| found.key)
            .collect();
        assert_eq!(keys, ["components.web.models"]);
        assert_eq!(for_nothing("web", &ComponentConfig::default()), []);
    }

    #[test]
    fn a_slip_in_what_a_component_lets_be_confirmed_is_told_with_the_nearest_tool() {
        let tools = [tool("delete_file", false), tool("read_file", false)];
        let confirming = |patterns: &[&str]| ComponentConfig {
            confirm: Confirm {
                destructive: false,
                tools: PatternList(
                    patterns
                        .iter()
                        .map(|pattern| (*pattern).to_owned())
                        .collect(),
                ),
            },
            ..ComponentConfig::default()
        };
        let slips = confirming(&["delete_*", "delte_file", "write_*"]);
        let found: Vec<String> = confirms_nothing("files", &slips, &tools)
            .into_iter()
            .map(|found| format!("{}: {}", found.key, found.message))
            .collect();
        assert_eq!(
            found,
            [
                "components.files.confirm[1]: `delte_file` matches no tool of this component; the \
                 nearest is `delete_file`",
                "components.files.confirm[2]: `write_*` matches no tool of this component; the \
                 nearest is `read_file`",
            ]
        );
        for sound in [
            confirming(&["*"]),
            confirming(&["read_file"]),
            confirming(&[]),
        ] {
            assert_eq!(confirms_nothing("files", &sound, &tools), []);
        }
    }

    #[test]
    fn destructive_tools_to_be_confirmed_in_a_component_that_has_none_are_told() {
        let destructive = ComponentConfig {
            confirm: Confirm {
                destructive: true,
                tools: PatternList::default(),
            },
            ..ComponentConfig::default()
        };
        let harmless = [tool("delete_file", false), tool("read_file", false)];
        let found: Vec<String> = confirms_nothing("files", &destructive, &harmless)
            .into_iter()
            .map(|found| format!("{}: {}", found.key, found.message))
            .collect();
        assert_eq!(
            found,
            [
                "components.files.confirm: it asks about nothing: no tool of this component \
                 declares itself destructive; list the tools to be confirmed, such as \
                 [\"delete_*\"]"
            ]
        );
        let one = [tool("delete_file", true), tool("read_file", false)];
        assert_eq!(confirms_nothing("files", &destructive, &one), []);
        assert_eq!(
            confirms_nothing("files", &ComponentConfig::default(), &harmless),
            []
        );
    }
}

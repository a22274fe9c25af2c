//! Models and agents that a component is granted for nothing, or not and has nothing to say
//! without, and what of `confirm` asks about none of its tools.

use super::component::ComponentConfig;
use super::finding::{Finding, warning};
use super::patterns;
use broker::Entry;
use domain::definition::Definition;
use domain::tool::ToolDefinition;
use runtime::Described;
use std::collections::{BTreeMap, BTreeSet};

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
    let mut findings = patterns::nothing(&key, Some(&config.confirm.tools), what, &own);
    findings.extend(patterns::none_destructive(
        &key,
        &config.confirm,
        what,
        tools,
    ));
    findings
}

#[cfg(test)]
mod tests {
    use super::{confirms_nothing, for_nothing};
    use crate::config::ComponentConfig;
    use domain::confirm::Confirm;
    use domain::grant::PatternList;
    use domain::tool::ToolDefinition;
    use serde_json::json;

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

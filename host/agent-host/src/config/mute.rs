//! Models and agents that a component is granted for nothing, or not and has nothing to say
//! without.

use super::component::ComponentConfig;
use super::finding::{Finding, warning};
use broker::Entry;
use domain::definition::Definition;
use runtime::Described;
use std::collections::BTreeMap;

/// Warns of each agent component that drives an agent and is granted no model. Also warns of each
/// tool component for which the configuration names models or agents.
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
                    && agents.iter().any(|agent| agent.component == *name) =>
            {
                let message = "it drives an agent and may ask no model; name the models that it may ask, or \
                     all of them with models = [\"*\"]";
                findings.push(warning(format!("components.{name}.models"), message));
            }
            Described::Agent(_) => {}
            Described::Tools(_) => findings.extend(
                components
                    .get(name)
                    .into_iter()
                    .flat_map(|config| for_nothing(name, config)),
            ),
        }
    }
    findings
}

/// Returns findings about grants that a tool component cannot use.
fn for_nothing(name: &str, config: &ComponentConfig) -> Vec<Finding> {
    let named = [("models", &config.models), ("agents", &config.agents)]
        .into_iter()
        .filter(|(_, list)| list.is_some());
    let told = named.map(|(key, _)| {
        let message = format!(
            "it offers tools, and only a component that is an agent has use for `{key}`; take it \
             out"
        );
        warning(format!("components.{name}.{key}"), message)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::for_nothing;
    use crate::config::ComponentConfig;
    use domain::grant::PatternList;

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
}

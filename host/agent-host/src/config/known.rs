//! Components and agents that the configuration names and does not have.

use super::component::{BUILT_INS, built_in_names};
use super::document::Config;
use super::finding::{meant, meant_of};
use domain::definition::DefinitionId;

/// Returns the message about a component that is neither configured nor built in; none for one
/// that there is.
pub(super) fn no_component(config: &Config, component: &str) -> Option<String> {
    if BUILT_INS.contains(&component) || config.components.contains_key(component) {
        return None;
    }
    let known = config.components.keys().map(String::as_str);
    let known: Vec<&str> = known.chain(BUILT_INS).collect();
    let fix = meant(component, &known, || {
        let built_in = built_in_names();
        format!("add it to `components`, or name one of {built_in}")
    });
    Some(format!("there is no component `{component}`; {fix}"))
}

/// Returns the message about an agent that the configuration does not have; none for one that it
/// has.
pub(super) fn no_agent(config: &Config, agent: &DefinitionId) -> Option<String> {
    let agents = config.agents.iter().map(|agent| &agent.agent_id);
    if agents.clone().any(|known| known == agent) {
        return None;
    }
    let known: Vec<&str> = agents.map(|agent| agent.0.as_str()).collect();
    let fix = meant_of(&agent.0, &known, || {
        "write `[[agents]]` with an `agentId` and a `displayName`".to_owned()
    });
    Some(format!("there is no agent `{agent}` in `agents`; {fix}"))
}

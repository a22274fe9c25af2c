//! Definitions in public form: the agents of the configuration, and what their lists say.

use domain::confirm::Confirm;
use domain::definition::Definition;
use domain::grant::PatternList;
use serde::Serialize;

/// An agent of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Definition)]
pub struct DefinitionView {
    /// Its `agentId`.
    pub definition: String,
    /// The component that drives it.
    pub component: String,
    /// True if users and other agents see it.
    pub ui_visible: bool,
    /// Its lists.
    #[schema(value_type = Object)]
    pub lists: Lists,
}

/// The lists of an agent, as the configuration writes them. One that is missing is null: an allow
/// list then allows everything, a deny list denies nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lists {
    /// Tools that it may use.
    pub tool_allowlist: Option<PatternList>,
    /// Tools that it may not use.
    pub tool_denylist: Option<PatternList>,
    /// Capabilities that its tools may use on its behalf.
    pub capability_allowlist: Option<PatternList>,
    /// Capabilities that they may not use.
    pub capability_denylist: Option<PatternList>,
    /// Agents that it may dispatch to.
    pub agent_allowlist: Option<PatternList>,
    /// Agents that it may not dispatch to.
    pub agent_denylist: Option<PatternList>,
    /// Tools that it calls only when a user has agreed to that very call; null for none.
    pub confirm: Option<Confirm>,
}

/// Returns the part of a definition that decides what its agent may do.
#[must_use]
pub fn definition(definition: &Definition) -> DefinitionView {
    DefinitionView {
        definition: definition.agent_id.to_string(),
        component: definition.component.clone(),
        ui_visible: definition.ui_visible,
        lists: Lists {
            tool_allowlist: definition.tool_allowlist.clone(),
            tool_denylist: definition.tool_denylist.clone(),
            capability_allowlist: definition.capability_allowlist.clone(),
            capability_denylist: definition.capability_denylist.clone(),
            agent_allowlist: definition.agent_allowlist.clone(),
            agent_denylist: definition.agent_denylist.clone(),
            confirm: Some(definition.confirm.clone()).filter(|confirm| !confirm.is_nothing()),
        },
    }
}

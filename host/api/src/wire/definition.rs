//! Definitions in public form: what they look like to people, what their lists say, and whose
//! sessions are with their agents.

use super::view::{SessionRowView, label, session_row};
use broker::{AgentSessions, LeftOutDefinition};
use domain::confirm::Confirm;
use domain::definition::{Definition, DefinitionId, ToolExposure};
use domain::grant::PatternList;
use domain::id::AgentId;
use domain::user::UserId;
use serde::Serialize;
use store::DefinitionCounts;

/// An agent of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = DefinitionRights)]
pub struct DefinitionView {
    /// Its `agentId`.
    pub definition: DefinitionId,
    /// The component that drives it.
    pub component: String,
    /// True if users and other agents see it.
    pub ui_visible: bool,
    /// Its lists.
    #[schema(value_type = Object)]
    pub lists: Lists,
}

/// The lists of an agent. One that is missing is null: an allow list then allows everything, a deny
/// list denies nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lists {
    /// Tools that it may use.
    pub tool_allowlist: Option<PatternList>,
    /// Tools that it may not use.
    pub tool_denylist: Option<PatternList>,
    /// Skills that it may use.
    pub skill_allowlist: Option<PatternList>,
    /// Skills that it may not use.
    pub skill_denylist: Option<PatternList>,
    /// Capabilities that its tools may use on its behalf.
    pub capability_allowlist: Option<PatternList>,
    /// Capabilities that they may not use.
    pub capability_denylist: Option<PatternList>,
    /// Agents that it may dispatch to.
    pub agent_allowlist: Option<PatternList>,
    /// Agents that it may not dispatch to.
    pub agent_denylist: Option<PatternList>,
    /// Models that may be named for it besides its own; null for the default model alone.
    pub model_allowlist: Option<PatternList>,
    /// Tools that it calls only when a user has agreed to that very call; null for none.
    pub confirm: Option<Confirm>,
}

/// Returns the part of a definition that decides what its agent may do.
#[must_use]
pub fn definition(definition: &Definition) -> DefinitionView {
    DefinitionView {
        definition: definition.agent_id.clone(),
        component: definition.component.clone(),
        ui_visible: definition.ui_visible,
        lists: Lists {
            tool_allowlist: definition.tool_allowlist.clone(),
            tool_denylist: definition.tool_denylist.clone(),
            skill_allowlist: definition.skill_allowlist.clone(),
            skill_denylist: definition.skill_denylist.clone(),
            capability_allowlist: definition.capability_allowlist.clone(),
            capability_denylist: definition.capability_denylist.clone(),
            agent_allowlist: definition.agent_allowlist.clone(),
            agent_denylist: definition.agent_denylist.clone(),
            model_allowlist: definition.model_allowlist.clone(),
            confirm: Some(definition.confirm.clone()).filter(|confirm| !confirm.is_nothing()),
        },
    }
}

/// A definition as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Definition)]
pub(crate) struct DefinitionEntryView {
    /// Its id, component and lists.
    #[serde(flatten)]
    pub(crate) rights: DefinitionView,
    /// Its name for people.
    pub(crate) display_name: String,
    /// Purpose of the agent; empty without one.
    pub(crate) description: String,
    /// Its icon: one sign, or a name that clients have an image for.
    pub(crate) icon: Option<String>,
    /// Its colour, such as `#3366cc`.
    pub(crate) color: Option<String>,
    /// The form in which it is shown its tools.
    pub(crate) exposure: ToolExposure,
    /// The definition that it extends.
    pub(crate) extends: Option<DefinitionId>,
    /// The user who made it of a template; none of one of the configuration.
    pub(crate) made_by: Option<UserId>,
    /// True if you may make definitions of it.
    pub(crate) is_template: bool,
    /// Numbers of your own.
    pub(crate) counts: DefinitionCountsView,
}

/// Numbers of a definition's agents and sessions that are yours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = DefinitionCounts)]
pub(crate) struct DefinitionCountsView {
    /// Active agents of it to which you are assigned.
    pub(crate) agents: u64,
    /// Sessions of theirs for you that take input.
    pub(crate) sessions: u64,
}

/// A definition that a user made and that is left out: its template is gone, or is none for its
/// user any more. It is there again when it fits again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = LeftOutDefinition)]
pub(crate) struct LeftOutDefinitionView {
    /// Its id.
    pub(crate) definition: DefinitionId,
    /// Its name for people.
    pub(crate) display_name: String,
    /// The definition that it was made of.
    pub(crate) template: DefinitionId,
    /// The user who made it.
    pub(crate) made_by: UserId,
    /// The reason why it is left out.
    pub(crate) reason: String,
}

/// Returns a definition that is left out.
pub(crate) fn left_out_definition(it: &LeftOutDefinition) -> LeftOutDefinitionView {
    LeftOutDefinitionView {
        definition: it.definition.clone(),
        display_name: it.display_name.clone(),
        template: it.template.clone(),
        made_by: it.user.clone(),
        reason: it.reason.clone(),
    }
}

/// Returns a definition as a user sees it.
pub(crate) fn definition_entry(
    it: &Definition,
    user: &UserId,
    counts: DefinitionCounts,
) -> DefinitionEntryView {
    DefinitionEntryView {
        rights: definition(it),
        display_name: it.display_name.clone(),
        description: it.description.clone(),
        icon: it.icon.clone(),
        color: it.color.clone(),
        exposure: it.tool_exposure,
        extends: it.extends.clone(),
        made_by: it.made_by.clone(),
        is_template: it.is_template_for(user),
        counts: DefinitionCountsView {
            agents: counts.agents,
            sessions: counts.sessions,
        },
    }
}

/// An agent with your sessions.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = AgentSessions)]
pub(crate) struct AgentSessionsView {
    /// The agent's id.
    pub(crate) agent_id: AgentId,
    /// Its address.
    pub(crate) path: String,
    /// The label shown to people.
    pub(crate) label: String,
    /// Its definition.
    pub(crate) definition: DefinitionId,
    /// The icon of its definition.
    pub(crate) icon: Option<String>,
    /// The colour of its definition, such as `#3366cc`.
    pub(crate) color: Option<String>,
    /// Its sessions: the pinned ones first, the last pinned before the others, then the most
    /// recently updated.
    pub(crate) sessions: Vec<SessionRowView>,
}

/// Returns an agent with a user's sessions.
pub(crate) fn agent_sessions(group: &AgentSessions) -> AgentSessionsView {
    let agent = &group.agent.agent;
    let appearance = group.definition.as_ref();
    AgentSessionsView {
        agent_id: agent.id,
        path: agent.path.to_string(),
        label: label(agent),
        definition: agent.definition.clone(),
        icon: appearance.and_then(|appearance| appearance.icon.clone()),
        color: appearance.and_then(|appearance| appearance.color.clone()),
        sessions: group.sessions.iter().map(session_row).collect(),
    }
}

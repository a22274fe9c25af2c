//! The living hierarchy of agents and the connector keys of users, in public form.

use super::view::label;
use domain::path::ModelRole;
use serde::Serialize;
use store::ConnectorRow;

/// An agent in the hierarchy of paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = PathEntry)]
pub(crate) struct PathView {
    /// Its address.
    pub(crate) path: String,
    /// The kind of agent, as its address gives it.
    pub(crate) kind: &'static str,
    /// The role by which it has its model.
    pub(crate) model_role: Option<&'static str>,
    /// The label shown to people.
    pub(crate) label: String,
    /// Its id, a UUID.
    pub(crate) agent_id: String,
    /// The id of the agent above it.
    pub(crate) parent_id: Option<String>,
    /// The address of that agent.
    pub(crate) parent_path: Option<String>,
    /// Your role.
    pub(crate) role: &'static str,
    /// The activity of the agent. `active` while a run is open or an input waits, and for a minute
    /// after; then `sleeping`; `dead` an hour after the work of an agent that was made below
    /// another one. Hidden from a mentee, as everything that reveals the activity of its other
    /// users.
    pub(crate) residency: Option<&'static str>,
    /// The time since which it has been idle, ISO 8601; none while it has work. Hidden from a
    /// mentee.
    pub(crate) idle_since: Option<String>,
    /// Number of its sessions that take input. Hidden from a mentee.
    pub(crate) open_sessions: Option<u64>,
    /// Number of its turns in progress. Hidden from a mentee.
    pub(crate) open_runs: Option<u64>,
}

/// The key under which a service knows a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ConnectorKey)]
pub(crate) struct ConnectorView {
    /// The key, such as `telegram:123456`.
    pub(crate) key: String,
    /// The connector.
    pub(crate) connector: String,
    /// The service's own id of the user.
    pub(crate) target_id: String,
    /// The user.
    pub(crate) user_id: String,
    /// The time at which it was bound, ISO 8601.
    pub(crate) bound_at: String,
}

/// An agent of the hierarchy as clients see it.
pub(crate) fn path(entry: &broker::PathEntry) -> PathView {
    let living = &entry.living;
    let tells = entry.tells_of_work();
    let row = &living.row;
    let agent = &row.agent;
    PathView {
        path: agent.path.to_string(),
        kind: row.kind.as_str(),
        model_role: row.kind.model_role().map(ModelRole::as_str),
        label: label(agent),
        agent_id: agent.id.to_string(),
        parent_id: row.parent.map(|id| id.to_string()),
        parent_path: row.parent_path.clone(),
        role: living.role.as_str(),
        residency: tells.then(|| entry.residency.as_str()),
        idle_since: living
            .work
            .idle_since()
            .filter(|_| tells)
            .map(|since| since.to_string()),
        open_sessions: tells.then_some(living.open_sessions),
        open_runs: tells.then_some(living.open_runs),
    }
}

/// A connector key as clients see it.
pub(crate) fn connector(row: &ConnectorRow) -> ConnectorView {
    ConnectorView {
        key: row.key.to_string(),
        connector: row.key.connector().to_string(),
        target_id: row.key.external_id().to_owned(),
        user_id: row.user.to_string(),
        bound_at: row.bound_at.to_string(),
    }
}

//! The living hierarchy of agents and the connector keys of users, in public form.

use super::Time;
use super::view::label;
use domain::id::AgentId;
use domain::path::{ConnectorKey, ConnectorName, ModelRole, PathKind};
use domain::residency::Residency;
use domain::role::AgentRole;
use domain::user::UserId;
use serde::Serialize;
use store::ConnectorRow;

/// An agent in the hierarchy of paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = PathEntry)]
pub(crate) struct PathView {
    /// Its address.
    pub(crate) path: String,
    /// The kind of agent, as its address gives it.
    pub(crate) kind: PathKind,
    /// The role by which it has its model.
    pub(crate) model_role: Option<ModelRole>,
    /// The label shown to people.
    pub(crate) label: String,
    /// Its id.
    pub(crate) agent_id: AgentId,
    /// The id of the agent above it.
    pub(crate) parent_id: Option<AgentId>,
    /// The address of that agent.
    pub(crate) parent_path: Option<String>,
    /// Your role.
    pub(crate) role: AgentRole,
    /// The activity of the agent. `active` while a run is open or an input waits, and for a minute
    /// after; then `sleeping`; `dead` an hour after the work of an agent that was made below
    /// another one. Hidden from a mentee, as everything that reveals the activity of its other
    /// users.
    pub(crate) residency: Option<Residency>,
    /// The time since which it has been idle, ISO 8601; none while it has work. Hidden from a
    /// mentee.
    pub(crate) idle_since: Option<Time>,
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
    #[schema(value_type = String)]
    pub(crate) key: ConnectorKey,
    /// The connector.
    pub(crate) connector: ConnectorName,
    /// The service's own id of the user.
    pub(crate) target_id: String,
    /// The user.
    pub(crate) user_id: UserId,
    /// The time at which it was bound, ISO 8601.
    pub(crate) bound_at: Time,
}

/// An agent of the hierarchy as clients see it.
pub(crate) fn path(entry: &broker::PathEntry) -> PathView {
    let living = &entry.living;
    let tells = entry.tells_of_work();
    let row = &living.row;
    let agent = &row.agent;
    PathView {
        path: agent.path.to_string(),
        kind: row.kind,
        model_role: row.kind.model_role(),
        label: label(agent),
        agent_id: agent.id,
        parent_id: row.parent,
        parent_path: row.parent_path.clone(),
        role: living.role,
        residency: tells.then_some(entry.residency),
        idle_since: living.work.idle_since().filter(|_| tells).map(Time),
        open_sessions: tells.then_some(living.open_sessions),
        open_runs: tells.then_some(living.open_runs),
    }
}

/// A connector key as clients see it.
pub(crate) fn connector(row: &ConnectorRow) -> ConnectorView {
    ConnectorView {
        key: row.key.clone(),
        connector: row.key.connector().clone(),
        target_id: row.key.external_id().to_owned(),
        user_id: row.user.clone(),
        bound_at: Time(row.bound_at),
    }
}

//! The living hierarchy and what services call the users, in public form.

use super::view::label;
use domain::path::ModelRole;
use serde::Serialize;
use store::ConnectorRow;

/// An agent in the hierarchy of paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = PathEntry)]
pub struct PathView {
    /// Its address.
    pub path: String,
    /// What sort of agent that says it is.
    pub kind: &'static str,
    /// The role by which it has its model.
    pub model_role: Option<&'static str>,
    /// What people read for it.
    pub label: String,
    /// Its id, a UUID.
    pub agent_id: String,
    /// The id of the agent above it.
    pub parent_id: Option<String>,
    /// That agent's address.
    pub parent_path: Option<String>,
    /// What you are to it.
    pub role: &'static str,
    /// `active` while a run is open or an input waits, and a minute on; `sleeping` after that; `dead` an hour after the work of one that was
    /// made below another agent. Hidden from a mentee, as all that tells of what its other users do.
    pub residency: Option<&'static str>,
    /// Since when it has nothing to do, ISO 8601; none while it has. Hidden from a mentee.
    pub idle_since: Option<String>,
    /// How many of its sessions take input. Hidden from a mentee.
    pub open_sessions: Option<u64>,
    /// How many of its turns are in the making. Hidden from a mentee.
    pub open_runs: Option<u64>,
}

/// What a service calls a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ConnectorKey)]
pub struct ConnectorView {
    /// The key, such as `telegram:123456`.
    pub key: String,
    /// The connector.
    pub connector: String,
    /// What its service calls the user.
    pub target_id: String,
    /// The user.
    pub user_id: String,
    /// Since when, ISO 8601.
    pub bound_at: String,
}

/// An agent of the hierarchy as clients see it.
#[must_use]
pub fn path(entry: &broker::PathEntry) -> PathView {
    let (living, tells) = (&entry.living, entry.tells_of_work());
    let (row, agent) = (&living.row, &living.row.agent);
    PathView {
        path: agent.path.clone(),
        kind: row.kind.word(),
        model_role: row.kind.model_role().map(ModelRole::word),
        label: label(agent),
        agent_id: agent.id.to_string(),
        parent_id: row.parent.map(|id| id.to_string()),
        parent_path: row.parent_path.clone(),
        role: living.role.word(),
        residency: tells.then(|| entry.residency.word()),
        idle_since: living.work.idle_since().filter(|_| tells).map(|since| since.to_string()),
        open_sessions: tells.then_some(living.open_sessions),
        open_runs: tells.then_some(living.open_runs),
    }
}

/// A connector key as clients see it.
#[must_use]
pub fn connector(row: &ConnectorRow) -> ConnectorView {
    ConnectorView {
        key: row.key.to_string(),
        connector: row.key.connector().to_string(),
        target_id: row.key.external_id().to_owned(),
        user_id: row.user.to_string(),
        bound_at: row.bound_at.to_string(),
    }
}

//! Agents as the folds of their streams.

use crate::sql::{Columns, Sql, int, to_json};
use domain::agent::Agent;
use domain::event::{AgentCreated, Event, Recorded};
use domain::id::AgentId;
use rusqlite::params;

/// An agent exists; its parent has one more child.
pub(super) fn created(sql: &Sql<'_>, created: &AgentCreated) -> rusqlite::Result<()> {
    let agent = Agent::apply(None, &Event::AgentCreated(created.clone()));
    sql.execute(
        "INSERT INTO agents (id, agent, path, parent, slot, version, created_at, updated_at, active, sub_count) \
         VALUES (?1, ?2, ?3, ?4, NULL, 0, ?5, ?5, 1, 0)",
        params![
            created.agent.to_string(),
            to_json(&agent)?,
            created.path,
            created.parent.map(|parent| parent.to_string()),
            int(created.created_at.0),
        ],
    )?;
    if let Some(parent) = created.parent {
        sql.execute("UPDATE agents SET sub_count = sub_count + 1 WHERE id = ?1", [parent.to_string()])?;
    }
    Ok(())
}

/// Something of what an agent is made of changed.
pub(super) fn changed(sql: &Sql<'_>, id: AgentId, event: &Event) -> rusqlite::Result<()> {
    let id = id.to_string();
    let agent: Option<Agent> = sql.row("SELECT agent FROM agents WHERE id = ?1", [&id], |row| row.json(0))?;
    let Some(agent) = Agent::apply(agent, event) else { return Ok(()) };
    let slot = agent.slot.as_ref().map(|(session, _)| session.to_string());
    sql.execute("UPDATE agents SET agent = ?2, slot = ?3 WHERE id = ?1", params![id, to_json(&agent)?, slot])?;
    Ok(())
}

/// An agent's stream went on.
pub(super) fn seen(sql: &Sql<'_>, recorded: &Recorded) -> rusqlite::Result<()> {
    if let Some(id) = recorded.stream.strip_prefix("agent/") {
        sql.execute(
            "UPDATE agents SET version = ?2, updated_at = ?3 WHERE id = ?1",
            params![id, int(recorded.version), int(recorded.time.0)],
        )?;
    }
    Ok(())
}

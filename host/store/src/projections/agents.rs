//! Agents as the folds of their streams, and the roles of their users.

use crate::sql::{self, Sql, args, named, to_json, upsert};
use domain::agent::Agent;
use domain::agent::assignment::Assignment;
use domain::event::{AgentCreated, Event, Recorded};
use domain::id::{AgentId, Stream};
use domain::path::PathKind;
use domain::role::AgentRole;
use domain::user::UserId;
use std::collections::BTreeMap;

/// Records a new agent; its parent has one more child. A user's rights to the topmost agent above
/// it apply to it as well.
pub(super) fn created(sql: &Sql<'_>, created: &AgentCreated) -> sql::Result<()> {
    let Some(agent) = Agent::apply(None, &Event::AgentCreated(created.clone())) else {
        return Ok(());
    };
    let id = created.agent;
    write_user(sql, id, &created.owner_user_id, &agent)?;
    let agent_type = agent.agent_type.clone();
    // The root is the topmost existing agent above it.
    sql.execute(
        "INSERT INTO agents (id, agent, path, parent, slot, version, created_at, updated_at, \
         active, sub_count, agent_type, root, kind) VALUES (:id, :agent, :path, :parent, NULL, 0, \
         :created_at, :created_at, 1, 0, :agent_type, coalesce((WITH RECURSIVE above (id, parent) \
         AS (SELECT id, parent FROM agents WHERE id = :parent UNION ALL SELECT agents.id, \
         agents.parent FROM above CROSS JOIN agents ON agents.id = above.parent) SELECT id FROM \
         above WHERE parent IS NULL), :parent, :id), :kind)",
        named![
            id,
            agent = to_json(&without_users(agent))?,
            path = created.path.as_str(),
            parent = created.parent,
            created_at = created.created_at,
            agent_type,
            kind = created.kind.as_str()
        ],
    )?;
    match created.parent {
        Some(parent) => {
            // The counter is that of `sub` and `search`: a memory agent has no index.
            let counts = created.kind != PathKind::Memory;
            sql.execute(
                "UPDATE agents SET sub_count = sub_count + ?2 WHERE id = ?1",
                args![parent, counts],
            )?;
            sql.execute(
                "INSERT INTO access (user_id, agent, role) SELECT user_id, ?1, role FROM access \
                 WHERE agent = (SELECT root FROM agents WHERE id = ?1)",
                [id],
            )?;
        }
        None => grant(
            sql,
            created.agent,
            &created.owner_user_id,
            AgentRole::Primary,
        )?,
    }
    Ok(())
}

/// Records that an agent's facts changed. Of its users, only the one whom the event concerns is
/// written.
pub(super) fn changed(sql: &Sql<'_>, id: AgentId, event: &Event) -> sql::Result<()> {
    let user = concerned(event);
    let Some(agent) = needs(sql, id, user)? else {
        return Ok(());
    };
    let Some(agent) = Agent::apply(Some(agent), event) else {
        return Ok(());
    };
    if let Some(user) = user {
        write_user(sql, id, user, &agent)?;
    }
    let slot = agent.active_session.as_ref().map(|it| it.session_id);
    sql.write(
        "UPDATE agents SET agent = :agent, slot = :slot WHERE id = :id",
        named![id, agent = to_json(&without_users(agent))?, slot],
    )
}

/// The user of an agent's whom an event concerns.
fn concerned(event: &Event) -> Option<&UserId> {
    match event {
        Event::UserAssigned(it) => Some(&it.user_id),
        Event::RoleChanged(it) => Some(&it.user_id),
        Event::UserUnassigned(it) => Some(&it.user_id),
        Event::PreferencesUpdated(it) => it.user_id.as_ref(),
        Event::PreferencesTransferred(it) => Some(&it.to),
        _ => None,
    }
}

/// Reads an agent to apply an event, with the one user whom the event concerns.
fn needs(sql: &Sql<'_>, id: AgentId, user: Option<&UserId>) -> sql::Result<Option<Agent>> {
    let agent: Option<Agent> = sql.json("SELECT agent FROM agents WHERE id = ?1", [id])?;
    let Some(mut agent) = agent else {
        return Ok(None);
    };
    let Some(user) = user else {
        return Ok(Some(agent));
    };
    let text = "SELECT assignment FROM agent_users WHERE agent = ?1 AND user_id = ?2";
    agent
        .assignments
        .extend(sql.json::<Assignment>(text, args![id, user])?);
    let text = "SELECT preferences FROM agent_preferences WHERE agent = ?1 AND user_id = ?2";
    let keys = sql.json(text, args![id, user])?;
    agent
        .user_preferences
        .extend(keys.map(|keys| (user.clone(), keys)));
    Ok(Some(agent))
}

/// Writes the data about one of its users.
fn write_user(sql: &Sql<'_>, id: AgentId, user: &UserId, agent: &Agent) -> sql::Result<()> {
    match agent
        .assignments
        .iter()
        .find(|assignment| assignment.user_id == *user)
    {
        Some(assignment) => sql.write(
            "INSERT INTO agent_users (agent, user_id, place, assignment) SELECT :agent, :user, \
             coalesce((SELECT max(place) FROM agent_users WHERE agent = :agent), 0) + 1, \
             :assignment WHERE true ON CONFLICT (agent, user_id) DO UPDATE SET assignment = \
             excluded.assignment",
            named![agent = id, user, assignment = to_json(assignment)?],
        ),
        None => sql.write(
            "DELETE FROM agent_users WHERE agent = ?1 AND user_id = ?2",
            args![id, user],
        ),
    }?;
    match agent.user_preferences.get(user) {
        Some(keys) => upsert!(
            sql,
            agent_preferences {
                agent: id,
                user_id: user
            },
            set {
                preferences: to_json(keys)?
            }
        ),
        None => sql.write(
            "DELETE FROM agent_preferences WHERE agent = ?1 AND user_id = ?2",
            args![id, user],
        ),
    }
}

/// An agent as its own row has it.
pub(crate) fn without_users(agent: Agent) -> Agent {
    Agent {
        assignments: Vec::new(),
        user_preferences: BTreeMap::new(),
        ..agent
    }
}

/// Records that an agent was archived with all agents below it. Their paths become free.
pub(super) fn archived(sql: &Sql<'_>, id: AgentId, event: &Event) -> sql::Result<()> {
    changed(sql, id, event)?;
    sql.write(
        "UPDATE agents SET active = 0 WHERE id = ?1 OR root = ?1",
        [id],
    )
}

/// Records a user's role with an agent and the agents below it.
pub(super) fn assigned(
    sql: &Sql<'_>,
    id: AgentId,
    user: &UserId,
    role: AgentRole,
    event: &Event,
) -> sql::Result<()> {
    changed(sql, id, event)?;
    grant(sql, id, user, role)
}

/// A user has none any more.
pub(super) fn unassigned(
    sql: &Sql<'_>,
    id: AgentId,
    user: &UserId,
    event: &Event,
) -> sql::Result<()> {
    changed(sql, id, event)?;
    sql.write(
        "DELETE FROM access WHERE user_id = ?2 AND agent IN (SELECT id FROM agents WHERE root = \
         ?1)",
        args![id, user],
    )
}

fn grant(sql: &Sql<'_>, id: AgentId, user: &UserId, role: AgentRole) -> sql::Result<()> {
    sql.write(
        "INSERT INTO access (user_id, agent, role) SELECT :user, id, :role FROM agents WHERE root \
         = :root ON CONFLICT (user_id, agent) DO UPDATE SET role = excluded.role",
        named![root = id, user, role],
    )
}

/// An agent's stream went on.
pub(super) fn seen(sql: &Sql<'_>, recorded: &Recorded) -> sql::Result<()> {
    if let Ok(Stream::Agent(id)) = recorded.stream.parse() {
        sql.execute(
            "UPDATE agents SET version = :version, updated_at = :updated_at WHERE id = :id",
            named![id, version = recorded.version, updated_at = recorded.time],
        )?;
    }
    Ok(())
}

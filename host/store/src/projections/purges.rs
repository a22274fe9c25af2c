//! Remnants of a session or an agent that is purged: a row that says that it existed. Everything
//! else of it goes with the payloads that it follows from.

use super::agents::without_users;
use crate::EMPTY_STATE;
use crate::sql::{Sql, int, to_json};
use domain::agent::Agent;
use domain::digest::Digest;
use domain::event::{AgentArchived, AgentCreated, Event, PurgeBegun, Remains};
use domain::path::AgentConfig;
use rusqlite::params;

/// Records that a purge was begun. The row becomes at once what it will be when nothing else is
/// left.
pub(super) fn begun(sql: &Sql<'_>, it: &PurgeBegun, position: u64) -> rusqlite::Result<()> {
    match &it.remains {
        Remains::Session { .. } => session(sql, it, position),
        Remains::Agent { .. } => agent(sql, it),
    }
}

fn session(sql: &Sql<'_>, it: &PurgeBegun, position: u64) -> rusqlite::Result<()> {
    let Remains::Session {
        session,
        session_type,
        conversation,
        started_by,
        user_id,
        head,
        created_at,
    } = &it.remains
    else {
        return Ok(());
    };
    sql.write(
        "INSERT OR REPLACE INTO sessions (id, agent, session_type, head, head_message, revision, \
         state, status, started_by, created_at, updated_at, user_id, conversation, number, purged) \
         VALUES (?1, ?2, ?3, ?4, 0, 0, ?5, 'deleted', ?6, ?7, ?8, ?9, ?10, ?11, 1)",
        params![
            session.to_string(),
            it.agent.to_string(),
            session_type,
            head.map(|head| head.0.0),
            Digest::of(EMPTY_STATE).0,
            started_by,
            int(created_at.0),
            int(it.time.0),
            user_id.as_str(),
            conversation.to_string(),
            int(position),
        ],
    )
}

fn agent(sql: &Sql<'_>, it: &PurgeBegun) -> rusqlite::Result<()> {
    let Remains::Agent {
        definition,
        agent_type,
        path,
        kind,
        parent,
        root,
        owner_user_id,
        created_at,
    } = &it.remains
    else {
        return Ok(());
    };
    let id = it.agent.to_string();
    let nobody = Event::AgentCreated(AgentCreated {
        agent: it.agent,
        definition: definition.clone(),
        agent_type: agent_type.clone(),
        path: path.clone(),
        kind: *kind,
        config: AgentConfig::default(),
        parent: *parent,
        owner_user_id: owner_user_id.clone(),
        name: String::new(),
        denies: domain::authority::Denies::default(),
        permissions: domain::authority::Permissions::default(),
        created_at: *created_at,
    });
    let archived = Event::AgentArchived(AgentArchived {
        agent: it.agent,
        path: path.clone(),
        reason: String::new(),
        archived_at: it.time,
    });
    let Some(left) = [nobody, archived].iter().fold(None, Agent::apply) else {
        return Ok(());
    };
    sql.execute("DELETE FROM access WHERE agent = ?1", [&id])?;
    sql.execute("DELETE FROM agent_users WHERE agent = ?1", [&id])?;
    sql.execute("DELETE FROM agent_preferences WHERE agent = ?1", [&id])?;
    sql.write(
        "INSERT OR REPLACE INTO agents (id, agent, path, parent, slot, version, created_at, \
         updated_at, active, sub_count, agent_type, \
         root, kind, purged) VALUES (?1, ?2, ?3, ?4, NULL, 0, ?5, ?5, 0, 0, ?6, ?7, ?8, 1)",
        params![
            id,
            to_json(&without_users(left))?,
            path.as_str(),
            parent.map(|parent| parent.to_string()),
            int(created_at.0),
            agent_type,
            root.to_string(),
            kind.as_str(),
        ],
    )
}

//! Remnants of a purged session or agent: one row that states that it existed. All its other rows
//! are removed with the payloads from which they were derived.

use super::agents::without_users;
use crate::EMPTY_STATE;
use crate::sql::{self, Sql, insert, to_json};
use domain::agent::Agent;
use domain::digest::Digest;
use domain::event::{AgentArchived, AgentCreated, Event, PurgeBegun, Remains};
use domain::path::AgentConfig;

/// Records that a purge was begun. The row gets its final content at once.
pub(super) fn begun(sql: &Sql<'_>, it: &PurgeBegun, position: u64) -> sql::Result<()> {
    match &it.remains {
        Remains::Session { .. } => session(sql, it, position),
        Remains::Agent { .. } => agent(sql, it),
    }
}

fn session(sql: &Sql<'_>, it: &PurgeBegun, position: u64) -> sql::Result<()> {
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
    sql.write("DELETE FROM sessions WHERE id = ?1", [session])?;
    insert!(
        sql,
        sessions {
            id: session,
            agent: it.agent,
            session_type,
            head,
            head_message: 0,
            revision: 0,
            state: Digest::of(EMPTY_STATE),
            status: "deleted",
            started_by,
            created_at,
            updated_at: it.time,
            user_id,
            conversation,
            number: position,
            purged: true
        }
    )
}

fn agent(sql: &Sql<'_>, it: &PurgeBegun) -> sql::Result<()> {
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
    let id = it.agent;
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
    for text in [
        "DELETE FROM access WHERE agent = ?1",
        "DELETE FROM agent_users WHERE agent = ?1",
        "DELETE FROM agent_preferences WHERE agent = ?1",
        "DELETE FROM agents WHERE id = ?1",
    ] {
        sql.write(text, [id])?;
    }
    insert!(
        sql,
        agents {
            id,
            agent: to_json(&without_users(left))?,
            path: path.as_str(),
            parent,
            version: 0,
            created_at,
            updated_at: created_at,
            active: false,
            sub_count: 0,
            agent_type,
            root,
            kind: kind.as_str(),
            purged: true
        }
    )
}

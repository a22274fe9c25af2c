//! Agents as they are now, and who may do what with them.

use super::ReadError;
use crate::sql::{Columns, Sql, limit as rows};
use crate::store::Store;
use domain::agent::Agent;
use domain::id::AgentId;
use domain::path::PathKind;
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};
use serde_json::{Map, Value};

/// An agent with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRow {
    /// The fold of its stream; without its users and what it remembers of them, unless they were
    /// asked for ([`Store::agent_with_users`]).
    pub agent: Agent,
    /// Kind of the agent, by its address.
    pub kind: PathKind,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// Address of the parent agent.
    pub parent_path: Option<String>,
    /// The version of its stream.
    pub version: u64,
    /// Time at which it was created.
    pub created_at: Timestamp,
    /// Time of the latest event in its stream.
    pub updated_at: Timestamp,
    /// True if neither it nor the topmost agent above it was archived.
    pub active: bool,
    /// Number of agents that it has spawned so far.
    pub sub_count: u64,
    /// True if it was purged, or is about to be. Then nothing of it is left except that it existed.
    pub purged: bool,
}

/// Filter for a user's agents. An agent has to match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFilter {
    /// The agent's type.
    pub agent_type: Option<String>,
    /// With which the user has this role.
    pub role: Option<AgentRole>,
    /// Active ones, or archived ones.
    pub active: bool,
    /// True to select only agents that were not spawned.
    pub topmost: bool,
}

macro_rules! columns {
    () => {
        "agents.agent, agents.parent, agents.version, agents.created_at, agents.updated_at, \
         agents.active, agents.sub_count, agents.kind, \
         (SELECT above.path FROM agents AS above WHERE above.id = agents.parent), agents.purged"
    };
}
pub(super) use columns;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM agents ", $rest)
    };
}

/// With what the user is to it. Whoever is assigned to an agent is to those below it what they are
/// to it.
macro_rules! select_with_role {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", access.role FROM access CROSS JOIN agents ON agents.id = access.agent ",
            $rest
        )
    };
}

impl Store {
    /// An agent.
    pub async fn agent(&self, id: AgentId) -> Result<Option<AgentRow>, ReadError> {
        self.point_read(move |sql| sql.row(select!("WHERE id = ?1"), [id.to_string()], read))
            .await
    }

    /// An agent with all its users, and what it remembers of each.
    pub async fn agent_with_users(&self, id: AgentId) -> Result<Option<AgentRow>, ReadError> {
        self.read(move |sql| {
            let Some(mut row) = sql.row(select!("WHERE id = ?1"), [id.to_string()], read)? else {
                return Ok(None);
            };
            add_users(sql, &mut row.agent)?;
            Ok(Some(row))
        })
        .await
    }

    /// Returns the data that an agent remembers of a user; none where it never had any.
    pub async fn remembered_of(
        &self,
        agent: AgentId,
        user: &UserId,
    ) -> Result<Option<Map<String, Value>>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text =
                "SELECT preferences FROM agent_preferences WHERE agent = ?1 AND user_id = ?2";
            sql.row(text, params![agent.to_string(), user.as_str()], |row| {
                row.json(0)
            })
        })
        .await
    }

    /// An agent that a user may do something with, and what the user is to it.
    pub async fn agent_for(
        &self,
        user: &UserId,
        id: AgentId,
    ) -> Result<Option<(AgentRow, AgentRole)>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text = select_with_role!("WHERE access.user_id = ?1 AND access.agent = ?2");
            sql.row(text, params![user.as_str(), id.to_string()], read_with_role)
        })
        .await
    }

    /// The agents that a user may do something with in the order of their ids, after one, at most
    /// `limit`; with all their users.
    pub async fn agents(
        &self,
        user: &UserId,
        filter: AgentFilter,
        after: Option<AgentId>,
        limit: usize,
    ) -> Result<Vec<(AgentRow, AgentRole)>, ReadError> {
        let user = user.clone();
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        self.read(move |sql| {
            let text = select_with_role!(
                "WHERE access.user_id = ?1 AND access.agent > ?2 AND agents.active = ?3 AND (?4 IS \
                 NULL OR agents.agent_type = ?4) AND (?5 IS NULL OR access.role = ?5) AND (NOT ?6 \
                 OR agents.parent IS NULL) ORDER BY access.agent LIMIT ?7"
            );
            let AgentFilter {
                agent_type,
                role,
                active,
                topmost,
            } = filter;
            let params = params![
                user.as_str(),
                after,
                active,
                agent_type,
                role.map(AgentRole::as_str),
                topmost,
                rows(limit)
            ];
            let mut rows = sql.rows(text, params, read_with_role)?;
            rows.iter_mut()
                .try_for_each(|(row, _)| add_users(sql, &mut row.agent))?;
            Ok(rows)
        })
        .await
    }

    /// The active agent at a path.
    pub async fn agent_at(&self, path: &str) -> Result<Option<AgentRow>, ReadError> {
        let path = path.to_owned();
        self.point_read(move |sql| sql.row(select!("WHERE path = ?1 AND active = 1"), [path], read))
            .await
    }

    /// Returns the active agents at a path and at its numbered siblings (`<path>.2`, `<path>.3`,
    /// …), with what a user is to each. They come in the order of their paths, at most `limit`.
    pub async fn agents_numbered(
        &self,
        user: &UserId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<(AgentRow, Option<AgentRole>)>, ReadError> {
        let user = user.clone();
        let path = path.to_owned();
        self.point_read(move |sql| {
            // `/` follows `.` in the order of bytes: what lies between is the path itself and what
            // begins with it and a `.`, and little else.
            let text = concat!(
                "SELECT ",
                columns!(),
                ", (SELECT role FROM access WHERE access.user_id = ?3 AND access.agent = \
                 agents.id) FROM agents WHERE path >= ?1 AND path < ?1 || '/' AND active = 1 AND \
                 (path = ?1 OR substr(path, length(?1) + 1, 1) = '.') ORDER BY length(path), path \
                 LIMIT ?2"
            );
            sql.rows(text, params![path, rows(limit), user.as_str()], |row| {
                Ok((read(row)?, row.id_opt(COLUMNS)?))
            })
        })
        .await
    }

    /// An agent and all below it, in the order of their making.
    pub async fn agents_of_tree(&self, root: AgentId) -> Result<Vec<AgentRow>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                select!("WHERE root = ?1 ORDER BY created_at, id"),
                [root.to_string()],
                read,
            )
        })
        .await
    }

    /// The topmost agent above one; that agent itself when none is above it.
    pub async fn root(&self, agent: AgentId) -> Result<AgentId, ReadError> {
        self.point_read(move |sql| root(sql, agent)).await
    }

    /// Returns a user's role with an agent.
    pub async fn role(
        &self,
        user: &UserId,
        agent: AgentId,
    ) -> Result<Option<AgentRole>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            sql.row(
                "SELECT role FROM access WHERE user_id = ?1 AND agent = ?2",
                params![user.as_str(), agent.to_string()],
                |row| row.id(0),
            )
        })
        .await
    }
}

/// Reads the topmost agent above one; that agent itself when none is above it.
pub(crate) fn root(sql: &Sql<'_>, agent: AgentId) -> rusqlite::Result<AgentId> {
    let root = sql.row(
        "SELECT root FROM agents WHERE id = ?1",
        [agent.to_string()],
        |row| row.id(0),
    )?;
    Ok(root.unwrap_or(agent))
}

/// Puts into an agent its users, and what it remembers of each.
fn add_users(sql: &Sql<'_>, agent: &mut Agent) -> rusqlite::Result<()> {
    let id = agent.id.to_string();
    agent.assignments = sql.rows(
        "SELECT assignment FROM agent_users WHERE agent = ?1 ORDER BY place",
        [&id],
        |row| row.json(0),
    )?;
    let text = "SELECT user_id, preferences FROM agent_preferences WHERE agent = ?1";
    let remembered: Vec<(UserId, Map<String, Value>)> =
        sql.rows(text, [&id], |row| Ok((row.id(0)?, row.json(1)?)))?;
    agent.user_preferences = remembered.into_iter().collect();
    Ok(())
}

/// Number of an agent's columns, and index of the first one after them.
pub(super) const COLUMNS: usize = 10;

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        agent: row.json(0)?,
        kind: row.id(7)?,
        parent: row.id_opt(1)?,
        parent_path: row.get(8)?,
        version: row.uint(2)?,
        created_at: Timestamp(row.uint(3)?),
        updated_at: Timestamp(row.uint(4)?),
        active: row.get(5)?,
        sub_count: row.uint(6)?,
        purged: row.get(9)?,
    })
}

fn read_with_role(row: &Row<'_>) -> rusqlite::Result<(AgentRow, AgentRole)> {
    Ok((read(row)?, row.id(COLUMNS)?))
}

//! Agents as they are now.

use super::ReadError;
use crate::sql::{Columns, limit as rows};
use crate::store::Store;
use domain::agent::Agent;
use domain::id::AgentId;
use domain::time::Timestamp;
use rusqlite::{Row, params};

/// An agent with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRow {
    /// The fold of its stream.
    pub agent: Agent,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// The version of its stream.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its stream last went on.
    pub updated_at: Timestamp,
    /// Whether it is active.
    pub active: bool,
    /// How many agents it has spawned so far.
    pub sub_count: u64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT agent, parent, version, created_at, updated_at, active, sub_count FROM agents ", $rest)
    };
}

impl Store {
    /// An agent.
    pub async fn agent(&self, id: AgentId) -> Result<Option<AgentRow>, ReadError> {
        self.glance(move |sql| sql.row(select!("WHERE id = ?1"), [id.to_string()], read)).await
    }

    /// A user's agents in the order of their ids, after one, at most `limit`.
    pub async fn agents(&self, owner: &str, after: Option<AgentId>, limit: usize) -> Result<Vec<AgentRow>, ReadError> {
        let (owner, after) = (owner.to_owned(), after.map(|id| id.to_string()).unwrap_or_default());
        self.read(move |sql| {
            let text = select!("WHERE agent ->> '$.owner_user_id' = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
            sql.rows(text, params![owner, after, rows(limit)], read)
        })
        .await
    }

    /// The active agent at a path.
    pub async fn agent_at(&self, path: &str) -> Result<Option<AgentRow>, ReadError> {
        let path = path.to_owned();
        self.glance(move |sql| sql.row(select!("WHERE path = ?1 AND active = 1"), [path], read)).await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        agent: row.json(0)?,
        parent: row.id_opt(1)?,
        version: row.uint(2)?,
        created_at: Timestamp(row.uint(3)?),
        updated_at: Timestamp(row.uint(4)?),
        active: row.get(5)?,
        sub_count: row.uint(6)?,
    })
}

//! Reads of the work that agents handed to each other and that has not ended, and of the waits
//! between sessions.

use super::ReadError;
use crate::query::{Query, Rows, Value};
use crate::sql::{Columns, Sql};
use crate::store::Store;
use domain::dispatch::waits::Waits;
use domain::id::{AgentId, RunId, SessionId};

/// Number of open dispatches of a run and of the tree of agents that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOver {
    /// By the run.
    pub by_run: u64,
    /// By all runs of the tree's agents.
    pub in_tree: u64,
    /// The tree: its topmost agent.
    pub tree: AgentId,
}

impl Store {
    /// Returns the number of open dispatches of a run and its tree: detached or not, waited for or
    /// not.
    pub async fn handed_over(&self, run: RunId, agent: AgentId) -> Result<HandedOver, ReadError> {
        self.read(move |sql| {
            let tree = tree_of(sql, agent)?;
            let by_run = sql.number(
                "SELECT count(*) FROM inputs WHERE by_run = ?1 AND state IN ('waiting', 'claimed')",
                [run.to_string()],
            )?;
            Ok(HandedOver {
                by_run,
                in_tree: sql.ask(&open_in_tree_query(tree))?.number()?,
                tree,
            })
        })
        .await
    }

    /// Returns the waits among the sessions that a session waits for, directly or through others.
    pub async fn waits_of(&self, session: SessionId) -> Result<Vec<Waits>, ReadError> {
        self.read(move |sql| read_waits(&sql.ask(&waits_query(session))?))
            .await
    }
}

/// The query for the waits among the sessions that a session waits for.
pub(crate) fn waits_query(session: SessionId) -> Query<'static> {
    Query::new(
        "WITH RECURSIVE reached (id) AS (SELECT ?1 UNION SELECT operations.waits_for FROM reached \
         CROSS JOIN operations ON operations.session = reached.id WHERE operations.waits_for IS \
         NOT NULL) SELECT operations.session, operations.waits_for FROM reached CROSS JOIN \
         operations ON operations.session = reached.id WHERE operations.waits_for IS NOT NULL",
        [Value::id(&session)],
    )
}

/// Reads the rows that answer [`waits_query`]. See [`Store::waits_of`].
pub(crate) fn read_waits(rows: &Rows) -> rusqlite::Result<Vec<Waits>> {
    let waits = rows.iter().map(|row| {
        Ok(Waits {
            session: row.id(0)?,
            for_session: row.id(1)?,
        })
    });
    waits.collect()
}

/// The topmost agent above one; that agent itself when none is above it.
pub(crate) fn tree_of(sql: &Sql<'_>, agent: AgentId) -> rusqlite::Result<AgentId> {
    let top = sql.row(
        "WITH RECURSIVE above (id, parent) AS (SELECT id, parent FROM agents WHERE id = ?1 UNION \
         ALL SELECT agents.id, agents.parent FROM agents JOIN above ON agents.id = above.parent) \
         SELECT id FROM above WHERE parent IS NULL",
        [agent.to_string()],
        |row| row.id(0),
    )?;
    Ok(top.unwrap_or(agent))
}

/// The query for the number of open dispatches of a tree.
pub(crate) fn open_in_tree_query(tree: AgentId) -> Query<'static> {
    Query::new(
        "SELECT count(*) FROM inputs WHERE tree = ?1 AND state IN ('waiting', 'claimed')",
        [Value::id(&tree)],
    )
}

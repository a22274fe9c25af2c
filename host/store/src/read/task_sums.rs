//! Sums of tasks: each task that is meant is looked at once, and none of them is kept.

use super::{ReadError, TaskFilter, tasks};
use crate::sql::{Columns, Sql, int, to_json};
use crate::store::Store;
use domain::id::AgentId;
use domain::task::{TaskSample, TaskStats, TaskTally};
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Params, Row, params};

/// The statement for the tasks that are meant, in no order: grouping or sorting them here would
/// hold them all in memory, where this database has its temporary tables.
macro_rules! counted {
    ($of:literal) => {
        concat!(
            "SELECT coalesce(t.target, CASE WHEN json_valid(w.agent) THEN json_extract(w.agent, \
             '$.definition') END, t.kind), t.operation, t.state, i.state, i.held, r.outcome, \
             EXISTS (SELECT 1 FROM operations o WHERE o.run = i.run AND o.asks), \
             coalesce(t.ended_at, r.ended_at), t.created_at, coalesce(t.tokens, r.tokens, 0), \
             coalesce(t.cost_micros, r.cost_micros, 0) FROM (",
            $of,
            ") CROSS JOIN tasks t ON t.id = which LEFT JOIN inputs i ON i.id = t.input LEFT JOIN \
             runs r ON r.id = i.run LEFT JOIN agents w ON w.id = t.to_agent WHERE t.agent NOT IN \
             (SELECT value FROM json_each(?3))"
        )
    };
}

/// All tasks.
const COUNTED_OF_ALL: &str =
    counted!("SELECT id AS which FROM tasks WHERE created_at >= ?1 AND created_at < ?2");

/// The tasks that were handed over in a session.
pub(crate) const COUNTED_OF_SESSION: &str = counted!(
    "SELECT k.id AS which FROM tasks k WHERE k.session = ?4 AND (?5 IS NULL OR k.agent = ?5 OR \
     k.to_agent = ?5) AND (?6 IS NULL OR EXISTS (SELECT 1 FROM access a CROSS JOIN sessions s ON \
     s.id = k.session WHERE a.user_id = ?6 AND a.agent = k.agent AND s.status <> 'deleted' AND \
     (a.role <> 'mentee' OR s.user_id = ?6))) AND k.created_at >= ?1 AND k.created_at < ?2"
);

/// The tasks in sessions that a user sees, from the agents on that the user reaches.
pub(crate) const COUNTED_OF_USER: &str = counted!(
    "SELECT k.id AS which FROM access a CROSS JOIN tasks k ON k.agent = a.agent CROSS JOIN \
     sessions s ON s.id = k.session WHERE a.user_id = ?4 AND (?5 IS NULL OR k.agent = ?5 OR \
     k.to_agent = ?5) AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = ?4) AND \
     k.created_at >= ?1 AND k.created_at < ?2"
);

/// The tasks that an agent handed over, or does.
pub(crate) const COUNTED_OF_AGENT: &str = counted!(
    "SELECT id AS which FROM tasks WHERE agent = ?4 AND created_at >= ?1 AND created_at < ?2 UNION \
     ALL SELECT id FROM tasks WHERE to_agent = ?4 AND agent <> ?4 AND created_at >= ?1 AND \
     created_at < ?2"
);

/// Counts the tasks that are meant, by the narrowest field that is given.
fn tally(sql: &Sql<'_>, filter: &TaskFilter, hidden: &[AgentId]) -> rusqlite::Result<TaskTally> {
    let from = int(filter.from.map_or(0, |from| from.0));
    let to = int(filter.to.map_or(u64::MAX >> 1, |to| to.0));
    let hidden: Vec<String> = hidden.iter().map(AgentId::to_string).collect();
    let hidden = to_json(&hidden)?;
    let session = filter.session.map(|session| session.to_string());
    let agent = filter.agent.map(|agent| agent.to_string());
    let user = filter.user.as_ref().map(UserId::as_str);
    match (session, user, agent) {
        (Some(session), user, agent) => counted(
            sql,
            COUNTED_OF_SESSION,
            params![from, to, hidden, session, agent, user],
        ),
        (None, Some(user), agent) => {
            counted(sql, COUNTED_OF_USER, params![from, to, hidden, user, agent])
        }
        (None, None, Some(agent)) => {
            counted(sql, COUNTED_OF_AGENT, params![from, to, hidden, agent])
        }
        (None, None, None) => counted(sql, COUNTED_OF_ALL, params![from, to, hidden]),
    }
}

/// Counts the rows of a statement as they come.
fn counted(sql: &Sql<'_>, text: &'static str, params: impl Params) -> rusqlite::Result<TaskTally> {
    sql.query(text, params, |rows| {
        let mut tally = TaskTally::default();
        while let Some(row) = rows.next()? {
            tally.add(read(row)?);
        }
        Ok(tally)
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<TaskSample> {
    let status = tasks::facts(row, 2)?.status();
    let ended = row.uint_opt(7)?.filter(|_| status.is_end());
    let created = Timestamp(row.uint(8)?);
    Ok(TaskSample {
        target: row.get(0)?,
        operation: row.get(1)?,
        status,
        duration_ms: ended.map(|ended| Timestamp(ended).since_ms(created)),
        tokens: row.uint(9)?,
        cost_micros: row.uint(10)?,
    })
}

impl Store {
    /// Returns the sums of tasks, without those that `hidden` agents handed over.
    ///
    /// The time grows with the tasks that are meant, the memory with their targets and operations
    /// only.
    pub async fn task_stats(
        &self,
        filter: TaskFilter,
        hidden: Vec<AgentId>,
    ) -> Result<TaskStats, ReadError> {
        self.read(move |sql| Ok(tally(sql, &filter, &hidden)?.stats()))
            .await
    }

    /// Returns the agents that a user reaches and that have handed work over, with their paths.
    pub async fn task_callers(&self, user: &UserId) -> Result<Vec<(AgentId, String)>, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            sql.rows(
                "SELECT c.id, c.path FROM access a CROSS JOIN agents c ON c.id = a.agent WHERE \
                 a.user_id = ?1 AND EXISTS (SELECT 1 FROM tasks t WHERE t.agent = c.id)",
                [user.as_str()],
                |row| Ok((row.id(0)?, row.get(1)?)),
            )
        })
        .await
    }
}

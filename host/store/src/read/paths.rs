//! The living hierarchy: the active agents by their paths, with how much each has to do.

use super::ReadError;
use super::agents::{AgentRow, COLUMNS, columns, read};
use crate::sql::{Columns, int, limit as rows};
use crate::store::Store;
use domain::id::{AgentId, SessionId};
use domain::residency::Work;
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};

/// An active agent with how much it has to do.
#[derive(Debug, Clone, PartialEq)]
pub struct LivingAgent {
    /// The agent.
    pub row: AgentRow,
    /// Role of the requesting user.
    pub role: AgentRole,
    /// Number of its sessions that take input.
    pub open_sessions: u64,
    /// Number of its open runs.
    pub open_runs: u64,
    /// State of its work.
    pub work: Work,
}

/// SQL columns of an agent's work. They are the number of open sessions, the number of open runs,
/// whether an input waits whose time (?1) has come, and the time of the last arrival.
macro_rules! work {
    () => {
        "(SELECT count(*) FROM sessions WHERE sessions.agent = agents.id AND sessions.status = \
         'open'), (SELECT count(*) FROM sessions WHERE sessions.agent = agents.id AND \
         sessions.open_run IS NOT NULL), EXISTS (SELECT 1 FROM sessions JOIN inputs ON \
         inputs.session_number = sessions.number AND inputs.state = 'waiting' AND (inputs.due IS \
         NULL OR inputs.due <= ?1) WHERE sessions.agent = agents.id), (SELECT \
         max(sessions.updated_at) FROM sessions WHERE sessions.agent = agents.id)"
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), ", access.role, ", work!(), $rest)
    };
}

impl Store {
    /// Returns a user's active agents at a path or below it (anywhere without one). These are
    /// agents that the user may do something with, in the order of their paths, after one, at most
    /// `limit`.
    pub async fn living_agents(
        &self,
        user: &UserId,
        under: Option<&str>,
        after: &str,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<LivingAgent>, ReadError> {
        let user = user.clone();
        let under = under.map(str::to_owned);
        let after = after.to_owned();
        self.read(move |sql| match under {
            // By the index of paths: `0` follows `/`. The path itself is not in the range of what
            // is below it.
            Some(under) => {
                let text = select!(
                    " FROM agents CROSS JOIN access ON access.agent = agents.id AND access.user_id \
                     = ?2 WHERE agents.active = 1 AND agents.path > ?4 AND agents.path >= ?3 AND \
                     agents.path < ?3 || '0' AND (agents.path = ?3 OR agents.path >= ?3 || '/') \
                     ORDER BY agents.path LIMIT ?5"
                );
                sql.rows(
                    text,
                    params![int(now.0), user.as_str(), under, after, rows(limit)],
                    living,
                )
            }
            None => {
                let text = select!(
                    " FROM access CROSS JOIN agents ON agents.id = access.agent WHERE \
                     access.user_id = ?2 AND agents.active = 1 \
                     AND agents.path > ?3 ORDER BY agents.path LIMIT ?4"
                );
                sql.rows(
                    text,
                    params![int(now.0), user.as_str(), after, rows(limit)],
                    living,
                )
            }
        })
        .await
    }

    /// Returns a user's topmost active agents, at most `limit`. The agent with the latest activity
    /// of the user comes first.
    pub async fn agents_by_last_use(
        &self,
        user: &UserId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<LivingAgent>, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            let text = select!(
                " FROM access CROSS JOIN agents ON agents.id = access.agent WHERE access.user_id = \
                 ?2 AND agents.active = 1 AND agents.parent IS NULL ORDER BY coalesce((SELECT \
                 max(s.updated_at) FROM sessions AS s WHERE s.agent = agents.id AND s.user_id = \
                 ?2), agents.created_at) DESC, agents.id LIMIT ?3"
            );
            sql.rows(
                text,
                params![int(now.0), user.as_str(), rows(limit)],
                living,
            )
        })
        .await
    }

    /// Returns the state of an agent's work.
    pub async fn work_of(&self, agent: AgentId, now: Timestamp) -> Result<Option<Work>, ReadError> {
        self.point_read(move |sql| {
            let text = concat!(
                "SELECT agents.created_at, ",
                work!(),
                " FROM agents WHERE agents.id = ?2"
            );
            sql.row(text, params![int(now.0), agent.to_string()], |row| {
                work(row, 1, Timestamp(row.uint(0)?))
            })
        })
        .await
    }

    /// The sessions of an agent with an open run, at most `limit`.
    pub async fn sessions_running_of(
        &self,
        agent: AgentId,
        limit: usize,
    ) -> Result<Vec<(SessionId, UserId)>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT id, user_id FROM sessions WHERE agent = ?1 AND open_run IS NOT NULL \
                        ORDER BY id LIMIT ?2";
            sql.rows(text, params![agent.to_string(), rows(limit)], |row| {
                Ok((row.id(0)?, row.id(1)?))
            })
        })
        .await
    }
}

fn living(row: &Row<'_>) -> rusqlite::Result<LivingAgent> {
    let agent = read(row)?;
    let work = work(row, COLUMNS + 1, agent.created_at)?;
    Ok(LivingAgent {
        role: row.id(COLUMNS)?,
        open_sessions: row.uint(COLUMNS + 1)?,
        open_runs: row.uint(COLUMNS + 2)?,
        work,
        row: agent,
    })
}

/// The columns of `work` from one on.
fn work(row: &Row<'_>, column: usize, made: Timestamp) -> rusqlite::Result<Work> {
    let is_busy = row.uint(column + 1)? > 0 || row.get::<_, bool>(column + 2)?;
    Ok(Work {
        is_busy,
        last: row.uint_opt(column + 3)?.map(Timestamp),
        made,
    })
}

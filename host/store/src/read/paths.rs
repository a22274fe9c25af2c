//! The living hierarchy: the active agents by their paths, with how much each has to do.

use super::ReadError;
use super::agents::AgentRow;
use crate::sql::{self, Cells, FromRow, args, named, row, text};
use crate::store::Store;
use domain::id::{AgentId, SessionId};
use domain::residency::Work;
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;

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

row! {
    /// The work of an agent at a time, `:now`.
    struct WorkRow {
        open_sessions: u64 = "(SELECT count(*) FROM sessions WHERE sessions.agent = agents.id AND \
                              sessions.status = 'open')",
        open_runs: u64 = "(SELECT count(*) FROM sessions WHERE sessions.agent = agents.id AND \
                          sessions.open_run IS NOT NULL)",
        /// True if a waiting input is due.
        is_awaited: bool =
            "EXISTS (SELECT 1 FROM sessions JOIN inputs ON inputs.session_number = sessions.number \
             AND inputs.state = 'waiting' AND (inputs.due IS NULL OR inputs.due <= :now) WHERE \
             sessions.agent = agents.id)",
        /// Time of the last inbound message.
        last: Option<Timestamp> =
            "(SELECT max(sessions.updated_at) FROM sessions WHERE sessions.agent = agents.id)",
    }
}

impl WorkRow {
    fn of_agent_made_at(&self, made: Timestamp) -> Work {
        Work {
            is_busy: self.open_runs > 0 || self.is_awaited,
            last: self.last,
            made,
        }
    }
}

impl FromRow for LivingAgent {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let (row, role, work): (AgentRow, AgentRole, WorkRow) = FromRow::read(cells)?;
        Ok(Self {
            role,
            open_sessions: work.open_sessions,
            open_runs: work.open_runs,
            work: work.of_agent_made_at(row.created_at),
            row,
        })
    }
}

macro_rules! select_living {
    ($rest:literal) => {
        text!(
            "SELECT ",
            AgentRow::COLUMNS,
            ", access.role, ",
            WorkRow::COLUMNS,
            $rest
        )
    };
}

impl Store {
    /// Returns a user's active agents at a path or below it (all of them without a path). These are
    /// agents that the user has a role with, ordered by path, after one, at most `limit`.
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
            // By the index of paths: `0` follows `/`. The range of the paths below does not include
            // the path itself.
            Some(under) => {
                let text = select_living!(
                    " FROM agents CROSS JOIN access ON access.agent = agents.id AND access.user_id \
                     = :user WHERE agents.active = 1 AND agents.path > :after AND agents.path >= \
                     :under AND agents.path < :under || '0' AND (agents.path = :under OR \
                     agents.path >= :under || '/') ORDER BY agents.path LIMIT :limit"
                );
                let params = named![now, user, under, after, limit];
                sql.all(text, params)
            }
            None => {
                let text = select_living!(
                    " FROM access CROSS JOIN agents ON agents.id = access.agent WHERE \
                     access.user_id = :user AND agents.active = 1 AND agents.path > :after ORDER \
                     BY agents.path LIMIT :limit"
                );
                let params = named![now, user, after, limit];
                sql.all(text, params)
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
            let text = select_living!(
                " FROM access CROSS JOIN agents ON agents.id = access.agent WHERE access.user_id = \
                 :user AND agents.active = 1 AND agents.parent IS NULL ORDER BY coalesce((SELECT \
                 max(s.updated_at) FROM sessions AS s WHERE s.agent = agents.id AND s.user_id = \
                 :user), agents.created_at) DESC, agents.id LIMIT :limit"
            );
            sql.all(text, named![now, user, limit])
        })
        .await
    }

    /// Returns the state of an agent's work.
    pub async fn work_of(&self, agent: AgentId, now: Timestamp) -> Result<Option<Work>, ReadError> {
        self.point_read(move |sql| {
            let text = text!(
                "SELECT agents.created_at, ",
                WorkRow::COLUMNS,
                " FROM agents WHERE agents.id = :agent"
            );
            let work: Option<(Timestamp, WorkRow)> = sql.one(text, named![now, agent])?;
            Ok(work.map(|(made, work)| work.of_agent_made_at(made)))
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
            sql.all(text, args![agent, limit])
        })
        .await
    }
}

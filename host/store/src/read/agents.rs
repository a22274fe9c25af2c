//! Agents in their present state, and the roles of users with them.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, Json, Sql, args, named, row, select, text};
use crate::store::Store;
use domain::agent::Agent;
use domain::agent::assignment::Assignment;
use domain::id::{AgentId, SessionId};
use domain::path::PathKind;
use domain::residency::Work;
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::{Map, Value};
use uuid::Uuid;

/// An agent with its facts.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRow {
    /// The fold of its stream. Its users and the data that it remembers of them are included only
    /// on request ([`Store::agent_with_users`]).
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
    /// True if it was purged, or is about to be. Then nothing is left except the fact that it
    /// existed.
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

impl AgentRow {
    pub(super) const COLUMNS: &str = "agents.agent, agents.parent, agents.version, \
                                      agents.created_at, agents.updated_at, agents.active, \
                                      agents.sub_count, agents.kind, (SELECT above.path FROM \
                                      agents AS above WHERE above.id = agents.parent) AS \
                                      parent_path, agents.purged";
    const FROM: &str = "agents";
}

impl FromRow for AgentRow {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let Json(agent): Json<Agent> = cells.next("agent")?;
        Ok(Self {
            parent: cells.next("parent")?,
            version: cells.next("version")?,
            created_at: cells.next("created_at")?,
            updated_at: cells.next("updated_at")?,
            active: cells.next("active")?,
            sub_count: cells.next("sub_count")?,
            kind: cells.next("kind")?,
            parent_path: cells.next("parent_path")?,
            purged: cells.next("purged")?,
            agent,
        })
    }
}

/// Selects agents with the user's role. A user's role with an agent also holds for the agents below
/// it.
macro_rules! select_with_role {
    ($rest:literal) => {
        text!(
            "SELECT ",
            AgentRow::COLUMNS,
            ", access.role FROM access CROSS JOIN agents ON agents.id = access.agent ",
            $rest
        )
    };
}

impl Store {
    /// An agent.
    pub async fn agent(&self, id: AgentId) -> Result<Option<AgentRow>, ReadError> {
        self.point_read(move |sql| sql.one::<AgentRow>(select!(AgentRow, "WHERE id = ?1"), [id]))
            .await
    }

    /// An agent with all its users, and the data that it remembers of each.
    pub async fn agent_with_users(&self, id: AgentId) -> Result<Option<AgentRow>, ReadError> {
        self.read(move |sql| {
            let Some(mut row) = sql.one::<AgentRow>(select!(AgentRow, "WHERE id = ?1"), [id])?
            else {
                return Ok(None);
            };
            add_users(sql, &mut row.agent)?;
            Ok(Some(row))
        })
        .await
    }

    /// Returns the data that an agent remembers of a user; none if it never remembered any.
    pub async fn remembered_of(
        &self,
        agent: AgentId,
        user: &UserId,
    ) -> Result<Option<Map<String, Value>>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text =
                "SELECT preferences FROM agent_preferences WHERE agent = ?1 AND user_id = ?2";
            sql.json(text, args![agent, user])
        })
        .await
    }

    /// An agent that a user has a role with, and that role.
    pub async fn agent_for(
        &self,
        user: &UserId,
        id: AgentId,
    ) -> Result<Option<(AgentRow, AgentRole)>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text = select_with_role!("WHERE access.user_id = ?1 AND access.agent = ?2");
            sql.one(text, args![user, id])
        })
        .await
    }

    /// The agents that a user has a role with, ordered by id, after one, at most `limit`; with all
    /// their users.
    pub async fn agents(
        &self,
        user: &UserId,
        filter: AgentFilter,
        after: Option<AgentId>,
        limit: usize,
    ) -> Result<Vec<(AgentRow, AgentRole)>, ReadError> {
        let user = user.clone();
        let after = after.unwrap_or(AgentId(Uuid::nil()));
        self.read(move |sql| {
            let text = select_with_role!(
                "WHERE access.user_id = :user AND access.agent > :after AND agents.active = \
                 :active AND (:agent_type IS NULL OR agents.agent_type = :agent_type) AND (:role \
                 IS NULL OR access.role = :role) AND (NOT :topmost OR agents.parent IS NULL) ORDER \
                 BY access.agent LIMIT :limit"
            );
            let AgentFilter {
                agent_type,
                role,
                active,
                topmost,
            } = filter;
            let params = named![user, after, active, agent_type, role, topmost, limit];
            let mut rows: Vec<(AgentRow, AgentRole)> = sql.all(text, params)?;
            rows.iter_mut()
                .try_for_each(|(row, _)| add_users(sql, &mut row.agent))?;
            Ok(rows)
        })
        .await
    }

    /// The active agent at a path.
    pub async fn agent_at(&self, path: &str) -> Result<Option<AgentRow>, ReadError> {
        let path = path.to_owned();
        self.point_read(move |sql| {
            sql.one(select!(AgentRow, "WHERE path = ?1 AND active = 1"), [path])
        })
        .await
    }

    /// Returns the active agents at a path and at its numbered siblings (`<path>.2`, `<path>.3`,
    /// …), with a user's role with each. They are ordered by path, at most `limit`.
    pub async fn agents_numbered(
        &self,
        user: &UserId,
        path: &str,
        limit: usize,
    ) -> Result<Vec<(AgentRow, Option<AgentRole>)>, ReadError> {
        let user = user.clone();
        let path = path.to_owned();
        self.point_read(move |sql| {
            // `/` follows `.` in byte order: the range contains the path itself, the paths that
            // begin with it and a `.`, and little else.
            let text = text!(
                "SELECT ",
                AgentRow::COLUMNS,
                ", (SELECT role FROM access WHERE access.user_id = :user AND access.agent = \
                 agents.id) AS role FROM agents WHERE path >= :path AND path < :path || '/' AND \
                 active = 1 AND (path = :path OR substr(path, length(:path) + 1, 1) = '.') ORDER \
                 BY length(path), path LIMIT :limit"
            );
            sql.all(text, named![path, limit, user])
        })
        .await
    }

    /// An agent and all below it, in the order of their making.
    pub async fn agents_of_tree(&self, root: AgentId) -> Result<Vec<AgentRow>, ReadError> {
        self.read(move |sql| {
            let text = select!(AgentRow, "WHERE root = ?1 ORDER BY created_at, id");
            sql.all(text, [root])
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
            sql.one(
                "SELECT role FROM access WHERE user_id = ?1 AND agent = ?2",
                args![user, agent],
            )
        })
        .await
    }
}

/// Reads the topmost agent above one; that agent itself when none is above it.
pub(crate) fn root(sql: &Sql<'_>, agent: AgentId) -> sql::Result<AgentId> {
    let root = sql.one("SELECT root FROM agents WHERE id = ?1", [agent])?;
    Ok(root.unwrap_or(agent))
}

/// Adds to an agent its users, and the data that it remembers of each.
fn add_users(sql: &Sql<'_>, agent: &mut Agent) -> sql::Result<()> {
    let text = "SELECT assignment FROM agent_users WHERE agent = ?1 ORDER BY place";
    let assignments: Vec<Json<Assignment>> = sql.all(text, [agent.id])?;
    agent.assignments = assignments.into_iter().map(|it| it.0).collect();
    let text = "SELECT user_id, preferences FROM agent_preferences WHERE agent = ?1";
    let remembered: Vec<(UserId, Json<Map<String, Value>>)> = sql.all(text, [agent.id])?;
    let remembered = remembered
        .into_iter()
        .map(|(user, Json(keys))| (user, keys));
    agent.user_preferences = remembered.collect();
    Ok(())
}

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

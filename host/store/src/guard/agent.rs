//! Guards on an agent: whether it is active, its users, its address and its sessions.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::{Query, Rows, Value};
use crate::read::queue::{blocked_query, open_by_run_query, open_in_tree_query};
use crate::sql::{self, Columns};
use domain::id::{AgentId, RunId, SessionId};
use domain::role::{AgentRole, Right};
use domain::user::UserId;

/// Condition on an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentGuard {
    /// The agent exists, and neither it nor the topmost one above it was archived.
    Active(AgentId),
    /// The agent's slot for structured sessions is free, or this session holds it.
    SlotFor {
        /// The agent.
        agent: AgentId,
        /// The session.
        session: SessionId,
    },
    /// The agent has spawned exactly so many so far.
    SubCount {
        /// The agent.
        agent: AgentId,
        /// Expected number of spawned agents.
        count: u64,
    },
    /// The user has a role with the agent, or with the topmost one above it, that allows this.
    Role {
        /// The agent.
        agent: AgentId,
        /// The user.
        user: UserId,
        /// The right that the role must grant.
        right: Right,
    },
    /// At most so many dispatches of this tree of agents are open before this commit. The tree is
    /// named by its topmost agent.
    TreeDispatchesAtMost {
        /// The tree.
        tree: AgentId,
        /// Maximum number of dispatches.
        max: u64,
    },
    /// At most so many dispatches of this run are open before this commit.
    RunDispatchesAtMost {
        /// The tree of the run's agent.
        tree: AgentId,
        /// The run.
        run: RunId,
        /// Maximum number of dispatches.
        max: u64,
    },
    /// At most so many delegations of this tree of agents wait for room before this commit.
    BlockedAtMost {
        /// The tree.
        tree: AgentId,
        /// Maximum number of delegations.
        max: u64,
    },
    /// No active agent lives at this path.
    PathFree(String),
}

impl Condition for AgentGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::Active(agent) => ask(
                "SELECT 1 FROM agents WHERE id = ?1 AND active",
                [Value::id(agent)],
            ),
            Self::SlotFor { agent, .. } => {
                ask("SELECT slot FROM agents WHERE id = ?1", [Value::id(agent)])
            }
            Self::SubCount { agent, .. } => ask(
                "SELECT sub_count FROM agents WHERE id = ?1",
                [Value::id(agent)],
            ),
            Self::Role { agent, user, .. } => [
                Some(Question::Role {
                    agent: *agent,
                    user,
                }),
                None,
            ],
            Self::TreeDispatchesAtMost { tree, .. } => {
                [Some(Question::Other(open_in_tree_query(*tree))), None]
            }
            Self::RunDispatchesAtMost { run, .. } => {
                [Some(Question::Other(open_by_run_query(*run))), None]
            }
            Self::BlockedAtMost { tree, .. } => [Some(Question::Other(blocked_query(*tree))), None],
            Self::PathFree(path) => ask(
                "SELECT id FROM agents WHERE path = ?1 AND active = 1",
                [Value::text(path)],
            ),
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::Active(_) => unless(!rows.is_empty(), || {
                "it is archived, or not there".to_owned()
            }),
            Self::SlotFor { session, .. } => match rows.first() {
                Some(row) => row
                    .get::<Option<SessionId>>(0)?
                    .filter(|holder| holder != session)
                    .map(|holder| format!("session {holder} holds it")),
                None => Some(NO_AGENT.to_owned()),
            },
            Self::SubCount { count, .. } => match rows.first() {
                Some(row) => {
                    let found = row.uint(0)?;
                    unless(found == *count, || format!("it has {found}"))
                }
                None => Some(NO_AGENT.to_owned()),
            },
            Self::Role { right, .. } => {
                let role = read_role(rows)?;
                unless(role.is_some_and(|role| role.may(*right)), || {
                    role.map_or("they are not assigned to it".to_owned(), |role| {
                        format!("they are {}", role.as_str())
                    })
                })
            }
            Self::TreeDispatchesAtMost { max, .. }
            | Self::RunDispatchesAtMost { max, .. }
            | Self::BlockedAtMost { max, .. } => {
                let open = rows.number()?;
                unless(open <= *max, || format!("{open} have not ended"))
            }
            Self::PathFree(_) => match rows.first() {
                Some(row) => Some(format!("agent {} is there", row.get::<AgentId>(0)?)),
                None => None,
            },
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::Active(agent) | Self::SlotFor { agent, .. } | Self::SubCount { agent, .. } => {
                vec![Resource::Agent(*agent)]
            }
            Self::Role { agent, user, .. } => {
                vec![Resource::Agent(*agent), Resource::User(user.clone())]
            }
            Self::TreeDispatchesAtMost { tree, .. }
            | Self::RunDispatchesAtMost { tree, .. }
            | Self::BlockedAtMost { tree, .. } => vec![Resource::Dispatches(*tree)],
            Self::PathFree(path) => vec![Resource::Path(path.clone())],
        }
    }
}

/// The query of [`Question::Role`].
pub(crate) fn role_query(agent: AgentId, user: &UserId) -> Query<'_> {
    Query::new(
        "SELECT role FROM access WHERE user_id = ?1 AND agent = ?2",
        [Value::text(user.as_str()), Value::id(&agent)],
    )
}

/// Reads the row that answers [`role_query`]. A role of a newer version counts as none.
pub(crate) fn read_role(rows: &Rows) -> sql::Result<Option<AgentRole>> {
    let role = rows.first().map(|row| row.text(0)).transpose()?;
    Ok(role.and_then(|role| role.parse().ok()))
}

/// Description of an agent that is not there.
const NO_AGENT: &str = "there is no such agent";

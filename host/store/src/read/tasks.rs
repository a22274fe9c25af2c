//! Tasks: work that agents handed to each other, a page at a time, with what became of it.

use super::ReadError;
use crate::sql::{Columns, Sql, int, limit as rows, unreadable};
use crate::store::Store;
use domain::delegate::TaskState;
use domain::digest::Digest;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId};
use domain::task::{Carrier, TaskFacts, TaskKind, TaskStatus};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use domain::user::UserId;
use rusqlite::{Row, params};
use std::cmp::Reverse;

/// A task with what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The operation that handed it over.
    pub id: OperationId,
    /// The run of that operation.
    pub run: RunId,
    /// The session of that run.
    pub session: SessionId,
    /// The agent of that run.
    pub agent: AgentId,
    /// Path of that agent; none if it was purged.
    pub agent_path: Option<String>,
    /// The user for whom that run works.
    pub user_id: UserId,
    /// The way in which it was handed over.
    pub kind: TaskKind,
    /// The target: that of a delegation, or the definition of the agent that does it.
    pub target: Option<String>,
    /// The operation of a delegation.
    pub operation: Option<String>,
    /// The beginning of its parameters.
    pub parameters: Option<String>,
    /// The agent that does it.
    pub to_agent: AgentId,
    /// The session that it was handed to.
    pub to_session: SessionId,
    /// The input that carries it.
    pub input: InputId,
    /// The run that took it up.
    pub child: Option<RunId>,
    /// True if nobody waits for it.
    pub detached: bool,
    /// Time at which it ends as timed out.
    pub deadline: Option<Timestamp>,
    /// Time at which it was handed over.
    pub created_at: Timestamp,
    /// Time at which its turn began.
    pub started_at: Option<Timestamp>,
    /// Time at which it ended.
    pub ended_at: Option<Timestamp>,
    /// Its state.
    pub status: TaskStatus,
    /// Tokens that it used so far.
    pub tokens: u64,
    /// Calls of tools and agents that it made so far.
    pub calls: u64,
    /// Its cost so far, in millionths.
    pub cost_micros: u64,
}

/// The tasks that are meant. One has to match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// In sessions that this user sees; of all users without one.
    pub user: Option<UserId>,
    /// Handed over in this session.
    pub session: Option<SessionId>,
    /// Handed over by this agent, or done by it.
    pub agent: Option<AgentId>,
    /// Handed over at this time or later.
    pub from: Option<Timestamp>,
    /// Handed over before this time.
    pub to: Option<Timestamp>,
}

macro_rules! select {
    ($of:literal) => {
        concat!(
            "SELECT t.id, t.run, t.session, t.agent, c.path, t.user_id, t.kind, coalesce(t.target, \
             CASE WHEN json_valid(w.agent) THEN json_extract(w.agent, '$.definition') END), \
             t.operation, t.parameters, t.to_agent, t.to_session, t.input, i.run, t.detached, \
             t.deadline, t.created_at, r.started_at, coalesce(t.ended_at, r.ended_at), t.state, \
             i.state, i.held, r.outcome, EXISTS (SELECT 1 FROM operations o WHERE o.run = i.run \
             AND o.asks), coalesce(t.tokens, r.tokens, 0), coalesce(t.calls, r.calls, 0), \
             coalesce(t.cost_micros, r.cost_micros, 0) FROM (",
            $of,
            ") CROSS JOIN tasks t ON t.id = which LEFT JOIN inputs i ON i.id = t.input LEFT JOIN \
             runs r ON r.id = i.run LEFT JOIN agents c ON c.id = t.agent LEFT JOIN agents w ON \
             w.id = t.to_agent"
        )
    };
}

/// A page of all tasks.
pub(crate) const OF_ALL: &str = select!(
    "SELECT id AS which FROM tasks WHERE (created_at, id) < (?1, ?2) AND created_at >= ?3 AND \
     created_at < ?4 ORDER BY created_at DESC, id DESC LIMIT ?5"
);

/// A page of the tasks that were handed over in a session.
pub(crate) const OF_SESSION: &str = select!(
    "SELECT k.id AS which FROM tasks k WHERE k.session = ?6 AND (?7 IS NULL OR k.agent = ?7 OR \
     k.to_agent = ?7) AND (?8 IS NULL OR EXISTS (SELECT 1 FROM access a CROSS JOIN sessions s ON \
     s.id = k.session WHERE a.user_id = ?8 AND a.agent = k.agent AND s.status <> 'deleted' AND \
     (a.role <> 'mentee' OR s.user_id = ?8))) AND (k.created_at, k.id) < (?1, ?2) AND \
     k.created_at >= ?3 AND k.created_at < ?4 ORDER BY k.created_at DESC, k.id DESC LIMIT ?5"
);

/// A page of the tasks in sessions that a user sees, from the agents on that the user reaches.
pub(crate) const OF_USER: &str = select!(
    "SELECT k.id AS which FROM access a CROSS JOIN tasks k ON k.agent = a.agent CROSS JOIN \
     sessions s ON s.id = k.session WHERE a.user_id = ?6 AND (?7 IS NULL OR k.agent = ?7 OR \
     k.to_agent = ?7) AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = ?6) AND \
     (k.created_at, k.id) < (?1, ?2) AND k.created_at >= ?3 AND k.created_at < ?4 ORDER BY \
     k.created_at DESC, k.id DESC LIMIT ?5"
);

/// A page of the tasks that an agent handed over, or does.
pub(crate) const OF_AGENT: &str = select!(
    "SELECT id AS which FROM (SELECT id, created_at FROM tasks WHERE agent = ?6 AND (created_at, \
     id) < (?1, ?2) AND created_at >= ?3 AND created_at < ?4 UNION SELECT id, created_at FROM \
     tasks WHERE to_agent = ?6 AND (created_at, id) < (?1, ?2) AND created_at >= ?3 AND \
     created_at < ?4) ORDER BY created_at DESC, id DESC LIMIT ?5"
);

/// A task, if it is in a session that a user sees; of any user without one.
const OF_ID: &str = select!(
    "SELECT k.id AS which FROM tasks k WHERE k.id = ?1 AND (?2 IS NULL OR EXISTS (SELECT 1 FROM \
     access a CROSS JOIN sessions s ON s.id = k.session WHERE a.user_id = ?2 AND a.agent = k.agent \
     AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = ?2)))"
);

/// A part of a list of tasks.
#[derive(Debug, Clone, Copy)]
struct Page {
    after: Place,
    limit: usize,
}

/// The place of a task in a list, the newest first.
#[derive(Debug, Clone, Copy)]
struct Place {
    created_at: Timestamp,
    id: OperationId,
}

/// Reads a page of the tasks that are meant, by the narrowest field that is given.
fn listed(sql: &Sql<'_>, filter: &TaskFilter, page: Page) -> rusqlite::Result<Vec<TaskRow>> {
    let time = int(page.after.created_at.0);
    let id = page.after.id.0.0;
    let from = int(filter.from.map_or(0, |from| from.0));
    let to = int(filter.to.map_or(u64::MAX >> 1, |to| to.0));
    let limit = rows(page.limit);
    let session = filter.session.map(|session| session.to_string());
    let agent = filter.agent.map(|agent| agent.to_string());
    let user = filter.user.as_ref().map(UserId::as_str);
    let mut found = match (session, user, agent) {
        (Some(session), user, agent) => sql.rows(
            OF_SESSION,
            params![time, id, from, to, limit, session, agent, user],
            read,
        ),
        (None, Some(user), agent) => sql.rows(
            OF_USER,
            params![time, id, from, to, limit, user, agent],
            read,
        ),
        (None, None, Some(agent)) => {
            sql.rows(OF_AGENT, params![time, id, from, to, limit, agent], read)
        }
        (None, None, None) => sql.rows(OF_ALL, params![time, id, from, to, limit], read),
    }?;
    // They come in this order as SQLite works, and no statement promises it.
    found.sort_by_key(|row| Reverse((row.created_at, row.id)));
    Ok(found)
}

impl Store {
    /// Returns tasks, the newest first and from the one after `after`, at most `limit`.
    pub async fn tasks(
        &self,
        filter: TaskFilter,
        after: Option<(Timestamp, OperationId)>,
        limit: usize,
    ) -> Result<Vec<TaskRow>, ReadError> {
        let first = Place {
            created_at: Timestamp(u64::MAX >> 1),
            id: OperationId(Digest([u8::MAX; 32])),
        };
        let page = Page {
            after: after.map_or(first, |(created_at, id)| Place { created_at, id }),
            limit,
        };
        self.read(move |sql| listed(sql, &filter, page)).await
    }

    /// Returns delegations whose callers wait for them, at most `limit`: for whom they work, and
    /// the inputs that carry them.
    pub async fn delegations_under_way(
        &self,
        limit: usize,
    ) -> Result<Vec<(OperationId, UserId, InputId)>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                "SELECT id, user_id, input FROM tasks WHERE state IS NULL AND kind = 'delegate' \
                 LIMIT ?1",
                [rows(limit)],
                |row| Ok((OperationId(row.digest(0)?), row.id(1)?, row.id(2)?)),
            )
        })
        .await
    }

    /// Returns a task, if it is in a session that the user sees; of any user without one.
    pub async fn task(
        &self,
        id: OperationId,
        user: Option<&UserId>,
    ) -> Result<Option<TaskRow>, ReadError> {
        let user = user.cloned();
        self.read(move |sql| {
            sql.row(
                OF_ID,
                params![id.0.0, user.as_ref().map(UserId::as_str)],
                read,
            )
        })
        .await
    }
}

/// Reads the facts from which a task's state follows, from five columns on: its own state, that of
/// its input and what that is held for, the outcome of its turn, and whether that asks.
pub(super) fn facts(row: &Row<'_>, first: usize) -> rusqlite::Result<TaskFacts> {
    let queued = row.uint_opt(first + 2)?.is_some_and(|held| held > 0);
    let carrier = match row.text_opt(first + 1)? {
        Some("waiting") => Carrier::Waiting { queued },
        Some("claimed") => Carrier::Claimed,
        Some("consumed") => Carrier::Consumed,
        Some("dead") => Carrier::Dead,
        Some(_) | None => Carrier::Gone,
    };
    Ok(TaskFacts {
        settled: read_word(row, first, TaskState::from_word)?,
        carrier,
        end: read_word(row, first + 3, TurnEnd::from_word)?,
        asks: row.get(first + 4)?,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let time = |column| Ok::<_, rusqlite::Error>(row.uint_opt(column)?.map(Timestamp));
    let status = facts(row, 19)?.status();
    Ok(TaskRow {
        id: OperationId(row.digest(0)?),
        run: row.id(1)?,
        session: row.id(2)?,
        agent: row.id(3)?,
        agent_path: row.get(4)?,
        user_id: row.id(5)?,
        kind: read_word(row, 6, TaskKind::from_word)?.unwrap_or(TaskKind::Dispatch),
        target: row.get(7)?,
        operation: row.get(8)?,
        parameters: row.get(9)?,
        to_agent: row.id(10)?,
        to_session: row.id(11)?,
        input: row.id(12)?,
        child: row.id_opt(13)?,
        detached: row.get(14)?,
        deadline: time(15)?,
        created_at: Timestamp(row.uint(16)?),
        started_at: time(17)?,
        ended_at: time(18)?.filter(|_| status.is_end()),
        status,
        tokens: row.uint(24)?,
        calls: row.uint(25)?,
        cost_micros: row.uint(26)?,
    })
}

/// Reads a word of a closed list, or none.
fn read_word<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let Some(word) = row.text_opt(column)? else {
        return Ok(None);
    };
    match read(word) {
        Some(known) => Ok(Some(known)),
        None => Err(unreadable(column, format!("`{word}` is not known"))),
    }
}

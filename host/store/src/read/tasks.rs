//! Tasks: work that agents handed to each other, a page at a time, with its outcome.

use super::ReadError;
use crate::sql::{self, Args, FromRow, Sql, args, named, row, text};
use crate::sqlite::{ids, list};
use crate::store::Store;
use domain::delegate::TaskState;
use domain::digest::Digest;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId};
use domain::task::{Carrier, TaskFacts, TaskKind, TaskSample, TaskStats, TaskStatus, TaskTally};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use domain::user::UserId;
use std::cmp::Reverse;

/// A task with its facts.
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
    /// True if no caller waits for it.
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

/// A filter for tasks. A task has to match every field that is set.
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

row! {
    /// A task as it is stored, with the facts that determine its state.
    struct StoredTask {
        id: OperationId = "t.id",
        run: RunId = "t.run",
        session: SessionId = "t.session",
        agent: AgentId = "t.agent",
        agent_path: Option<String> = "c.path",
        user_id: UserId = "t.user_id",
        kind: TaskKind = "t.kind",
        target: Option<String> = "coalesce(t.target, w.definition)",
        operation: Option<String> = "t.operation",
        parameters: Option<String> = "t.parameters",
        to_agent: AgentId = "t.to_agent",
        to_session: SessionId = "t.to_session",
        input: InputId = "t.input",
        child: Option<RunId> = "i.run",
        detached: bool = "t.detached",
        deadline: Option<Timestamp> = "t.deadline",
        created_at: Timestamp = "t.created_at",
        started_at: Option<Timestamp> = "r.started_at",
        ended_at: Option<Timestamp> = "coalesce(t.ended_at, r.ended_at)",
        facts: StoredFacts as row,
        tokens: u64 = "coalesce(t.tokens, r.tokens, 0)",
        calls: u64 = "coalesce(t.calls, r.calls, 0)",
        cost_micros: u64 = "coalesce(t.cost_micros, r.cost_micros, 0)",
    }
}

row! {
    /// The facts from which a task's state follows.
    pub(super) struct StoredFacts {
        /// Its own state.
        state: Option<TaskState> = "t.state",
        /// The state of its input, and the reason why the input is blocked.
        carrier: Option<String> = "i.state",
        blocked: Option<u64> = "i.blocked",
        /// The outcome of its turn, and whether that asks.
        end: Option<TurnEnd> = "r.outcome",
        asks: bool = "EXISTS (SELECT 1 FROM operations o WHERE o.run = i.run AND o.asks)",
    }
}

impl StoredFacts {
    pub(super) fn status(self) -> TaskStatus {
        let queued = self.blocked.is_some_and(|blocked| blocked > 0);
        let carrier = match self.carrier.as_deref() {
            Some("waiting") => Carrier::Waiting { queued },
            Some("claimed") => Carrier::Claimed,
            Some("consumed") => Carrier::Consumed,
            Some("dead") => Carrier::Dead,
            Some(_) | None => Carrier::Gone,
        };
        let facts = TaskFacts {
            settled: self.state,
            carrier,
            end: self.end,
            asks: self.asks,
        };
        facts.status()
    }
}

impl From<StoredTask> for TaskRow {
    fn from(it: StoredTask) -> Self {
        let status = it.facts.status();
        Self {
            id: it.id,
            run: it.run,
            session: it.session,
            agent: it.agent,
            agent_path: it.agent_path,
            user_id: it.user_id,
            kind: it.kind,
            target: it.target,
            operation: it.operation,
            parameters: it.parameters,
            to_agent: it.to_agent,
            to_session: it.to_session,
            input: it.input,
            child: it.child,
            detached: it.detached,
            deadline: it.deadline,
            created_at: it.created_at,
            started_at: it.started_at,
            ended_at: it.ended_at.filter(|_| status.is_end()),
            status,
            tokens: it.tokens,
            calls: it.calls,
            cost_micros: it.cost_micros,
        }
    }
}

/// The tasks that a statement finds as `which`.
macro_rules! select_tasks {
    ($of:literal) => {
        text!(
            "SELECT ",
            StoredTask::COLUMNS,
            " FROM (",
            $of,
            ") CROSS JOIN tasks t ON t.id = which LEFT JOIN inputs i ON i.id = t.input LEFT JOIN \
             runs r ON r.id = i.run LEFT JOIN agents c ON c.id = t.agent LEFT JOIN agents w ON \
             w.id = t.to_agent"
        )
    };
}

/// A page of all tasks.
pub(crate) const OF_ALL: &str = select_tasks!(
    "SELECT id AS which FROM tasks WHERE (created_at, id) < (:time, :id) AND created_at >= :from \
     AND created_at < :to ORDER BY created_at DESC, id DESC LIMIT :limit"
);

/// A page of the tasks that were handed over in a session.
pub(crate) const OF_SESSION: &str = select_tasks!(
    "SELECT k.id AS which FROM tasks k WHERE k.session = :session AND (:agent IS NULL OR k.agent = \
     :agent OR k.to_agent = :agent) AND (:user IS NULL OR EXISTS (SELECT 1 FROM access a CROSS \
     JOIN sessions s ON s.id = k.session WHERE a.user_id = :user AND a.agent = k.agent AND \
     s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = :user))) AND (k.created_at, \
     k.id) < (:time, :id) AND k.created_at >= :from AND k.created_at < :to ORDER BY k.created_at \
     DESC, k.id DESC LIMIT :limit"
);

/// A page of the tasks in sessions that a user sees, from the agents on that the user reaches.
pub(crate) const OF_USER: &str = select_tasks!(
    "SELECT k.id AS which FROM access a CROSS JOIN tasks k ON k.agent = a.agent CROSS JOIN \
     sessions s ON s.id = k.session WHERE a.user_id = :user AND (:agent IS NULL OR k.agent = \
     :agent OR k.to_agent = :agent) AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id \
     = :user) AND (k.created_at, k.id) < (:time, :id) AND k.created_at >= :from AND k.created_at < \
     :to ORDER BY k.created_at DESC, k.id DESC LIMIT :limit"
);

/// A page of the tasks that an agent handed over, or does.
pub(crate) const OF_AGENT: &str = select_tasks!(
    "SELECT id AS which FROM (SELECT id, created_at FROM tasks WHERE agent = :agent AND \
     (created_at, id) < (:time, :id) AND created_at >= :from AND created_at < :to UNION SELECT id, \
     created_at FROM tasks WHERE to_agent = :agent AND (created_at, id) < (:time, :id) AND \
     created_at >= :from AND created_at < :to) ORDER BY created_at DESC, id DESC LIMIT :limit"
);

/// A task, if a user sees its session; of any user without one.
const OF_ID: &str = select_tasks!(
    "SELECT k.id AS which FROM tasks k WHERE k.id = ?1 AND (?2 IS NULL OR EXISTS (SELECT 1 FROM \
     access a CROSS JOIN sessions s ON s.id = k.session WHERE a.user_id = ?2 AND a.agent = k.agent \
     AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = ?2)))"
);

/// A time after all others.
pub(super) const TIME_MAX: Timestamp = Timestamp(u64::MAX >> 1);

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

/// Reads a page of the matching tasks, using the narrowest field that is set.
fn listed(sql: &Sql<'_>, filter: &TaskFilter, page: Page) -> sql::Result<Vec<TaskRow>> {
    let Page {
        after: Place { created_at, id },
        limit,
    } = page;
    let from = filter.from.unwrap_or(Timestamp(0));
    let to = filter.to.unwrap_or(TIME_MAX);
    macro_rules! of {
        ($text:ident $(, $name:ident)*) => {
            sql.all::<StoredTask>(
                $text,
                named![time = created_at, id, from, to, limit $(, $name)*],
            )
        };
    }
    let found = match (filter.session, &filter.user, filter.agent) {
        (Some(session), user, agent) => of!(OF_SESSION, session, agent, user),
        (None, Some(user), agent) => of!(OF_USER, user, agent),
        (None, None, Some(agent)) => of!(OF_AGENT, agent),
        (None, None, None) => of!(OF_ALL),
    }?;
    let mut found: Vec<TaskRow> = found.into_iter().map(TaskRow::from).collect();
    // SQLite happens to return them in this order, but no statement guarantees it.
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
            created_at: TIME_MAX,
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
            sql.all::<(OperationId, _, _)>(
                "SELECT id, user_id, input FROM tasks WHERE state IS NULL AND kind = 'delegate' \
                 LIMIT ?1",
                [limit],
            )
        })
        .await
    }

    /// Returns a task, if the user sees its session; of any user without one.
    pub async fn task(
        &self,
        id: OperationId,
        user: Option<&UserId>,
    ) -> Result<Option<TaskRow>, ReadError> {
        let user = user.cloned();
        self.read(move |sql| {
            let found: Option<StoredTask> = sql.one(OF_ID, args![id, user])?;
            Ok(found.map(TaskRow::from))
        })
        .await
    }
}

/// The statement for the matching tasks, unordered. Grouping or sorting them here would hold them
/// all in memory, where this database has its temporary tables.
macro_rules! counted {
    ($of:literal) => {
        text!(
            "SELECT ",
            StoredSample::COLUMNS,
            " FROM (",
            $of,
            ") CROSS JOIN tasks t ON t.id = which LEFT JOIN inputs i ON i.id = t.input LEFT JOIN \
             runs r ON r.id = i.run LEFT JOIN agents w ON w.id = t.to_agent WHERE t.agent NOT IN \
             ", ids!("hidden"), ""
        )
    };
}

row! {
    /// The counted parts of a task.
    struct StoredSample {
        target: String = "coalesce(t.target, w.definition, t.kind)",
        operation: Option<String> = "t.operation",
        facts: StoredFacts as row,
        ended: Option<Timestamp> = "coalesce(t.ended_at, r.ended_at)",
        created: Timestamp = "t.created_at",
        tokens: u64 = "coalesce(t.tokens, r.tokens, 0)",
        cost_micros: u64 = "coalesce(t.cost_micros, r.cost_micros, 0)",
    }
}

/// All tasks.
const COUNTED_OF_ALL: &str =
    counted!("SELECT id AS which FROM tasks WHERE created_at >= :from AND created_at < :to");

/// The tasks that were handed over in a session.
pub(crate) const COUNTED_OF_SESSION: &str = counted!(
    "SELECT k.id AS which FROM tasks k WHERE k.session = :session AND (:agent IS NULL OR k.agent = \
     :agent OR k.to_agent = :agent) AND (:user IS NULL OR EXISTS (SELECT 1 FROM access a CROSS \
     JOIN sessions s ON s.id = k.session WHERE a.user_id = :user AND a.agent = k.agent AND \
     s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id = :user))) AND k.created_at >= \
     :from AND k.created_at < :to"
);

/// The tasks in sessions that a user sees, from the agents on that the user reaches.
pub(crate) const COUNTED_OF_USER: &str = counted!(
    "SELECT k.id AS which FROM access a CROSS JOIN tasks k ON k.agent = a.agent CROSS JOIN \
     sessions s ON s.id = k.session WHERE a.user_id = :user AND (:agent IS NULL OR k.agent = \
     :agent OR k.to_agent = :agent) AND s.status <> 'deleted' AND (a.role <> 'mentee' OR s.user_id \
     = :user) AND k.created_at >= :from AND k.created_at < :to"
);

/// The tasks that an agent handed over, or does.
pub(crate) const COUNTED_OF_AGENT: &str = counted!(
    "SELECT id AS which FROM tasks WHERE agent = :agent AND created_at >= :from AND created_at < \
     :to UNION ALL SELECT id FROM tasks WHERE to_agent = :agent AND agent <> :agent AND created_at \
     >= :from AND created_at < :to"
);

/// Counts the matching tasks, using the narrowest field that is set.
fn tally(sql: &Sql<'_>, filter: &TaskFilter, hidden: &[AgentId]) -> sql::Result<TaskTally> {
    let from = filter.from.unwrap_or(Timestamp(0));
    let to = filter.to.unwrap_or(TIME_MAX);
    let hidden = list(hidden);
    macro_rules! of {
        ($text:ident $(, $name:ident)*) => {
            counted(
                sql,
                $text,
                named![from, to, hidden $(, $name)*],
            )
        };
    }
    match (filter.session, &filter.user, filter.agent) {
        (Some(session), user, agent) => of!(COUNTED_OF_SESSION, session, agent, user),
        (None, Some(user), agent) => of!(COUNTED_OF_USER, user, agent),
        (None, None, Some(agent)) => of!(COUNTED_OF_AGENT, agent),
        (None, None, None) => of!(COUNTED_OF_ALL),
    }
}

/// Counts the rows of a statement one by one.
fn counted(sql: &Sql<'_>, text: &'static str, params: impl Args) -> sql::Result<TaskTally> {
    sql.query(text, params, |rows| {
        let mut tally = TaskTally::default();
        while let Some(row) = rows.next()? {
            tally.add(StoredSample::from_row(sql, &row)?.into());
        }
        Ok(tally)
    })
}

impl From<StoredSample> for TaskSample {
    fn from(it: StoredSample) -> Self {
        let status = it.facts.status();
        let ended = it.ended.filter(|_| status.is_end());
        Self {
            target: it.target,
            operation: it.operation,
            status,
            duration_ms: ended.map(|ended| ended.since_ms(it.created)),
            tokens: it.tokens,
            cost_micros: it.cost_micros,
        }
    }
}

impl Store {
    /// Returns the sums of tasks, without those that `hidden` agents handed over.
    ///
    /// The time grows with the number of matching tasks, the memory only with their targets and
    /// operations.
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
            sql.all(
                "SELECT c.id, c.path FROM access a CROSS JOIN agents c ON c.id = a.agent WHERE \
                 a.user_id = ?1 AND EXISTS (SELECT 1 FROM tasks t WHERE t.agent = c.id)",
                [user],
            )
        })
        .await
    }
}

//! Sums of tasks. Each matching task is read once, and none is kept in memory.

use super::tasks::{StoredFacts, TIME_MAX};
use super::{ReadError, TaskFilter};
use crate::sql::{self, Args, FromRow, Sql, named, row, text};
use crate::sqlite::{ids, list};
use crate::store::Store;
use domain::id::AgentId;
use domain::task::{TaskSample, TaskStats, TaskTally};
use domain::time::Timestamp;
use domain::user::UserId;

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

//! Usage of settled work: sums by a key, a page at a time, and of everything together.

use super::ReadError;
use crate::sql::{Columns, Sql, int, limit as rows};
use crate::store::Store;
use domain::id::{AgentId, SessionId};
use domain::usage::{COLUMNS, Day, UsageSum};
use domain::user::UserId;
use rusqlite::types::Value;
use rusqlite::{Row, params};

/// The key by which usage is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The session in which it was used.
    Session,
    /// The agent.
    Agent,
    /// The user for whom the turn worked.
    User,
    /// The UTC day on which it settled.
    Day,
    /// The provider's name of the model.
    Model,
}

/// The usage that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// Only of this user.
    pub user: Option<UserId>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only of this session.
    pub session: Option<SessionId>,
}

/// Sums under one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// An id, a day or a model's name; empty for what was purged, and for what is no model's.
    pub key: String,
    /// Path of the agent, where the key is an agent or a session of one.
    pub agent_path: Option<String>,
    /// The sums.
    pub sum: UsageSum,
}

/// Columns of the sums, in the order of [`UsageSum::numbers`].
macro_rules! sums {
    () => {
        "coalesce(sum(model_calls), 0), coalesce(sum(attempts), 0), \
         coalesce(sum(unpriced_attempts), 0), coalesce(sum(input_tokens), 0), \
         coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0), \
         coalesce(sum(cost_micros), 0), coalesce(sum(tool_calls), 0), coalesce(sum(active_ms), \
         0), coalesce(sum(reserved_tokens), 0), coalesce(sum(reserved_cost_micros), 0)"
    };
}

/// The rows that are meant: those of a user are found by them, all others by their days.
macro_rules! meant {
    (everybody) => {
        "day BETWEEN ?1 AND ?2 AND ?3 IS NULL AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR \
         session = ?5)"
    };
    (user) => {
        "user_id = ?3 AND day BETWEEN ?1 AND ?2 AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR \
         session = ?5)"
    };
}

/// The statement for a page of sums by a column.
macro_rules! sums_by {
    ($column:literal, $whose:ident) => {
        concat!(
            "SELECT ",
            sums!(),
            ", ",
            $column,
            ", max(agent) FROM usage WHERE ",
            meant!($whose),
            " AND (?6 IS NULL OR ",
            $column,
            " > ?6) GROUP BY ",
            $column,
            " ORDER BY ",
            $column,
            " LIMIT ?7"
        )
    };
}

impl Store {
    /// Returns sums by a key, in the order of the keys and from the one after `after`, at most
    /// `limit`.
    ///
    /// The cost grows with the rows of the days that are meant, of which there is one for each day,
    /// session, user and model.
    pub async fn usage(
        &self,
        by: UsageBy,
        filter: UsageFilter,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<UsageRow>, ReadError> {
        self.read(move |sql| {
            let after = after.map(|key| after_value(by, key));
            let found = sql.rows(
                statement(by, filter.user.is_some()),
                params![
                    filter.from.0,
                    filter.to.0,
                    filter.user.as_ref().map(UserId::as_str),
                    filter.agent.map(|agent| agent.to_string()),
                    filter.session.map(|session| session.to_string()),
                    after,
                    rows(limit),
                ],
                |row| Ok((sum(row)?, key(by, row)?, row.get::<_, String>(COLUMNS + 1)?)),
            )?;
            found
                .into_iter()
                .map(|(sum, key, agent)| {
                    let agent_path = match by {
                        UsageBy::Session | UsageBy::Agent => path_of(sql, &agent)?,
                        UsageBy::User | UsageBy::Day | UsageBy::Model => None,
                    };
                    Ok(UsageRow {
                        key,
                        agent_path,
                        sum,
                    })
                })
                .collect()
        })
        .await
    }

    /// Returns the sums of everything that is meant.
    pub async fn usage_total(&self, filter: UsageFilter) -> Result<UsageSum, ReadError> {
        self.read(move |sql| {
            let text = match filter.user {
                Some(_) => concat!("SELECT ", sums!(), " FROM usage WHERE ", meant!(user)),
                None => concat!("SELECT ", sums!(), " FROM usage WHERE ", meant!(everybody)),
            };
            let found = sql.row(
                text,
                params![
                    filter.from.0,
                    filter.to.0,
                    filter.user.as_ref().map(UserId::as_str),
                    filter.agent.map(|agent| agent.to_string()),
                    filter.session.map(|session| session.to_string()),
                ],
                sum,
            )?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}

fn statement(by: UsageBy, of_user: bool) -> &'static str {
    match (by, of_user) {
        (UsageBy::Session, false) => sums_by!("session", everybody),
        (UsageBy::Session, true) => sums_by!("session", user),
        (UsageBy::Agent, false) => sums_by!("agent", everybody),
        (UsageBy::Agent, true) => sums_by!("agent", user),
        (UsageBy::User, false) => sums_by!("user_id", everybody),
        (UsageBy::User, true) => sums_by!("user_id", user),
        (UsageBy::Day, false) => sums_by!("day", everybody),
        (UsageBy::Day, true) => sums_by!("day", user),
        (UsageBy::Model, false) => sums_by!("model", everybody),
        (UsageBy::Model, true) => sums_by!("model", user),
    }
}

/// A key as its column holds it.
fn after_value(by: UsageBy, key: String) -> Value {
    match by {
        UsageBy::Day => {
            let day: Day = key.parse().unwrap_or_default();
            Value::Integer(int(u64::from(day.0)))
        }
        UsageBy::Session | UsageBy::Agent | UsageBy::User | UsageBy::Model => Value::Text(key),
    }
}

fn key(by: UsageBy, row: &Row<'_>) -> rusqlite::Result<String> {
    match by {
        UsageBy::Day => Ok(Day(row.get(COLUMNS)?).to_string()),
        UsageBy::Session | UsageBy::Agent | UsageBy::User | UsageBy::Model => row.get(COLUMNS),
    }
}

fn sum(row: &Row<'_>) -> rusqlite::Result<UsageSum> {
    let mut numbers = [0; COLUMNS];
    for (column, number) in numbers.iter_mut().enumerate() {
        *number = row.uint(column)?;
    }
    Ok(UsageSum::from_numbers(numbers))
}

fn path_of(sql: &Sql<'_>, agent: &str) -> rusqlite::Result<Option<String>> {
    let path = sql.row("SELECT path FROM agents WHERE id = ?1", [agent], |row| {
        row.get::<_, Option<String>>(0)
    })?;
    Ok(path.flatten())
}

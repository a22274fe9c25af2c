//! Usage of settled work: sums by a key, a page at a time, and of everything together.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, FromValue, Sql, Value, named, text, unreadable};
use crate::store::Store;
use domain::id::{AgentId, SessionId};
use domain::usage::{COLUMNS, Day, UsageSum};
use domain::user::UserId;
use uuid::Uuid;

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

/// A filter for usage.
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
    /// An id, a day or a model's name; empty for purged usage, and for usage without a model.
    pub key: String,
    /// Path of the agent, where the key is an agent or a session of one.
    pub agent_path: Option<String>,
    /// The sums.
    pub sum: UsageSum,
}

/// Columns of the sums, in the order of [`UsageSum::numbers`].
const SUMS: &str = "coalesce(sum(model_calls), 0), coalesce(sum(attempts), 0), \
                    coalesce(sum(unpriced_attempts), 0), coalesce(sum(input_tokens), 0), \
                    coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0), \
                    coalesce(sum(cost_micros), 0), coalesce(sum(tool_calls), 0), \
                    coalesce(sum(active_ms), 0), coalesce(sum(reserved_tokens), 0), \
                    coalesce(sum(reserved_cost_micros), 0)";

/// The sums of some rows, as they are read.
struct Sums(UsageSum);

impl FromRow for Sums {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let mut numbers = [0; COLUMNS];
        for number in &mut numbers {
            *number = cells.unnamed()?;
        }
        Ok(Self(UsageSum::from_numbers(numbers)))
    }
}

/// Selects the matching rows: by their user if one is given, otherwise by their days.
macro_rules! meant {
    (everybody) => {
        "day BETWEEN :from AND :to AND :user IS NULL AND (:agent IS NULL OR agent = :agent) AND \
         (:session IS NULL OR session = :session)"
    };
    (user) => {
        "user_id = :user AND day BETWEEN :from AND :to AND (:agent IS NULL OR agent = :agent) AND \
         (:session IS NULL OR session = :session)"
    };
}

/// The statement for a page of sums by a column.
macro_rules! sums_by {
    ($column:literal, $whose:ident) => {
        text!(
            "SELECT ",
            SUMS,
            ", ",
            $column,
            " FROM usage WHERE ",
            meant!($whose),
            " AND (:after IS NULL OR ",
            $column,
            " > :after) GROUP BY ",
            $column,
            " ORDER BY ",
            $column,
            " LIMIT :limit"
        )
    };
}

impl Store {
    /// Returns sums by a key, in the order of the keys and from the one after `after`, at most
    /// `limit`.
    ///
    /// The cost grows with the number of rows of the matching days: one for each day, session, user
    /// and model.
    pub async fn usage(
        &self,
        by: UsageBy,
        filter: UsageFilter,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<UsageRow>, ReadError> {
        self.read(move |sql| {
            let after = after.map(|key| after_value(by, key));
            let params = named![
                from = filter.from,
                to = filter.to,
                user = filter.user,
                agent = filter.agent,
                session = filter.session,
                after,
                limit
            ];
            let found: Vec<(Sums, Value<'static>)> =
                sql.all(statement(by, filter.user.is_some()), params)?;
            found
                .into_iter()
                .map(|(Sums(sum), key)| {
                    Ok(UsageRow {
                        agent_path: path_of(sql, by, &key)?,
                        key: key_of(by, key)?,
                        sum,
                    })
                })
                .collect()
        })
        .await
    }

    /// Returns the sums over all matching rows.
    pub async fn usage_total(&self, filter: UsageFilter) -> Result<UsageSum, ReadError> {
        self.read(move |sql| {
            let text = match filter.user {
                Some(_) => text!("SELECT ", SUMS, " FROM usage WHERE ", meant!(user)),
                None => text!("SELECT ", SUMS, " FROM usage WHERE ", meant!(everybody)),
            };
            let params = named![
                from = filter.from,
                to = filter.to,
                user = filter.user,
                agent = filter.agent,
                session = filter.session
            ];
            let found: Option<Sums> = sql.one(text, params)?;
            Ok(found.map(|sums| sums.0).unwrap_or_default())
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
fn after_value(by: UsageBy, key: String) -> Value<'static> {
    match by {
        UsageBy::Day => Value::Integer(key.parse::<Day>().unwrap_or_default().0.into()),
        // Usage without a session and an agent has the empty key, and comes first.
        UsageBy::Session | UsageBy::Agent => {
            let id = key.parse::<SessionId>();
            Value::id(&id.unwrap_or(SessionId(Uuid::nil())))
        }
        UsageBy::User | UsageBy::Model => Value::Text(key.into()),
    }
}

/// A key as its column holds it, as a text.
fn key_of(by: UsageBy, key: Value<'static>) -> sql::Result<String> {
    let key = match by {
        UsageBy::Day => Day::from_value(key).map(|day| day.to_string()),
        UsageBy::Session | UsageBy::Agent => SessionId::from_value(key).map(|id| {
            if id.0.is_nil() {
                String::new()
            } else {
                id.to_string()
            }
        }),
        UsageBy::User | UsageBy::Model => String::from_value(key),
    };
    key.map_err(|error| unreadable("key", error))
}

/// Returns the path of the agent that a session or an agent's id leads to.
fn path_of(sql: &Sql<'_>, by: UsageBy, key: &Value<'_>) -> sql::Result<Option<String>> {
    let text = match by {
        UsageBy::Session => {
            "SELECT agents.path FROM sessions CROSS JOIN agents ON agents.id = sessions.agent \
             WHERE sessions.id = ?1"
        }
        UsageBy::Agent => "SELECT path FROM agents WHERE id = ?1",
        UsageBy::User | UsageBy::Day | UsageBy::Model => return Ok(None),
    };
    sql.one(text, [key.borrowed()])
}

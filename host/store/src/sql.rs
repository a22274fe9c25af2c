//! A connection with its prepared statements, and the columns that this schema is made of.

use crate::query::{self, Query, Rows};
use domain::digest::Digest;
use rusqlite::types::{FromSql, Type, ValueRef};
use rusqlite::{CachedStatement, Connection, Params, Row, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;

/// The cause of an error of the store, independent of the database in use.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// Statements that a connection keeps prepared. The texts are constants, and fewer than this.
const STATEMENTS_MAX: usize = 256;

/// A connection whose statements stay prepared.
pub(crate) struct Sql<'c> {
    connection: &'c Connection,
}

impl<'c> Sql<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Self { connection }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    fn prepared(&self, text: &'static str) -> rusqlite::Result<CachedStatement<'_>> {
        #[cfg(test)]
        crate::tests::plans::check(self.connection, text);
        self.connection.prepare_cached(text)
    }

    /// Runs a statement that returns no rows, and returns the number of rows that it changed.
    pub(crate) fn execute(
        &self,
        text: &'static str,
        params: impl Params,
    ) -> rusqlite::Result<usize> {
        let mut statement = self.prepared(text)?;
        #[cfg(test)]
        let before = steps(&statement);
        let changed = statement.execute(params)?;
        #[cfg(test)]
        count_steps(&statement, before);
        Ok(changed)
    }

    /// Runs a statement that writes, however many rows it changes.
    pub(crate) fn write(&self, text: &'static str, params: impl Params) -> rusqlite::Result<()> {
        self.execute(text, params).map(drop)
    }

    /// The first row, if there is one.
    pub(crate) fn row<T>(
        &self,
        text: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.query(text, params, |rows| rows.next()?.map(read).transpose())
    }

    pub(crate) fn rows<T>(
        &self,
        text: &'static str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.query(text, params, |rows| {
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(read(row)?);
            }
            Ok(all)
        })
    }

    /// Reads of the rows as many as `read` asks for.
    pub(crate) fn query<T>(
        &self,
        text: &'static str,
        params: impl Params,
        read: impl FnOnce(&mut rusqlite::Rows<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut statement = self.prepared(text)?;
        #[cfg(test)]
        let before = steps(&statement);
        let mut rows = statement.query(params)?;
        let found = read(&mut rows);
        drop(rows);
        #[cfg(test)]
        count_steps(&statement, before);
        found
    }

    /// Returns the rows that answer a query.
    pub(crate) fn ask(&self, query: &Query<'_>) -> rusqlite::Result<Rows> {
        let mut answer = Rows::default();
        self.rows(query.text, params_from_iter(query.parameters()), |row| {
            answer.push(query::Row::read(row)?);
            Ok(())
        })?;
        Ok(answer)
    }

    /// Returns the number in the first column of the first row; 0 without a row.
    pub(crate) fn number(&self, text: &'static str, params: impl Params) -> rusqlite::Result<u64> {
        Ok(self.row(text, params, |row| row.uint(0))?.unwrap_or(0))
    }

    pub(crate) fn exists(&self, text: &'static str, params: impl Params) -> rusqlite::Result<bool> {
        Ok(self.row(text, params, |_| Ok(()))?.is_some())
    }
}

#[cfg(test)]
thread_local! {
    /// Steps that SQLite's machine has done for this thread: what a test counts in place of time.
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns the steps of a statement since it was prepared. SQLite uses this count to decide when to
/// interrupt it, so the count is not reset.
#[cfg(test)]
fn steps(statement: &CachedStatement<'_>) -> u64 {
    u64::try_from(statement.get_status(rusqlite::StatementStatus::VmStep)).unwrap_or(0)
}

#[cfg(test)]
fn count_steps(statement: &CachedStatement<'_>, before: u64) {
    STEPS.set(STEPS.get() + steps(statement).saturating_sub(before));
}

/// A count, a place or a time as the database holds it. Nothing that is stored comes near the 63
/// bits.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as the database takes it.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

pub(crate) fn to_json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Something in a column that does not read as what it should be.
pub(crate) fn unreadable(column: usize, source: impl Into<Source>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, source.into())
}

/// Formats an error with its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The columns of a row in the types of the domain.
pub(crate) trait Columns {
    /// A column as the database holds it.
    fn value(&self, column: usize) -> rusqlite::Result<ValueRef<'_>>;

    /// A column in a type that the driver knows.
    fn column<T: FromSql>(&self, column: usize) -> rusqlite::Result<T>;

    /// A count, a place or a time.
    fn uint(&self, column: usize) -> rusqlite::Result<u64> {
        let number: i64 = self.column(column)?;
        u64::try_from(number).map_err(|error| unreadable(column, error))
    }

    fn uint_opt(&self, column: usize) -> rusqlite::Result<Option<u64>> {
        let number: Option<i64> = self.column(column)?;
        number
            .map(|number| u64::try_from(number).map_err(|error| unreadable(column, error)))
            .transpose()
    }

    fn text(&self, column: usize) -> rusqlite::Result<&str> {
        self.value(column)?
            .as_str()
            .map_err(|error| unreadable(column, error))
    }

    fn text_opt(&self, column: usize) -> rusqlite::Result<Option<&str>> {
        self.value(column)?
            .as_str_or_null()
            .map_err(|error| unreadable(column, error))
    }

    /// Something that is stored as its text: an id, a path, a role.
    fn id<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &self,
        column: usize,
    ) -> rusqlite::Result<T> {
        self.text(column)?
            .parse()
            .map_err(|error: T::Err| unreadable(column, error))
    }

    fn id_opt<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &self,
        column: usize,
    ) -> rusqlite::Result<Option<T>> {
        self.text_opt(column)?
            .map(|text| {
                text.parse()
                    .map_err(|error: T::Err| unreadable(column, error))
            })
            .transpose()
    }

    fn digest(&self, column: usize) -> rusqlite::Result<Digest> {
        Ok(Digest(self.column(column)?))
    }

    fn digest_opt(&self, column: usize) -> rusqlite::Result<Option<Digest>> {
        let bytes: Option<[u8; 32]> = self.column(column)?;
        Ok(bytes.map(Digest))
    }

    fn json<T: DeserializeOwned>(&self, column: usize) -> rusqlite::Result<T> {
        serde_json::from_str(self.text(column)?).map_err(|error| unreadable(column, error))
    }

    fn json_opt<T: DeserializeOwned>(&self, column: usize) -> rusqlite::Result<Option<T>> {
        self.text_opt(column)?
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| unreadable(column, error))
    }
}

impl Columns for Row<'_> {
    fn value(&self, column: usize) -> rusqlite::Result<ValueRef<'_>> {
        self.get_ref(column)
    }

    fn column<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        self.get(column)
    }
}

//! Statements in the store's own terms: values, arguments, rows and errors. The engine behind them
//! is [`crate::sqlite`].
//!
//! Rows are written by [`insert!`] and [`upsert!`], and read into a [`row!`] type or a tuple of a
//! few columns, so no column is ever counted by hand. Statements with more than two arguments name
//! them ([`named!`]).

use crate::query::{self, Query};
use domain::definition::DefinitionId;
use domain::delegate::TaskState;
use domain::digest::{Digest, Salt};
use domain::id::{
    AgentId, ConnectorId, ConversationId, EventId, InputId, NoteId, OperationId, OutboundMessageId,
    RunId, SessionId, TriggerEventId, TriggerId, TurnId,
};
use domain::key::KeyId;
use domain::path::{AgentPath, ConnectorKey, ConnectorName, PathKind};
use domain::persona::PersonaId;
use domain::role::AgentRole;
use domain::task::TaskKind;
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use domain::turn::TurnEnd;
use domain::usage::Day;
use domain::user::UserId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fmt::{self, Display};
use uuid::Uuid;

mod args;
mod row;

pub(crate) use crate::sqlite::{Connection, Row, Rows};
pub(crate) use args::{Args, Put, args, insert, named, upsert};
pub(crate) use row::{Cells, Columns, FromRow, join, joined, joined_len, row, select, text};

/// The cause of an error of the store, independent of the database in use.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Failure of a statement, or of reading its result.
#[derive(Debug)]
pub(crate) enum Error {
    /// A column, given by its name or place, has an unexpected value.
    Unreadable { column: String, source: Source },
    /// A value that cannot be written, whatever is stored.
    Unwritable { source: Source },
    /// The statement does not fit its caller: a column or a row is missing.
    Misused { source: Source },
    /// The engine failed.
    Failed { failure: Failure, source: Source },
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(&**source),
            // These are their own description.
            Self::Unwritable { source }
            | Self::Misused { source }
            | Self::Failed { source, .. } => source.source(),
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { column, .. } => {
                write!(f, "the column `{column}` of a row cannot be read")
            }
            Self::Unwritable { source }
            | Self::Misused { source }
            | Self::Failed { source, .. } => source.fmt(f),
        }
    }
}

/// Class of a failure of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The row contradicts stored rows.
    Constraint,
    /// The engine takes no such values, whatever is stored.
    Unfit,
    /// Another connection holds a lock.
    Busy,
    /// The statement was ended from outside.
    Interrupted,
    Corrupt,
    NotADatabase,
    CannotOpen,
    Io,
    /// The disk has no space.
    Full,
    Other,
}

impl Error {
    pub(crate) fn failed(failure: Failure, reason: impl Into<Source>) -> Self {
        Self::Failed {
            failure,
            source: reason.into(),
        }
    }

    pub(crate) fn misused(reason: impl Into<Source>) -> Self {
        Self::Misused {
            source: reason.into(),
        }
    }

    /// Returns the class of the engine's failure; none if the engine did not fail.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed { failure, .. } => Some(*failure),
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::Misused { .. } => None,
        }
    }
}

/// Returns the error for a column, given by its name or place, with an unexpected value.
pub(crate) fn unreadable(column: impl Display, source: impl Into<Source>) -> Error {
    Error::Unreadable {
        column: column.to_string(),
        source: source.into(),
    }
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

/// A parameter of a statement, or a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'v> {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(Cow<'v, str>),
    Blob(Cow<'v, [u8]>),
}

impl Value<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a whole number",
            Self::Real(_) => "a fraction",
            Self::Text(_) => "a text",
            Self::Blob(_) => "bytes",
        }
    }

    fn is_no(&self, wanted: &str) -> Source {
        format!("{wanted} is wanted, and {} is there", self.kind()).into()
    }

    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(is),
            Self::Integer(number) => Value::Integer(number),
            Self::Real(number) => Value::Real(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Blob(bytes) => Value::Blob(Cow::Owned(bytes.into_owned())),
        }
    }

    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(*is),
            Self::Integer(number) => Value::Integer(*number),
            Self::Real(number) => Value::Real(*number),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Blob(bytes) => Value::Blob(Cow::Borrowed(bytes)),
        }
    }
}

/// Something that a statement takes as a parameter.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// Something that a column is read as.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value<'_>) -> Result<Self, Source>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue + ?Sized> ToValue for &mut T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self, Source> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl ToValue for Value<'_> {
    fn to_value(&self) -> Value<'_> {
        self.borrowed()
    }
}

impl FromValue for Value<'static> {
    fn from_value(value: Value<'_>) -> Result<Self, Source> {
        Ok(value.into_owned())
    }
}

/// Implements both directions for types that the engine holds as such.
macro_rules! stored {
    ($(
        $type:ty: $wanted:literal, $self:ident => $value:expr, $($pattern:pat => $read:expr),+;
    )*) => {$(
        impl ToValue for $type {
            fn to_value(&$self) -> Value<'_> {
                $value
            }
        }

        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Result<Self, Source> {
                match value {
                    $($pattern => Ok($read),)+
                    value => Err(value.is_no($wanted)),
                }
            }
        }
    )*};
}

stored! {
    bool: "true or false", self => Value::Bool(*self),
        Value::Bool(is) => is, Value::Integer(number) => number != 0;
    i64: "a whole number", self => Value::Integer(*self), Value::Integer(number) => number;
    // No stored number comes near the 63 bits.
    u64: "a count", self => Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)),
        Value::Integer(number) => number.try_into()?;
    i32: "a small number", self => Value::Integer((*self).into()),
        Value::Integer(number) => number.try_into()?;
    u32: "a small count", self => Value::Integer((*self).into()),
        Value::Integer(number) => number.try_into()?;
    usize: "a count", self => Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)),
        Value::Integer(number) => number.try_into()?;
    Day: "a day", self => Value::Integer(self.0.into()),
        value @ Value::Integer(_) => Day(u32::from_value(value)?);
    Timestamp: "a time", self => self.0.to_value().into_owned(),
        value @ Value::Integer(_) => Timestamp(u64::from_value(value)?);
    f64: "a number", self => Value::Real(*self), Value::Real(number) => number;
    String: "a text", self => Value::Text(Cow::Borrowed(self)),
        Value::Text(text) => text.into_owned();
    Vec<u8>: "bytes", self => Value::Blob(Cow::Borrowed(self)),
        Value::Blob(bytes) => bytes.into_owned();
    Digest: "a digest", self => Value::Blob(Cow::Borrowed(&self.0)),
        Value::Blob(bytes) => Digest((*bytes).try_into()?);
    TurnId: "a digest", self => self.0.to_value(),
        value @ Value::Blob(_) => TurnId(Digest::from_value(value)?);
    OperationId: "a digest", self => self.0.to_value(),
        value @ Value::Blob(_) => OperationId(Digest::from_value(value)?);
    OutboundMessageId: "a digest", self => self.0.to_value(),
        value @ Value::Blob(_) => OutboundMessageId(Digest::from_value(value)?);
    Salt: "a salt", self => Value::Blob(Cow::Borrowed(&self.0)),
        Value::Blob(bytes) => Salt((*bytes).try_into()?);
}

impl ToValue for str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(Cow::Borrowed(self))
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value<'_> {
        self.as_slice().to_value()
    }
}

/// Implements both directions for ids that are stored as their 16 bytes.
macro_rules! stored_as_uuid {
    ($($type:ident)*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                Value::Blob(Cow::Borrowed(self.0.as_bytes()))
            }
        }

        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Result<Self, Source> {
                match value {
                    Value::Blob(bytes) => Ok(Self(Uuid::from_slice(&bytes)?)),
                    value => Err(value.is_no("an id")),
                }
            }
        }
    )*};
}

stored_as_uuid! {
    AgentId ConnectorId ConversationId EventId InputId NoteId TriggerEventId RunId SessionId TriggerId
}

/// Implements both directions for types that are stored as their text.
macro_rules! stored_as_text {
    ($($type:ident)*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                Value::Text(Cow::Owned(self.to_string()))
            }
        }

        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Result<Self, Source> {
                match value {
                    Value::Text(text) => Ok(text.parse()?),
                    value => Err(value.is_no("a text")),
                }
            }
        }
    )*};
}

stored_as_text! {
    AgentPath ConnectorKey ConnectorName KeyId PersonaId TriggerName UserId
}

impl ToValue for DefinitionId {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

impl FromValue for DefinitionId {
    fn from_value(value: Value<'_>) -> Result<Self, Source> {
        String::from_value(value).map(Self)
    }
}

/// Implements both directions for a closed list of words, stored as the words: a type with `ALL`
/// and `as_str`.
macro_rules! stored_as_word {
    ($($type:ty),+) => {$(
        impl $crate::sql::ToValue for $type {
            fn to_value(&self) -> $crate::sql::Value<'_> {
                $crate::sql::ToValue::to_value(self.as_str())
            }
        }

        impl $crate::sql::FromValue for $type {
            fn from_value(
                value: $crate::sql::Value<'_>,
            ) -> $crate::sql::Result<Self, $crate::sql::Source> {
                let word = <String as $crate::sql::FromValue>::from_value(value)?;
                let known = Self::ALL.into_iter().find(|known| known.as_str() == word);
                known.ok_or_else(|| format!("`{word}` is not known").into())
            }
        }
    )+};
}
pub(crate) use stored_as_word;

stored_as_word!(AgentRole, PathKind, TaskKind, TaskState, TurnEnd);

/// A column that holds JSON as text.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromValue for Json<T> {
    fn from_value(value: Value<'_>) -> Result<Self, Source> {
        match value {
            Value::Text(text) => Ok(Self(serde_json::from_str(&text)?)),
            value => Err(value.is_no("JSON")),
        }
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Unwritable {
        source: error.into(),
    })
}

/// A connection, for statements whose texts are constants.
#[derive(Clone, Copy)]
pub(crate) struct Sql<'c> {
    connection: &'c Connection,
}

impl<'c> Sql<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// Runs a statement that returns no rows, and returns the number of rows that it changed.
    pub(crate) fn execute(&self, text: &'static str, args: impl Args) -> Result<usize> {
        #[cfg(test)]
        crate::tests::plans::check(self.connection, text);
        let mut statement = self.connection.prepare(text)?;
        #[cfg(test)]
        let before = statement.steps();
        let changed = statement.execute(args)?;
        #[cfg(test)]
        count_steps(&statement, before);
        Ok(changed)
    }

    /// Runs a statement that writes, however many rows it changes.
    pub(crate) fn write(&self, text: &'static str, args: impl Args) -> Result<()> {
        self.execute(text, args).map(drop)
    }

    /// The first row, if there is one.
    pub(crate) fn row<T>(
        &self,
        text: &'static str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.query(text, args, |rows| {
            rows.next()?.map(|row| read(&row)).transpose()
        })
    }

    /// Returns the first row as a [`row!`] type, a tuple of its columns, or its one column.
    pub(crate) fn one<T: FromRow>(&self, text: &'static str, args: impl Args) -> Result<Option<T>> {
        self.row(text, args, |row| T::from_row(self, row))
    }

    /// All rows; see [`Self::one`].
    pub(crate) fn all<T: FromRow>(&self, text: &'static str, args: impl Args) -> Result<Vec<T>> {
        self.rows(text, args, |row| T::from_row(self, row))
    }

    /// Reads the first row, unless what it points to is about to be erased.
    pub(crate) fn one_there<S: FromRow, T>(
        &self,
        text: &'static str,
        args: impl Args,
        read: impl FnOnce(S) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.one(text, args)?.map_or(Ok(None), read)
    }

    /// Reads all rows except those that point to what is about to be erased.
    pub(crate) fn all_there<S: FromRow, T>(
        &self,
        text: &'static str,
        args: impl Args,
        read: impl FnMut(S) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let rows = self.all(text, args)?.into_iter().map(read);
        rows.filter_map(Result::transpose).collect()
    }

    /// The JSON in the one column of the first row.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        text: &'static str,
        args: impl Args,
    ) -> Result<Option<T>> {
        Ok(self
            .one::<Option<Json<T>>>(text, args)?
            .flatten()
            .map(|json| json.0))
    }

    pub(crate) fn rows<T>(
        &self,
        text: &'static str,
        args: impl Args,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query(text, args, |rows| {
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(read(&row)?);
            }
            Ok(all)
        })
    }

    /// Reads of the rows as many as `read` asks for.
    pub(crate) fn query<T>(
        &self,
        text: &'static str,
        args: impl Args,
        read: impl FnOnce(&mut Rows<'_>) -> Result<T>,
    ) -> Result<T> {
        #[cfg(test)]
        crate::tests::plans::check(self.connection, text);
        let mut statement = self.connection.prepare(text)?;
        #[cfg(test)]
        let before = statement.steps();
        let mut rows = statement.query(args)?;
        let found = read(&mut rows);
        drop(rows);
        #[cfg(test)]
        count_steps(&statement, before);
        found
    }

    /// Returns the rows that answer a query.
    pub(crate) fn ask(&self, query: &Query<'_>) -> Result<query::Rows> {
        let mut answer = query::Rows::default();
        self.query(query.text, query, |rows| {
            while let Some(row) = rows.next()? {
                answer.push(query::Row::read(&row)?);
            }
            Ok(())
        })?;
        Ok(answer)
    }

    /// Returns the number in the first column of the first row; 0 without a row.
    pub(crate) fn number(&self, text: &'static str, args: impl Args) -> Result<u64> {
        Ok(self.row(text, args, |row| row.uint(0))?.unwrap_or(0))
    }

    pub(crate) fn exists(&self, text: &'static str, args: impl Args) -> Result<bool> {
        Ok(self.row(text, args, |_| Ok(()))?.is_some())
    }
}

#[cfg(test)]
thread_local! {
    /// Number of steps of the engine on this thread, which tests count in place of time.
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_steps(statement: &crate::sqlite::Statement<'_>, before: u64) {
    STEPS.set(STEPS.get() + statement.steps().saturating_sub(before));
}

/// Converts a count, a place or a time to the form of the database. No stored number comes near the
/// 63 bits.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

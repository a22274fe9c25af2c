//! Queries as data: a text with its parameters, and the rows that answer it.

use crate::sql::{Columns, int, unreadable};
use domain::digest::Digest;
use rusqlite::types::{FromSql, ToSql, ToSqlOutput, ValueRef};
use std::borrow::Cow;
use std::fmt::Display;

/// Number of parameters of a query, at most.
const PARAMETERS_MAX: usize = 4;

/// Number of columns of a query, at most.
const COLUMNS_MAX: usize = 5;

/// A parameter of a query, or a column of a row.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    Null,
    Integer(i64),
    Text(Cow<'q, str>),
    Bytes(Cow<'q, [u8]>),
}

impl<'q> Value<'q> {
    pub(crate) fn id(id: &impl Display) -> Self {
        Self::Text(Cow::Owned(id.to_string()))
    }

    pub(crate) fn text(text: &'q str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::Integer(int(number))
    }

    pub(crate) fn digest(digest: &'q Digest) -> Self {
        Self::Bytes(Cow::Borrowed(&digest.0))
    }

    fn borrowed(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.borrowed()))
    }
}

/// A text with its parameters.
#[derive(Debug)]
pub(crate) struct Query<'q> {
    pub(crate) text: &'static str,
    parameters: [Value<'q>; PARAMETERS_MAX],
    count: usize,
}

impl<'q> Query<'q> {
    pub(crate) fn new<const N: usize>(text: &'static str, parameters: [Value<'q>; N]) -> Self {
        const { assert!(N <= PARAMETERS_MAX) };
        let mut parameters = parameters.into_iter();
        Self {
            text,
            parameters: std::array::from_fn(|_| parameters.next().unwrap_or(Value::Null)),
            count: N,
        }
    }

    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Value<'q>> {
        self.parameters.iter().take(self.count)
    }
}

/// A row of an answer. It holds its columns itself: a row of numbers allocates nothing.
#[derive(Debug)]
pub(crate) struct Row([Value<'static>; COLUMNS_MAX]);

impl Row {
    pub(crate) fn new<const N: usize>(columns: [Value<'static>; N]) -> Self {
        const { assert!(N <= COLUMNS_MAX) };
        let mut columns = columns.into_iter();
        Self(std::array::from_fn(|_| {
            columns.next().unwrap_or(Value::Null)
        }))
    }

    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = std::array::from_fn(|_| Value::Null);
        for (number, column) in columns.iter_mut().enumerate() {
            let Ok(value) = row.get_ref(number) else {
                break;
            };
            *column = match value {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(integer) => Value::Integer(integer),
                ValueRef::Text(_) => Value::Text(Cow::Owned(row.text(number)?.to_owned())),
                ValueRef::Blob(bytes) => Value::Bytes(Cow::Owned(bytes.to_owned())),
                ValueRef::Real(_) => return Err(unreadable(number, "it is no whole number")),
            };
        }
        Ok(Self(columns))
    }
}

impl Columns for Row {
    fn value(&self, column: usize) -> rusqlite::Result<ValueRef<'_>> {
        self.0
            .get(column)
            .map(Value::borrowed)
            .ok_or(rusqlite::Error::InvalidColumnIndex(column))
    }

    fn column<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        T::column_result(self.value(column)?).map_err(|error| unreadable(column, error))
    }
}

/// The rows that answer a query, in order. A single one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    first: Option<Row>,
    rest: Vec<Row>,
}

impl Rows {
    pub(crate) fn push(&mut self, row: Row) {
        match self.first {
            None => self.first = Some(row),
            Some(_) => self.rest.push(row),
        }
    }

    pub(crate) fn first(&self) -> Option<&Row> {
        self.first.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.first.iter().chain(&self.rest)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The number in the first column of the first row; 0 without a row.
    pub(crate) fn number(&self) -> rusqlite::Result<u64> {
        self.first().map_or(Ok(0), |row| row.uint(0))
    }
}

impl From<Option<Row>> for Rows {
    fn from(first: Option<Row>) -> Self {
        Self {
            first,
            rest: Vec::new(),
        }
    }
}

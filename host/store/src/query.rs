//! Queries as data: a text with its parameters, and the rows that answer it.

use crate::sql::{self, Args, Columns, Error, Put, Result, ToValue, int};
use domain::digest::Digest;
use std::borrow::Cow;

/// Number of parameters of a query, at most.
const PARAMETERS_MAX: usize = 4;

/// Number of columns of a query, at most.
const COLUMNS_MAX: usize = 5;

impl<'q> Value<'q> {
    pub(crate) fn id(id: &impl ToValue) -> Self {
        id.to_value().into_owned()
    }

    pub(crate) fn text(text: &'q str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::Integer(int(number))
    }

    pub(crate) fn digest(digest: &'q Digest) -> Self {
        Self::Blob(Cow::Borrowed(&digest.0))
    }
}

pub(crate) use crate::sql::Value;

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
}

impl Args for &Query<'_> {
    fn each(self, put: &mut Put<'_>) -> Result<()> {
        let mut parameters = self.parameters.iter().take(self.count);
        parameters.try_for_each(|value| put(None, value.borrowed()))
    }
}

/// A row of an answer. It stores its columns inline: a row of numbers allocates nothing.
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

    pub(crate) fn read(row: &sql::Row<'_>) -> Result<Self> {
        let mut columns = std::array::from_fn(|_| Value::Null);
        for (number, column) in columns.iter_mut().enumerate().take(row.count()) {
            *column = row.value(number)?.into_owned();
        }
        Ok(Self(columns))
    }
}

impl Columns for Row {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        let value = self.0.get(column).map(Value::borrowed);
        value.ok_or_else(|| Error::misused("there is no such column"))
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
    pub(crate) fn number(&self) -> Result<u64> {
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

//! Prepared statements, and the rows that they return.

use crate::sql::{Args, Columns, Error, Result, Value, unreadable};
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A statement that stays prepared when it is dropped.
pub(crate) struct Statement<'c>(pub(super) rusqlite::CachedStatement<'c>);

impl Statement<'_> {
    pub(crate) fn execute(&mut self, args: impl Args) -> Result<usize> {
        self.bind(args)?;
        Ok(self.0.raw_execute()?)
    }

    pub(crate) fn query(&mut self, args: impl Args) -> Result<Rows<'_>> {
        self.bind(args)?;
        Ok(Rows(self.0.raw_query()))
    }

    pub(crate) fn column_count(&self) -> usize {
        self.0.column_count()
    }

    /// Returns the steps that the engine has done for it since it was prepared. SQLite decides by
    /// this count when to interrupt a statement, so it is not reset.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        u64::try_from(self.0.get_status(rusqlite::StatementStatus::VmStep)).unwrap_or(0)
    }

    fn bind(&mut self, args: impl Args) -> Result<()> {
        let statement = &mut self.0;
        let mut bound = 0;
        #[cfg(test)]
        let mut texts = Vec::new();
        args.each(&mut |name, value| {
            bound += 1;
            #[cfg(test)]
            texts.extend(uuid_text(&value));
            let place = match name {
                None => bound,
                Some(name) => statement
                    .parameter_index(name)?
                    .ok_or_else(|| Error::misused(format!("there is no parameter `{name}`")))?,
            };
            Ok(statement.raw_bind_parameter(place, Bound(value))?)
        })?;
        #[cfg(test)]
        for text in texts {
            let statement = statement.expanded_sql().unwrap_or_default();
            // The subjects of events, and columns of JSON.
            let may = [
                "idempotency",
                "buckets",
                "meta",
                "about",
                "accounts",
                "memory",
            ];
            assert!(
                may.iter().any(|word| statement.contains(word)),
                "the id {text} is no text in a row: {statement}"
            );
        }
        let wanted = statement.parameter_count();
        if bound != wanted {
            return Err(Error::misused(format!(
                "{bound} parameters are given, {wanted} are wanted"
            )));
        }
        Ok(())
    }
}

/// An id in the form that no column has it in.
#[cfg(test)]
fn uuid_text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Text(text) if text.len() == 36 => {
            uuid::Uuid::try_parse(text).ok().map(|id| id.to_string())
        }
        _ => None,
    }
}

/// A value as the library takes it.
struct Bound<'v>(Value<'v>);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match &self.0 {
            Value::Null => ValueRef::Null,
            Value::Bool(is) => ValueRef::Integer((*is).into()),
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The rows that a statement returns, one at a time.
pub(crate) struct Rows<'s>(rusqlite::Rows<'s>);

impl Rows<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(self.0.next()?.map(Row))
    }

    /// Goes on to the next row, which [`Self::get`] returns from then on.
    pub(crate) fn advance(&mut self) -> Result<()> {
        use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
        Ok(self.0.advance()?)
    }

    pub(crate) fn get(&self) -> Option<Row<'_>> {
        use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
        self.0.get().map(Row)
    }
}

/// The row that a statement is at.
pub(crate) struct Row<'r>(&'r rusqlite::Row<'r>);

impl Row<'_> {
    /// Returns the number of its columns.
    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().column_count()
    }

    /// Returns the name of a column.
    #[cfg(test)]
    pub(crate) fn name_of(&self, column: usize) -> &str {
        self.0.as_ref().column_name(column).unwrap()
    }

    /// Returns whether another row has the same values in so many columns, byte by byte.
    pub(crate) fn is_same(&self, other: &Row<'_>, columns: usize) -> Result<bool> {
        for column in 0..columns {
            if self.0.get_ref(column)? != other.0.get_ref(column)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Columns for Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        Ok(match self.0.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes)
                .map(|text| Value::Text(text.into()))
                .map_err(|error| unreadable(column, error))?,
            ValueRef::Blob(bytes) => Value::Blob(bytes.into()),
        })
    }
}

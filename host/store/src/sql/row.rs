//! Rows, read by the names of their columns: each is declared once, as the struct that it becomes.

use super::{FromValue, Json, Result, Row, Sql, Value, unreadable};
use domain::digest::Digest;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// The columns of a row, by their places.
pub(crate) trait Columns {
    /// Returns a column, borrowed from the row.
    fn value(&self, column: usize) -> Result<Value<'_>>;

    fn get<T: FromValue>(&self, column: usize) -> Result<T> {
        T::from_value(self.value(column)?).map_err(|error| unreadable(column, error))
    }

    /// A count, a place or a time.
    fn uint(&self, column: usize) -> Result<u64> {
        self.get(column)
    }

    fn uint_opt(&self, column: usize) -> Result<Option<u64>> {
        self.get(column)
    }

    fn text(&self, column: usize) -> Result<&str> {
        match self.value(column)? {
            Value::Text(Cow::Borrowed(text)) => Ok(text),
            value => Err(unreadable(column, value.is_no("a text"))),
        }
    }

    fn text_opt(&self, column: usize) -> Result<Option<&str>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    fn digest(&self, column: usize) -> Result<Digest> {
        self.get(column)
    }

    fn digest_opt(&self, column: usize) -> Result<Option<Digest>> {
        self.get(column)
    }

    fn json_opt<T: DeserializeOwned>(&self, column: usize) -> Result<Option<T>> {
        Ok(self.get::<Option<Json<T>>>(column)?.map(|json| json.0))
    }

    /// Bytes, borrowed from the row.
    fn bytes_opt(&self, column: usize) -> Result<Option<&[u8]>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Blob(Cow::Borrowed(bytes)) => Ok(Some(bytes)),
            value => Err(unreadable(column, value.is_no("bytes"))),
        }
    }
}

/// A type that is read from a whole row, or from some adjacent columns of it.
pub(crate) trait FromRow: Sized {
    /// Reads the next columns.
    fn read(cells: &mut Cells<'_, '_>) -> Result<Self>;

    fn from_row(sql: &Sql<'_>, row: &Row<'_>) -> Result<Self> {
        Self::read(&mut Cells { sql, row, at: 0 })
    }
}

/// The columns of a row, read one after the other.
pub(crate) struct Cells<'a, 'r> {
    /// Connection for reading further rows to which the row refers.
    pub(crate) sql: &'a Sql<'a>,
    row: &'a Row<'r>,
    at: usize,
}

impl<'a> Cells<'a, '_> {
    /// Reads the next column, which has this name.
    pub(crate) fn next<T: FromValue>(&mut self, name: &'static str) -> Result<T> {
        T::from_value(self.next_value(name)?).map_err(|error| unreadable(name, error))
    }

    /// The next column, borrowed from the row.
    pub(crate) fn next_value(&mut self, name: &'static str) -> Result<Value<'a>> {
        let at = self.at;
        self.at += 1;
        // By the declarations it always is that one.
        #[cfg(test)]
        assert_eq!(self.row.name_of(at), name, "column {at}");
        #[cfg(not(test))]
        let _ = name;
        self.row.value(at)
    }

    /// The bytes in the next column, borrowed from the row; none where it has none.
    pub(crate) fn next_bytes(&mut self, name: &'static str) -> Result<Option<Cow<'a, [u8]>>> {
        match self.next_value(name)? {
            Value::Null => Ok(None),
            Value::Blob(bytes) => Ok(Some(bytes)),
            value => Err(unreadable(name, value.is_no("bytes"))),
        }
    }

    /// Reads the next column, whatever its name is.
    pub(crate) fn unnamed<T: FromValue>(&mut self) -> Result<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }
}

impl<T: FromValue> FromRow for T {
    fn read(cells: &mut Cells<'_, '_>) -> Result<Self> {
        cells.unnamed()
    }
}

macro_rules! tuples {
    ($(($($type:ident)+))*) => {$(
        impl<$($type: FromRow),+> FromRow for ($($type,)+) {
            fn read(cells: &mut Cells<'_, '_>) -> Result<Self> {
                Ok(($($type::read(cells)?,)+))
            }
        }
    )*};
}

tuples! { (A B) (A B C) (A B C D) }

/// Declares a row: a struct, the columns that it is read from, and their tables.
///
/// ```ignore
/// row! {
///     /// A session with the number of its waiting inputs.
///     #[derive(Debug)]
///     pub struct SessionRow from "sessions s" {
///         id: SessionId = "s.id",
///         /// Its state: the column of the field's name.
///         pub state: Digest,
///         /// JSON; see also `json_opt`, `json_or_default`, `packed` and `packed_opt`.
///         pub attributes: Map<String, Value> as json,
///         /// Another row, whose columns come here.
///         pub agent: AgentRow as row,
///         pub waiting: u64 = "(SELECT count(*) FROM inputs i WHERE i.session = s.id)",
///     }
/// }
/// ```
///
/// [`select!`] makes statements of it.
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(from $from:literal)? {
            $(
                $(#[$doc:meta])*
                $field_vis:vis $field:ident: $type:ty $(as $how:ident)? $(= $expression:expr)?
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $type,)+
        }

        impl $name {
            pub(crate) const COLUMNS: &'static str = $crate::sql::join!(
                ", ",
                $($crate::sql::row!(@columns $field $type, ($($how)?) $(= $expression)?)),+
            );
            $(pub(crate) const FROM: &'static str = $from;)?
        }

        impl $crate::sql::FromRow for $name {
            fn read(cells: &mut $crate::sql::Cells<'_, '_>) -> $crate::sql::Result<Self> {
                Ok(Self {
                    $($field: $crate::sql::row!(@read cells $field ($($how)?)),)+
                })
            }
        }
    };
    (@columns $field:ident $type:ty, (row)) => {
        <$type>::COLUMNS
    };
    (@columns $field:ident $type:ty, (row) = $expression:expr) => {
        $expression
    };
    (@columns $field:ident $type:ty, ($($how:ident)?)) => {
        stringify!($field)
    };
    (@columns $field:ident $type:ty, ($($how:ident)?) = $expression:expr) => {
        $crate::sql::text!($expression, " AS ", stringify!($field))
    };
    (@read $cells:ident $field:ident ()) => {
        $cells.next(stringify!($field))?
    };
    (@read $cells:ident $field:ident (row)) => {
        $crate::sql::FromRow::read($cells)?
    };
    (@read $cells:ident $field:ident (json)) => {
        $cells.next::<$crate::sql::Json<_>>(stringify!($field))?.0
    };
    (@read $cells:ident $field:ident (json_opt)) => {
        $cells.next::<Option<$crate::sql::Json<_>>>(stringify!($field))?.map(|json| json.0)
    };
    (@read $cells:ident $field:ident (packed)) => {{
        let packed = $cells.next_bytes(stringify!($field))?.unwrap_or_default();
        $crate::texts::unpacked($cells.sql, &packed)?
    }};
    (@read $cells:ident $field:ident (packed_opt)) => {
        $cells
            .next_bytes(stringify!($field))?
            .map(|packed| $crate::texts::unpacked($cells.sql, &packed))
            .transpose()?
    };
    (@read $cells:ident $field:ident (json_or_default)) => {
        $cells
            .next::<Option<$crate::sql::Json<_>>>(stringify!($field))?
            .map(|json| json.0)
            .unwrap_or_default()
    };
}

/// The text of a statement that selects declared rows: `select!(SessionRow, "WHERE …")`.
macro_rules! select {
    ($row:ty, $($rest:expr),+) => {
        $crate::sql::text!(
            "SELECT ", <$row>::COLUMNS, " FROM ", <$row>::FROM, " " $(, $rest)+
        )
    };
}

/// One text of constant parts.
macro_rules! text {
    ($($part:expr),+ $(,)?) => {
        $crate::sql::join!("", $($part),+)
    };
}

/// One text of constant parts with another between every two of them.
macro_rules! join {
    ($between:expr, $($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const BYTES: [u8; $crate::sql::joined_len(PARTS, $between)] =
            $crate::sql::joined(PARTS, $between);
        const TEXT: &str = match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("texts make a text"),
        };
        TEXT
    }};
}

pub(crate) use {join, row, select, text};

/// The length of parts with another between every two of them.
pub(crate) const fn joined_len(mut parts: &[&str], between: &str) -> usize {
    let mut len = 0;
    while let [part, rest @ ..] = parts {
        len += part.len() + if rest.is_empty() { 0 } else { between.len() };
        parts = rest;
    }
    len
}

/// The bytes of parts with another between every two of them.
pub(crate) const fn joined<const LEN: usize>(mut parts: &[&str], between: &str) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let mut len = 0;
    while let [part, rest @ ..] = parts {
        len = put(&mut bytes, len, part);
        if !rest.is_empty() {
            len = put(&mut bytes, len, between);
        }
        parts = rest;
    }
    bytes
}

#[expect(
    clippy::indexing_slicing,
    reason = "the compiler evaluates it, and refuses a place that is not there"
)]
const fn put(bytes: &mut [u8], mut len: usize, part: &str) -> usize {
    let mut rest = part.as_bytes();
    while let [byte, others @ ..] = rest {
        bytes[len] = *byte;
        len += 1;
        rest = others;
    }
    len
}

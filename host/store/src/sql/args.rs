//! Arguments of statements, and rows that are written by the names of their columns.

use super::{Result, ToValue, Value};

/// Takes the next argument of a statement, with its name if it has one.
pub(crate) type Put<'p> = dyn FnMut(Option<&'static str>, Value<'_>) -> Result<()> + 'p;

/// The arguments of a statement: an array of one type, or the result of [`args!`].
pub(crate) trait Args: Sized {
    /// Gives each argument in order.
    fn each(self, put: &mut Put<'_>) -> Result<()>;
}

impl Args for &[&dyn ToValue] {
    fn each(self, put: &mut Put<'_>) -> Result<()> {
        self.iter()
            .try_for_each(|value| put(None, value.to_value()))
    }
}

impl Args for &[(&'static str, &dyn ToValue)] {
    fn each(self, put: &mut Put<'_>) -> Result<()> {
        self.iter()
            .try_for_each(|(name, value)| put(Some(name), value.to_value()))
    }
}

impl Args for [&dyn ToValue; 0] {
    fn each(self, _: &mut Put<'_>) -> Result<()> {
        Ok(())
    }
}

macro_rules! arrays {
    ($($count:literal)*) => {$(
        impl<T: ToValue> Args for [T; $count] {
            fn each(self, put: &mut Put<'_>) -> Result<()> {
                self.iter().try_for_each(|value| put(None, value.to_value()))
            }
        }
    )*};
}

arrays! { 1 2 3 4 5 }

/// The arguments of a statement for `?1`, `?2` and so on: `args![a, b]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::sql::ToValue),*] as &[&dyn $crate::sql::ToValue]
    };
}

/// The arguments of a statement for `:of` and `:limit`: `named![of = agent, limit]`.
macro_rules! named {
    ($($name:ident $(= $value:expr)?),+ $(,)?) => {
        &[$((
            concat!(":", stringify!($name)),
            &$crate::sql::insert!(@value $name $(, $value)?) as &dyn $crate::sql::ToValue,
        )),+] as &[(&'static str, &dyn $crate::sql::ToValue)]
    };
}

/// Inserts a row: `insert!(sql, files { session: it.session, name })`. More of the statement may
/// follow the row, such as `"ON CONFLICT (session, name) DO NOTHING"`.
macro_rules! insert {
    (
        $sql:expr,
        $table:ident {
            $first:ident $(: $value:expr)? $(, $column:ident $(: $more:expr)?)* $(,)?
        }
        $(, $rest:literal)? $(,)?
    ) => {
        $sql.write(
            concat!(
                "INSERT INTO ", stringify!($table), " (",
                stringify!($first) $(, ", ", stringify!($column))*,
                ") VALUES (?" $(, $crate::sql::insert!(@mark $column))*, ")" $(, " ", $rest)?
            ),
            $crate::sql::args![
                $crate::sql::insert!(@value $first $(, $value)?)
                $(, $crate::sql::insert!(@value $column $(, $more)?))*
            ],
        )
    };
    (@mark $column:ident) => {
        ", ?"
    };
    (@value $column:ident) => {
        $column
    };
    (@value $column:ident, $value:expr) => {
        $value
    };
}

/// Inserts a row, or updates the one with its key: `upsert!(sql, meta { name }, set { value: "due"
/// })`.
macro_rules! upsert {
    (
        $sql:expr,
        $table:ident { $first:ident $(: $value:expr)? $(, $key:ident $(: $of:expr)?)* $(,)? },
        set { $column:ident $(: $new:expr)? $(, $other:ident $(: $more:expr)?)* $(,)? } $(,)?
    ) => {
        $sql.write(
            concat!(
                "INSERT INTO ", stringify!($table), " (",
                stringify!($first) $(, ", ", stringify!($key))*,
                ", ", stringify!($column) $(, ", ", stringify!($other))*,
                ") VALUES (?" $(, $crate::sql::insert!(@mark $key))*,
                ", ?" $(, $crate::sql::insert!(@mark $other))*,
                ") ON CONFLICT (", stringify!($first) $(, ", ", stringify!($key))*,
                ") DO UPDATE SET ", stringify!($column), " = excluded.", stringify!($column)
                $(, ", ", stringify!($other), " = excluded.", stringify!($other))*
            ),
            $crate::sql::args![
                $crate::sql::insert!(@value $first $(, $value)?)
                $(, $crate::sql::insert!(@value $key $(, $of)?))*,
                $crate::sql::insert!(@value $column $(, $new)?)
                $(, $crate::sql::insert!(@value $other $(, $more)?))*
            ],
        )
    };
}

pub(crate) use {args, insert, named, upsert};

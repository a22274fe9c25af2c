//! Notes of the store on itself, by name: the table `meta`.

use crate::sql::{self, Sql, upsert};

/// Name of the note of a clean shutdown. Its presence at a start means that the previous process
/// ended on request, and not in the middle of its work.
pub(crate) const ENDED: &str = "ended";

pub(crate) fn is_noted(sql: &Sql<'_>, name: &str) -> sql::Result<bool> {
    sql.exists("SELECT 1 FROM meta WHERE name = ?1", [name])
}

/// Writes a note, and replaces an earlier one of this name.
pub(crate) fn note(sql: &Sql<'_>, name: &str, value: &str) -> sql::Result<()> {
    upsert!(sql, meta { name }, set { value })
}

pub(crate) fn remove(sql: &Sql<'_>, name: &str) -> sql::Result<()> {
    sql.write("DELETE FROM meta WHERE name = ?1", [name])
}

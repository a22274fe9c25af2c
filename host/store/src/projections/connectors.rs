//! Connector keys: the names by which services know the users.

use crate::sql::{Sql, int};
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound};
use rusqlite::params;

/// Binds a name to a user, and to no other.
pub(super) fn bound(sql: &Sql<'_>, it: &ConnectorKeyBound) -> rusqlite::Result<()> {
    let text = "INSERT INTO connector_keys (key, user_id, bound_at) VALUES (?1, ?2, ?3) \
                ON CONFLICT (key) DO UPDATE SET user_id = excluded.user_id, bound_at = \
                excluded.bound_at";
    sql.write(
        text,
        params![it.key.to_string(), it.user_id.as_str(), int(it.time.0)],
    )
}

pub(super) fn unbound(sql: &Sql<'_>, it: &ConnectorKeyUnbound) -> rusqlite::Result<()> {
    sql.write(
        "DELETE FROM connector_keys WHERE key = ?1",
        [it.key.to_string()],
    )
}

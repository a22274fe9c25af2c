//! Connector keys: the names by which services know the users.

use crate::sql::{Sql, int};
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound, Event};
use rusqlite::params;

/// A name was bound to a user, or stands for nobody any more.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> rusqlite::Result<()> {
    match event {
        Event::ConnectorKeyBound(it) => bound(sql, it),
        Event::ConnectorKeyUnbound(it) => unbound(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}

/// Binds a name to a user, and to no other.
fn bound(sql: &Sql<'_>, it: &ConnectorKeyBound) -> rusqlite::Result<()> {
    let text = "INSERT INTO connector_keys (key, user_id, bound_at) VALUES (?1, ?2, ?3) \
                ON CONFLICT (key) DO UPDATE SET user_id = excluded.user_id, bound_at = \
                excluded.bound_at";
    sql.write(
        text,
        params![it.key.to_string(), it.user_id.as_str(), int(it.time.0)],
    )
}

fn unbound(sql: &Sql<'_>, it: &ConnectorKeyUnbound) -> rusqlite::Result<()> {
    sql.write(
        "DELETE FROM connector_keys WHERE key = ?1",
        [it.key.to_string()],
    )
}

//! Connector keys: the names by which services know the users.

use crate::sql::{self, Sql, upsert};
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound, Event};

/// Records that a name was bound to a user, or that the binding was removed.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
    match event {
        Event::ConnectorKeyBound(it) => bound(sql, it),
        Event::ConnectorKeyUnbound(it) => unbound(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}

/// Binds a name to a user, and to no other.
fn bound(sql: &Sql<'_>, it: &ConnectorKeyBound) -> sql::Result<()> {
    upsert!(
        sql,
        connector_keys { key: it.key },
        set {
            user_id: it.user_id,
            bound_at: it.time
        }
    )
}

fn unbound(sql: &Sql<'_>, it: &ConnectorKeyUnbound) -> sql::Result<()> {
    sql.write("DELETE FROM connector_keys WHERE key = ?1", [&it.key])
}

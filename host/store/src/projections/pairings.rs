//! Pairing codes that were offered to senders whom nobody knows, until they are settled.

use crate::sql::{Sql, int};
use domain::event::{PairingOffered, PairingSettled};
use rusqlite::params;

/// A code was offered in place of any earlier one. Those of the connector that have expired by then
/// go.
pub(super) fn offered(sql: &Sql<'_>, it: &PairingOffered) -> rusqlite::Result<()> {
    let connector = it.key.connector().as_str();
    sql.execute(
        "DELETE FROM pairings WHERE connector = ?1 AND expires <= ?2",
        params![connector, int(it.time.0)],
    )?;
    sql.write(
        "INSERT INTO pairings (key, connector, name, chat, code, offered_at, expires) VALUES (?1, \
         ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (key) DO UPDATE SET name = excluded.name, chat = \
         excluded.chat, code = excluded.code, offered_at = excluded.offered_at, expires = \
         excluded.expires",
        params![
            it.key.to_string(),
            connector,
            it.name,
            it.chat,
            it.code,
            int(it.time.0),
            int(it.expires.0),
        ],
    )
}

pub(super) fn settled(sql: &Sql<'_>, it: &PairingSettled) -> rusqlite::Result<()> {
    sql.write("DELETE FROM pairings WHERE key = ?1", [it.key.to_string()])
}

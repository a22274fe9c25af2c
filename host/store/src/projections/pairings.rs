//! Pairing codes that were offered to unknown senders, until they are settled.

use crate::sql::{self, Sql, args, insert};
use domain::event::{PairingOffered, PairingSettled};

/// Records the offer of a code, which replaces any earlier one. Expired codes of the connector are
/// removed.
pub(super) fn offered(sql: &Sql<'_>, it: &PairingOffered) -> sql::Result<()> {
    let connector = it.key.connector().as_str();
    sql.execute(
        "DELETE FROM pairings WHERE connector = ?1 AND expires <= ?2",
        args![connector, it.time],
    )?;
    insert!(
        sql,
        pairings {
            key: it.key,
            connector,
            name: it.name,
            chat: it.chat,
            code: it.code,
            offered_at: it.time,
            expires: it.expires
        },
        "ON CONFLICT (key) DO UPDATE SET name = excluded.name, chat = excluded.chat, code = \
         excluded.code, offered_at = excluded.offered_at, expires = excluded.expires"
    )
}

pub(super) fn settled(sql: &Sql<'_>, it: &PairingSettled) -> sql::Result<()> {
    sql.write("DELETE FROM pairings WHERE key = ?1", [&it.key])
}

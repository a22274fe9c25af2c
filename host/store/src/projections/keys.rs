//! API keys, as far as telling them apart and checking them requires.

use crate::sql::{Sql, int, to_json};
use domain::event::{KeyIssued, KeyRevoked};
use rusqlite::params;

pub(super) fn issued(sql: &Sql<'_>, issued: &KeyIssued) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO api_keys (id, user_id, name, scopes, hash, issued_by, issued_with, issued_at, \
         expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            issued.key_id.as_str(),
            issued.user_id.as_str(),
            issued.name,
            to_json(&issued.scopes)?,
            issued.hash.0,
            issued.issued_by.as_str(),
            issued.issued_with.as_ref().map(|key| key.as_str()),
            int(issued.issued_at.0),
            int(issued.expires_at.0),
        ],
    )
}

/// A key no longer counts. The first time is what stays on record.
pub(super) fn revoked(sql: &Sql<'_>, revoked: &KeyRevoked) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE api_keys SET revoked_by = ?2, revoked_at = ?3, reason = ?4 WHERE id = ?1 AND \
         revoked_at IS NULL",
        params![
            revoked.key_id.as_str(),
            revoked.revoked_by.as_str(),
            int(revoked.revoked_at.0),
            revoked.reason
        ],
    )
}

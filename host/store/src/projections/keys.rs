//! API keys, with the data needed to identify and check them.

use crate::sql::{self, Sql, insert, named, to_json};
use domain::event::{KeyIssued, KeyRevoked};

pub(super) fn issued(sql: &Sql<'_>, issued: &KeyIssued) -> sql::Result<()> {
    insert!(
        sql,
        api_keys {
            id: issued.key_id,
            user_id: issued.user_id,
            name: issued.name,
            scopes: to_json(&issued.scopes)?,
            hash: issued.hash,
            issued_by: issued.issued_by,
            issued_with: issued.issued_with.as_ref().map(|key| key.as_str()),
            issued_at: issued.issued_at,
            expires_at: issued.expires_at
        }
    )
}

/// Records that a key is no longer valid. The first time is the one that stays recorded.
pub(super) fn revoked(sql: &Sql<'_>, revoked: &KeyRevoked) -> sql::Result<()> {
    sql.write(
        "UPDATE api_keys SET revoked_by = :revoked_by, revoked_at = :revoked_at, reason = :reason \
         WHERE id = :id AND revoked_at IS NULL",
        named![
            id = revoked.key_id,
            revoked_by = revoked.revoked_by,
            revoked_at = revoked.revoked_at,
            reason = revoked.reason
        ],
    )
}

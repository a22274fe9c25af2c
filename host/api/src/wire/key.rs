//! API keys in public form.

use domain::key::Ended;
use domain::time::Timestamp;
use domain::user::Scope;
use serde::Serialize;
use store::KeyRow;

/// The public details of a key. They contain neither the key nor its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    /// Its id.
    pub(crate) id: String,
    /// The user that it authenticates.
    pub(crate) user_id: String,
    /// Its name.
    pub(crate) name: String,
    /// The scopes that it may be used for.
    pub(crate) scopes: Vec<&'static str>,
    /// `active`, `expired` or `revoked`.
    pub(crate) state: &'static str,
    /// The user who issued it.
    pub(crate) issued_by: String,
    /// The key with which it was issued; none when another credential was used.
    pub(crate) issued_with: Option<String>,
    /// The time at which it was issued, ISO 8601.
    pub(crate) issued_at: String,
    /// The time at which it expires, ISO 8601.
    pub(crate) expires_at: String,
    /// The user who revoked it.
    pub(crate) revoked_by: Option<String>,
    /// The time at which it was revoked, ISO 8601.
    pub(crate) revoked_at: Option<String>,
    /// The reason for the revocation, if one was given.
    pub(crate) reason: Option<String>,
}

/// A stored key as clients see it.
pub(crate) fn key(row: &KeyRow, now: Timestamp) -> KeyView {
    let (revoked_by, revoked_at) = row
        .revoked
        .as_ref()
        .map(|(by, at)| (by.to_string(), at.to_string()))
        .unzip();
    KeyView {
        id: row.id.to_string(),
        user_id: row.user.to_string(),
        name: row.name.clone(),
        scopes: row.scopes.iter().copied().map(Scope::as_str).collect(),
        state: match row.ended(now) {
            None => "active",
            Some(Ended::Expired) => "expired",
            Some(Ended::Revoked) => "revoked",
        },
        issued_by: row.issued_by.to_string(),
        issued_with: row.issued_with.as_ref().map(ToString::to_string),
        issued_at: row.issued_at.to_string(),
        expires_at: row.expires_at.to_string(),
        revoked_by,
        revoked_at,
        reason: row.reason.clone(),
    }
}

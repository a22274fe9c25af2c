//! API keys in public form.

use domain::key::Ended;
use domain::time::Timestamp;
use domain::user::Scope;
use serde::Serialize;
use store::KeyRow;

/// What is known of a key. Neither the key nor its hash is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Key)]
pub struct KeyView {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub user_id: String,
    /// What it is called.
    pub name: String,
    /// What it may be used for.
    pub scopes: Vec<&'static str>,
    /// `active`, `expired` or `revoked`.
    pub state: &'static str,
    /// Who issued it.
    pub issued_by: String,
    /// With which key; none when it was with something else.
    pub issued_with: Option<String>,
    /// When, ISO 8601.
    pub issued_at: String,
    /// When it ends by itself.
    pub expires_at: String,
    /// Who revoked it.
    pub revoked_by: Option<String>,
    /// When.
    pub revoked_at: Option<String>,
    /// Why, if somebody said so.
    pub reason: Option<String>,
}

/// A stored key as clients see it.
#[must_use]
pub fn key(row: &KeyRow, now: Timestamp) -> KeyView {
    let (revoked_by, revoked_at) = row.revoked.as_ref().map(|(by, at)| (by.to_string(), at.to_string())).unzip();
    KeyView {
        id: row.id.to_string(),
        user_id: row.user.to_string(),
        name: row.name.clone(),
        scopes: row.scopes.iter().copied().map(Scope::word).collect(),
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

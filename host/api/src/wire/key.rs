//! API keys in public form.

use super::Time;
use domain::key::{Ended, KeyId};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde::Serialize;
use std::collections::BTreeSet;
use store::KeyRow;

/// The public details of a key. They contain neither the key nor its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    /// Its id.
    pub(crate) id: KeyId,
    /// The user that it authenticates.
    pub(crate) user_id: UserId,
    /// Its name.
    pub(crate) name: String,
    /// The scopes that it may be used for.
    pub(crate) scopes: BTreeSet<Scope>,
    /// Its state.
    pub(crate) state: KeyState,
    /// The user who issued it.
    pub(crate) issued_by: UserId,
    /// The key with which it was issued; none when another credential was used.
    pub(crate) issued_with: Option<KeyId>,
    /// The time at which it was issued, ISO 8601.
    pub(crate) issued_at: Time,
    /// The time at which it expires, ISO 8601.
    pub(crate) expires_at: Time,
    /// The user who revoked it.
    pub(crate) revoked_by: Option<UserId>,
    /// The time at which it was revoked, ISO 8601.
    pub(crate) revoked_at: Option<Time>,
    /// The reason for the revocation, if one was given.
    pub(crate) reason: Option<String>,
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyState {
    /// It is valid.
    Active,
    /// Its time is up.
    Expired,
    /// It was revoked.
    Revoked,
}

/// A stored key as clients see it.
pub(crate) fn key(row: &KeyRow, now: Timestamp) -> KeyView {
    let (revoked_by, revoked_at) = row.revoked.clone().unzip();
    KeyView {
        id: row.id.clone(),
        user_id: row.user.clone(),
        name: row.name.clone(),
        scopes: row.scopes.clone(),
        state: match row.ended(now) {
            None => KeyState::Active,
            Some(Ended::Expired) => KeyState::Expired,
            Some(Ended::Revoked) => KeyState::Revoked,
        },
        issued_by: row.issued_by.clone(),
        issued_with: row.issued_with.clone(),
        issued_at: Time(row.issued_at),
        expires_at: Time(row.expires_at),
        revoked_by,
        revoked_at: revoked_at.map(Time),
        reason: row.reason.clone(),
    }
}

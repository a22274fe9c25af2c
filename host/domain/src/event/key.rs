//! What happens to API keys: payloads of the host's own stream. No secret is in any of them.

use crate::digest::Digest;
use crate::key::KeyId;
use crate::time::Timestamp;
use crate::user::{Scope, UserId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// See [`super::Event::KeyIssued`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIssued {
    /// The key.
    pub key_id: KeyId,
    /// Whose it is.
    pub user_id: UserId,
    /// What it is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it may be used for.
    pub scopes: BTreeSet<Scope>,
    /// The SHA-256 of its secret.
    pub hash: Digest,
    /// Who issued it.
    pub issued_by: UserId,
    /// With which key; none when it was with something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_with: Option<KeyId>,
    /// When.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// See [`super::Event::KeyRevoked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevoked {
    /// The key.
    pub key_id: KeyId,
    /// Who revoked it.
    pub revoked_by: UserId,
    /// When.
    pub revoked_at: Timestamp,
    /// Why, if somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

//! Payloads of the host's own stream about API keys. No secret is in any of them.

use crate::access::key::KeyId;
use crate::access::user::{Scope, UserId};
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// See [`super::Event::KeyIssued`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIssued {
    /// The key.
    pub key_id: KeyId,
    /// The user to whom the key belongs.
    pub user_id: UserId,
    /// Name of the key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Scopes for which the key may be used.
    pub scopes: BTreeSet<Scope>,
    /// The SHA-256 of its secret.
    pub hash: Digest,
    /// The user who issued it.
    pub issued_by: UserId,
    /// The key that was used to issue it; none if it was issued with other credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_with: Option<KeyId>,
    /// Time of issue.
    pub issued_at: Timestamp,
    /// Time at which the key expires.
    pub expires_at: Timestamp,
}

/// See [`super::Event::KeyRevoked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevoked {
    /// The key.
    pub key_id: KeyId,
    /// The user who revoked it.
    pub revoked_by: UserId,
    /// Time of the revocation.
    pub revoked_at: Timestamp,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

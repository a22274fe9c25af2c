//! Buckets: the keys and values that a component may keep with the host.

use super::Access;
use serde::{Deserialize, Serialize};

/// Bytes of a bucket's name.
pub const BUCKET_NAME_BYTES_MAX: usize = 64;
/// Bytes of a key.
pub const KEY_BYTES_MAX: usize = 256;
/// Bytes of a value: 64 KiB.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// Bytes that one call may write, keys included: 1 MiB.
pub const WRITTEN_BYTES_MAX: usize = 1 << 20;
/// Bytes that a bucket may hold in one scope: 64 MiB.
pub const BUCKET_BYTES_MAX: u64 = 64 << 20;

/// Bytes that a bucket may hold in one scope unless the grant says otherwise: 4 MiB.
const BUCKET_BYTES: u64 = 4 << 20;
/// Keys that it may hold unless the grant says otherwise.
const BUCKET_KEYS: u32 = 10_000;

/// Who shares what a bucket holds. Two scopes never see each other's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BucketScope {
    /// All calls of the component.
    Component,
    /// All calls for one user.
    User,
    /// All calls of one agent.
    #[default]
    Agent,
    /// All calls in one session.
    Session,
}

/// A bucket that a component may use. Its tools read it for an agent that may have the capability `<bucket>.read`, and write it with
/// `<bucket>.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BucketGrant {
    /// The name by which the component opens it: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub bucket: String,
    /// Who shares what it holds. Missing is `agent`.
    #[serde(default)]
    pub scope: BucketScope,
    /// How it may be used.
    pub access: Access,
    /// Bytes of keys and values that it may hold in one scope.
    #[serde(default = "bucket_bytes")]
    #[schemars(range(min = 1, max = 67_108_864))]
    pub bytes_max: u64,
    /// Keys that it may hold in one scope.
    #[serde(default = "bucket_keys")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub keys_max: u32,
}

fn bucket_bytes() -> u64 {
    BUCKET_BYTES
}

fn bucket_keys() -> u32 {
    BUCKET_KEYS
}

impl BucketGrant {
    /// A bucket with everything else as when it is not written.
    #[must_use]
    pub fn of(bucket: impl Into<String>, access: Access) -> Self {
        Self { bucket: bucket.into(), scope: BucketScope::default(), access, bytes_max: BUCKET_BYTES, keys_max: BUCKET_KEYS }
    }

    /// The capability that reading it takes.
    #[must_use]
    pub fn reading(&self) -> String {
        format!("{}.read", self.bucket)
    }

    /// The capability that writing it takes.
    #[must_use]
    pub fn writing(&self) -> String {
        format!("{}.write", self.bucket)
    }
}

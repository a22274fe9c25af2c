//! Buckets: the keys and values that a component may store on the host.

pub use shapes::limits::tool::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::Access;
use crate::values::id::{AgentId, SessionId};
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shapes::NAME_BYTES_MAX;

/// Bytes that one call may write, keys included: 1 MiB.
pub const WRITTEN_BYTES_MAX: usize = 1 << 20;
/// Bytes that a bucket may hold in one scope: 64 MiB.
pub const BUCKET_BYTES_MAX: u64 = 64 << 20;

/// Default for the bytes that a bucket may hold in one scope: 4 MiB.
const BUCKET_BYTES: u64 = 4 << 20;
/// Default for the keys that it may hold in one scope.
const BUCKET_KEYS: u32 = 10_000;

/// Names that no bucket may have, because their capabilities have another meaning.
const TAKEN: [&str; 7] = [
    "files", "net", "env", "secrets", "tools", "models", "agents",
];

/// The calls that share a bucket's content. Two scopes never see each other's keys.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
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

words!(BucketScope {
    Component = "component",
    User = "user",
    Agent = "agent",
    Session = "session",
});

/// The user, agent and session on whose behalf a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behalf<'a> {
    /// The user.
    pub user: &'a str,
    /// The agent that calls.
    pub agent: AgentId,
    /// Its session.
    pub session: SessionId,
}

/// One bucket in one scope: calls share keys only within it. The component is identified by the
/// operator's name, so that a new version of its code finds the keys of the old one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BucketPlace {
    /// The component.
    pub component: String,
    /// The bucket.
    pub bucket: String,
    /// The calls that share it.
    pub scope: BucketScope,
    /// Owner of the bucket: the id of the user, the agent or the session. Empty if all calls of the
    /// component share it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
}

/// Reason why a bucket cannot be granted under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBucket {
    /// It is no name.
    #[error("a bucket's name is 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _")]
    Name,
    /// Its capabilities would have another meaning.
    #[error(
        "a bucket cannot be called `files`, `net`, `env`, `secrets`, `tools`, `models` or \
             `agents`: its capabilities would be those of something else"
    )]
    Taken,
}

/// A bucket that a component may use. Its tools read it for an agent with the capability
/// `<bucket>.read`, and write it with `<bucket>.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BucketGrant {
    /// The component's name for it: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub bucket: String,
    /// The calls that share its content. The default is `agent`.
    #[serde(default)]
    pub scope: BucketScope,
    /// Access to the bucket.
    pub access: Access,
    /// The most bytes of keys and values in one scope.
    #[serde(default = "bucket_bytes")]
    #[schemars(range(min = 1, max = 67_108_864))]
    pub bytes_max: u64,
    /// The most keys in one scope.
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
    /// A bucket with defaults for everything else.
    #[must_use]
    pub fn new(bucket: impl Into<String>, access: Access) -> Self {
        Self {
            bucket: bucket.into(),
            scope: BucketScope::default(),
            access,
            bytes_max: BUCKET_BYTES,
            keys_max: BUCKET_KEYS,
        }
    }

    /// Checks whether a bucket can have this name.
    ///
    /// # Errors
    /// The fault of the name.
    pub fn check_name(name: &str) -> Result<(), BadBucket> {
        if !shapes::is_name(name, b"-_") {
            return Err(BadBucket::Name);
        }
        if TAKEN.contains(&name) {
            Err(BadBucket::Taken)
        } else {
            Ok(())
        }
    }

    /// The bucket of a component's call under this grant.
    #[must_use]
    pub fn place(&self, component: &str, behalf: Behalf<'_>) -> BucketPlace {
        let of = match self.scope {
            BucketScope::Component => String::new(),
            BucketScope::User => behalf.user.to_owned(),
            BucketScope::Agent => behalf.agent.to_string(),
            BucketScope::Session => behalf.session.to_string(),
        };
        BucketPlace {
            component: component.to_owned(),
            bucket: self.bucket.clone(),
            scope: self.scope,
            of,
        }
    }

    /// The capability for reading it.
    #[must_use]
    pub fn reading(&self) -> String {
        format!("{}.read", self.bucket)
    }

    /// The capability for writing it.
    #[must_use]
    pub fn writing(&self) -> String {
        format!("{}.write", self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_bucket_has_a_plain_name_that_stands_for_nothing_else() {
        let longest = "b".repeat(64);
        let longer = "b".repeat(65);
        for (name, expected) in [
            ("reading-list_2", Ok(())),
            (longest.as_str(), Ok(())),
            (longer.as_str(), Err(BadBucket::Name)),
            ("", Err(BadBucket::Name)),
            ("Lists", Err(BadBucket::Name)),
            ("a.b", Err(BadBucket::Name)),
            ("a*", Err(BadBucket::Name)),
            ("files", Err(BadBucket::Taken)),
            ("agents", Err(BadBucket::Taken)),
        ] {
            assert_eq!(BucketGrant::check_name(name), expected, "{name}");
        }
    }

    #[test]
    fn a_scope_says_who_shares_a_bucket() {
        let [ada, grace] = ["ada", "grace"];
        let call = |user, agent: u128, session: u128| Behalf {
            user,
            agent: AgentId(Uuid::from_u128(agent)),
            session: SessionId(Uuid::from_u128(session)),
        };
        let first = call(ada, 1, 1);
        for (scope, shared) in [
            (BucketScope::Component, [true, true, true]),
            (BucketScope::User, [true, true, false]),
            (BucketScope::Agent, [true, false, false]),
            (BucketScope::Session, [false, false, false]),
        ] {
            let grant = BucketGrant {
                scope,
                ..BucketGrant::new("b", Access::ReadWrite)
            };
            let others = [call(ada, 1, 2), call(ada, 2, 3), call(grace, 3, 4)];
            assert_eq!(
                others.map(|other| grant.place("c", other) == grant.place("c", first)),
                shared,
                "{scope:?}"
            );
            assert_ne!(
                grant.place("c", first),
                grant.place("d", first),
                "components share nothing"
            );
        }
    }
}

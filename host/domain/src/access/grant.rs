//! Grants: an operator's permissions for a component, and the part of them that one call gets.

mod bucket;
pub mod capability;
mod owned;
mod placing;
mod secret;

use crate::access::confirm::Confirm;
use crate::access::egress::EgressGrant;
use crate::access::glob::{Glob, Inside};
use crate::access::ruling::Ruling;
use agent_host_glob::name_matches;
pub use bucket::{
    BUCKET_BYTES_MAX, BadBucket, Behalf, BucketGrant, BucketPlace, BucketScope, KEY_BYTES_MAX,
    VALUE_BYTES_MAX, WRITTEN_BYTES_MAX,
};
pub use owned::{
    BadPattern, FolderPattern, Meeting, OWNER_NAME_BYTES_MAX, OwnedFolder, Owner, Ownerless,
    Owners, Segment, meeting, owner_name,
};
pub use placing::{FileId, FolderChain, Nested, Nesting, Placed, nested};
use schemars::JsonSchema;
pub use secret::{SecretGrant, SecretGrantError, SecretSlot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A list of names, where `*` stands for any run of characters and all other characters for
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PatternList(pub Vec<String>);

impl PatternList {
    /// Returns whether any pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.matching(name).is_some()
    }

    /// The first pattern that matches the whole name.
    #[must_use]
    pub fn matching(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|pattern| name_matches(pattern, name))
            .map(String::as_str)
    }

    /// Returns whether the list is empty, and so matches nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These patterns and others, without duplicates.
    #[must_use]
    pub fn and(&self, others: Option<&Self>) -> Self {
        let mut all = self.clone();
        for other in others.into_iter().flat_map(|others| &others.0) {
            if !all.0.contains(other) {
                all.0.push(other.clone());
            }
        }
        all
    }

    /// Returns whether a pattern specific to such names matches a name. It is specific if it begins
    /// as the names do, with one of [`NAMED_ONLY`].
    #[must_use]
    pub fn means(&self, beginning: &str, name: &str) -> bool {
        let mut patterns = self.0.iter();
        patterns.any(|pattern| pattern.starts_with(beginning) && name_matches(pattern, name))
    }

    /// Returns whether the list matches everything that a pattern matches, and offers everything
    /// that it offers.
    ///
    /// A `*` of the pattern is treated as a letter, which only a `*` of the list matches. Names
    /// that only a specific pattern offers need a specific pattern here too.
    #[must_use]
    pub fn covers(&self, pattern: &str) -> bool {
        match named_only(pattern) {
            Some(beginning) => self.means(beginning, pattern),
            None => self.matches(pattern),
        }
    }

    /// Everything.
    #[must_use]
    pub fn everything() -> Self {
        Self(vec!["*".to_owned()])
    }
}

/// Prefixes of the names that no general pattern offers: tools of the host's own, and the
/// capability that some of them need. A missing list does not offer them either.
pub const NAMED_ONLY: [&str; 3] = [MEMORY_TOOLS, PANEL_TOOLS, TRIGGERS];
/// The prefix of the tools with which agents search and store notes.
pub const MEMORY_TOOLS: &str = "memory_";
/// The prefix of the tools that read a user's panels.
pub const PANEL_TOOLS: &str = "panels_";
/// The prefix of the capabilities on triggers.
pub const TRIGGERS: &str = "triggers.";

/// Returns the prefix of the names that a pattern is specific to, if only specific patterns offer
/// them.
#[must_use]
pub fn named_only(pattern: &str) -> Option<&'static str> {
    let mut beginnings = NAMED_ONLY.into_iter();
    beginnings.find(|beginning| pattern.starts_with(beginning))
}

/// Access to a folder or a bucket.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Files can be read.
    ReadOnly,
    /// Files can also be made, changed and removed.
    ReadWrite,
}

/// Limits of a guest's use of the machine, per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GuestLimits {
    /// Bytes of all its memories and tables together.
    #[schemars(range(min = 65_536, max = 268_435_456))]
    pub memory_bytes_max: u64,
    /// Milliseconds of computing, in CPU time: waiting does not count.
    #[schemars(range(min = 1, max = 600_000))]
    pub cpu_ms_max: u64,
    /// Milliseconds of wall time, host calls included.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub wall_ms_max: u64,
    /// Calls that run in parallel; further ones wait.
    #[schemars(range(min = 1, max = 1_000))]
    pub concurrency_max: u32,
    /// Calls that begin within one minute; further ones are refused.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_per_minute_max: u32,
    /// Bytes that all HTTP requests of one call may send and receive together.
    #[schemars(range(min = 0, max = 17_179_869_184_u64))]
    pub egress_bytes_max: u64,
    /// Bytes of log that are kept of one call, stdout and stderr included. Further bytes are
    /// dropped and counted.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub log_bytes_max: u64,
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 64 << 20,
            cpu_ms_max: 1_000,
            wall_ms_max: 30_000,
            concurrency_max: 16,
            calls_per_minute_max: 60_000,
            egress_bytes_max: 1 << 30,
            log_bytes_max: 64 << 10,
        }
    }
}

/// An operator's grant to a component. Missing permissions are not granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grant {
    /// Folders that it may use.
    pub directories: Vec<DirectoryGrant>,
    /// Requests that it may send.
    pub network: Vec<EgressGrant>,
    /// Environment variables that it sees, by name.
    pub environment: BTreeMap<String, String>,
    /// Buckets of keys and values that it may use.
    pub key_value: Vec<BucketGrant>,
    /// Secrets that the host puts into its requests.
    pub secrets: Vec<SecretGrant>,
    /// Models that an agent component may call, by alias.
    pub models: PatternList,
    /// Agents that an agent component may dispatch to.
    pub agents: PatternList,
    /// Its tools that are called only after a user has agreed to that very call.
    #[serde(skip_serializing_if = "Confirm::is_nothing")]
    pub confirm: Confirm,
    /// Limits of its use of the machine.
    pub limits: GuestLimits,
}

/// The part of a component's grant for one call. Only `Caller::bound` (`agents/authority.rs`)
/// computes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// The folders, each with no more access than the caller's capabilities allow.
    pub directories: Vec<DirectoryGrant>,
    /// The requests that it may send: all granted ones, or none.
    pub network: Vec<EgressGrant>,
    /// Environment variables that it sees.
    pub environment: BTreeMap<String, String>,
    /// The buckets, each with no more access than the caller's capabilities allow.
    pub key_value: Vec<BucketGrant>,
    /// Secrets that the host puts into its requests.
    pub secrets: Vec<SecretGrant>,
    /// Limits of its use of the machine.
    pub limits: GuestLimits,
    /// Every capability that the tool asks for or that its component is granted, by name, with the
    /// rule that decided.
    pub rulings: Vec<Ruling>,
}

// Folders that a component may use: the access, the permitted files, and the quotas.

/// A folder that a component may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryGrant {
    /// The folder on this machine. A relative path starts from the config file's folder. A name in
    /// it may be `{user}`, `{agent}` or `{session}`. Each user, agent or session then has a
    /// separate folder, made at the first call that uses it. The quotas apply to each separate
    /// folder.
    pub path: PathBuf,
    /// Path at which the component sees it, such as `/workspace`.
    pub at: String,
    /// Access to the folder.
    pub access: Access,
    /// Patterns of the files in it that may be used, relative to the folder, such as `src/**/*.rs`.
    /// Without it, all files. Folders may be walked in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Glob>>,
    /// Patterns of files and folders in it that are hidden and unusable, with all their content.
    /// Wins over `allow`. Letter case counts: on a disk that ignores case, deny both `A` and `a`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Glob>,
    /// The most bytes of all files in it together, by their lengths. Existing files count. Files
    /// written by other programs meanwhile are included at the next count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64))]
    pub bytes_max: Option<u64>,
    /// The most files and folders in it. Existing ones count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub files_max: Option<u32>,
}

/// Reason why a path is barred. The guest does not learn the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barred {
    /// It leads out of the folder.
    Outside,
    /// It is denied, or leads through a denied folder.
    Denied,
}

impl DirectoryGrant {
    /// A whole folder, without patterns and quotas.
    pub fn whole(path: impl Into<PathBuf>, at: impl Into<String>, access: Access) -> Self {
        Self {
            path: path.into(),
            at: at.into(),
            access,
            allow: None,
            deny: Vec::new(),
            bytes_max: None,
            files_max: None,
        }
    }

    /// Returns whether its patterns allow some of it and not all.
    #[must_use]
    pub fn has_patterns(&self) -> bool {
        self.allow.is_some() || !self.deny.is_empty()
    }

    /// Returns whether writes to it are counted.
    #[must_use]
    pub fn has_quota(&self) -> bool {
        self.bytes_max.is_some() || self.files_max.is_some()
    }

    /// Resolves a path from a place in the folder, by its names alone. The caller checks links.
    /// Every folder on the path is checked, also one that a `..` leaves again.
    ///
    /// # Errors
    /// It is absolute, leads out of the folder, or passes a denied one.
    pub fn reach(&self, from: &Inside, path: &str) -> Result<Inside, Barred> {
        if path.starts_with('/') {
            return Err(Barred::Outside);
        }
        let mut reached = from.clone();
        let base = from.depth();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." if reached.depth() == base => return Err(Barred::Outside),
                ".." => {
                    reached.pop();
                }
                name => {
                    reached.push(name);
                    if self.denies(&reached) {
                        return Err(Barred::Denied);
                    }
                }
            }
        }
        Ok(reached)
    }

    /// Returns whether a path is hidden and refused, because a deny matches it or one of its
    /// folders.
    #[must_use]
    pub fn denies(&self, path: &Inside) -> bool {
        path.is_within_any(&self.deny)
    }

    /// Returns whether the guest may have a file at this path: anything but a folder.
    #[must_use]
    pub fn allows_file(&self, path: &Inside) -> bool {
        !self.denies(path)
            && self
                .allow
                .as_ref()
                .is_none_or(|allow| allow.iter().any(|pattern| pattern.matches(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, name, expected) in [
            ("reading_list_*", "reading_list_add", true),
            ("reading_list_*", "todo_add", false),
            ("*", "", true),
            ("a*b*c", "a__b__c", true),
            ("a*b*c", "a__c", false),
            ("a.b", "aXb", false),
            ("", "a", false),
            ("lists.*", "lists.write", true),
        ] {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}

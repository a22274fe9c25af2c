//! Folders that a component may use: the access, the permitted files, and the quotas.

use super::Access;
use crate::access::glob::{Glob, Inside};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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

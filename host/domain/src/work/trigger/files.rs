//! Watched folders: the changes between two polls.
//!
//! A scan is a bounded list of files with the data that identifies their states. The choice of
//! folders and times is not made here.

use super::{CHANGES_MAX, FILES_DEBOUNCE_MS_DEFAULT, FILES_WATCHED_MAX, Interval};
use crate::access::glob::{Glob, Inside};
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A watched folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesSpec {
    /// The name of the folder in the component's grant, such as `/inbox`.
    pub folder: String,
    /// Only files whose path below the folder matches one of these patterns, such as `**/*.md`; all
    /// files without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Glob>,
    /// Quiet time before changes become a trigger event, from `100ms` to `1h`.
    #[serde(default = "debounce_default")]
    pub debounce: Interval,
    /// True to include files in subfolders; default true.
    #[serde(default = "yes")]
    pub recursive: bool,
}

fn debounce_default() -> Interval {
    Interval::of_limit(FILES_DEBOUNCE_MS_DEFAULT)
}

fn yes() -> bool {
    true
}

impl FilesSpec {
    /// Returns whether a file is watched, by the names of its path below the folder.
    #[must_use]
    pub fn wants(&self, path: &str) -> bool {
        let mut inside = Inside::default();
        for name in path.split('/') {
            inside.push(name);
        }
        let is_reached = self.recursive || inside.depth() == 1;
        is_reached
            && (self.patterns.is_empty()
                || self.patterns.iter().any(|pattern| pattern.matches(&inside)))
    }
}

/// The kind of a change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// Its content or its time changed.
    Changed,
    /// It was removed.
    Removed,
    /// It was renamed.
    Renamed,
}

words!(ChangeKind {
    Created = "created",
    Changed = "changed",
    Removed = "removed",
    Renamed = "renamed",
});

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// Its path below the folder, with `/`.
    pub path: String,
    /// Its former path, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Its size in bytes; none if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Files of a watched folder that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanges {
    /// The name under which the folder is granted.
    pub folder: String,
    /// The changes, ordered by path: [`CHANGES_MAX`] at most.
    pub changes: Vec<FileChange>,
    /// Number of further changes.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub more: u32,
}

/// A file in one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScannedFile {
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last change, in milliseconds since the Unix epoch; negative before that.
    pub modified_ms: i64,
    /// The device of the file and its number there; none if the system has no such numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<(u64, u64)>,
}

/// A scan of a watched folder: the first [`FILES_WATCHED_MAX`] files, ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FolderScan {
    /// The files, by their paths below the folder.
    pub files: BTreeMap<String, ScannedFile>,
    /// True if there were more files. The later ones are not part of the scan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl FolderScan {
    /// Adds a file, in any order.
    pub fn add(&mut self, path: String, file: ScannedFile) {
        self.files.insert(path, file);
        if self.files.len() > FILES_WATCHED_MAX {
            self.files.pop_last();
            self.cut = true;
        }
    }

    /// Returns the changes from this scan to a later one, if any. Files that are ordered after the
    /// end of either scan are not reported.
    #[must_use]
    pub fn changes(&self, later: &Self, folder: &str) -> Option<FileChanges> {
        let mut changes: Vec<FileChange> = Vec::new();
        let mut gone = self.gone(later);
        for (path, file) in &later.files {
            if !self.covers(path) {
                continue;
            }
            let change = match self.files.get(path) {
                Some(before) if before.is_same(file) => continue,
                Some(_) => FileChange::new(ChangeKind::Changed, path, Some(file.size)),
                None => match gone.take(file) {
                    Some(was) => FileChange {
                        was: Some(was),
                        ..FileChange::new(ChangeKind::Renamed, path, Some(file.size))
                    },
                    None => FileChange::new(ChangeKind::Created, path, Some(file.size)),
                },
            };
            changes.push(change);
        }
        let removed = gone.paths();
        changes.extend(removed.map(|path| FileChange::new(ChangeKind::Removed, path, None)));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let more = changes.len().saturating_sub(CHANGES_MAX);
        changes.truncate(CHANGES_MAX);
        (!changes.is_empty()).then(|| FileChanges {
            folder: folder.to_owned(),
            changes,
            more: u32::try_from(more).unwrap_or(u32::MAX),
        })
    }

    /// The files of this scan that a later scan does not contain.
    fn gone(&self, later: &Self) -> Gone<'_> {
        let mut gone = Gone::default();
        for (path, file) in &self.files {
            if later.covers(path) && !later.files.contains_key(path) {
                gone.add(path, file);
            }
        }
        gone
    }

    /// Returns whether the scan covers a path.
    fn covers(&self, path: &str) -> bool {
        let last = self.files.last_key_value();
        !self.cut || last.is_some_and(|(last, _)| path <= last.as_str())
    }
}

impl ScannedFile {
    /// Returns whether the data of two states of a path is equal. A replacement with the same size
    /// and time counts as the same file.
    fn is_same(&self, other: &Self) -> bool {
        self.size == other.size && self.modified_ms == other.modified_ms
    }
}

impl FileChange {
    fn new(kind: ChangeKind, path: &str, size: Option<u64>) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            was: None,
            size,
        }
    }
}

/// The identity by which a renamed file is recognised. Size and time are part of it: the number of
/// a removed file is soon reused.
type Identity = (u64, u64, u64, i64);

/// Removed files, which may reappear under other names.
#[derive(Default)]
struct Gone<'a> {
    by_identity: BTreeMap<Identity, Vec<&'a str>>,
    others: Vec<&'a str>,
}

impl<'a> Gone<'a> {
    fn add(&mut self, path: &'a str, file: &ScannedFile) {
        match identity(file) {
            Some(identity) => self.by_identity.entry(identity).or_default().push(path),
            None => self.others.push(path),
        }
    }

    /// Takes out the former path of a file; none for a new file.
    fn take(&mut self, file: &ScannedFile) -> Option<String> {
        let paths = self.by_identity.get_mut(&identity(file)?)?;
        paths.pop().map(str::to_owned)
    }

    fn paths(self) -> impl Iterator<Item = &'a str> {
        self.by_identity.into_values().flatten().chain(self.others)
    }
}

fn identity(file: &ScannedFile) -> Option<Identity> {
    let (device, number) = file.id?;
    Some((device, number, file.size, file.modified_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(size: u64, modified_ms: i64, number: u64) -> ScannedFile {
        ScannedFile {
            size,
            modified_ms,
            id: Some((1, number)),
        }
    }

    fn inspect(files: &[(&str, ScannedFile)]) -> FolderScan {
        let mut scan = FolderScan::default();
        for (path, file) in files {
            scan.add((*path).to_owned(), *file);
        }
        scan
    }

    /// The changes as text: `created a`, `renamed a -> b`.
    fn reported(before: &FolderScan, after: &FolderScan) -> Vec<String> {
        let changes = before.changes(after, "/inbox");
        changes
            .into_iter()
            .flat_map(|changes| changes.changes)
            .map(|change| match change.was {
                Some(was) => format!("{} {was} -> {}", change.kind, change.path),
                None => format!("{} {}", change.kind, change.path),
            })
            .collect()
    }

    #[test]
    fn two_looks_differ_in_what_was_made_changed_removed_and_renamed() {
        let before = inspect(&[
            ("a.md", file(1, 10, 1)),
            ("b.md", file(2, 10, 2)),
            ("c.md", file(3, 10, 3)),
            ("same.md", file(4, 10, 4)),
        ]);
        let after = inspect(&[
            ("a.md", file(1, 11, 1)),
            ("new.md", file(5, 12, 5)),
            ("same.md", file(4, 10, 4)),
            ("z/c.md", file(3, 10, 3)),
        ]);
        assert_eq!(
            reported(&before, &after),
            [
                "changed a.md",
                "removed b.md",
                "created new.md",
                "renamed c.md -> z/c.md",
            ]
        );
        assert_eq!(before.changes(&before, "/inbox"), None);
    }

    /// A number that was given to another file is told from a file that got another name.
    #[test]
    fn a_new_file_with_the_number_of_a_removed_one_is_no_rename() {
        let before = inspect(&[("a.md", file(1, 10, 1))]);
        let after = inspect(&[("b.md", file(7, 20, 1))]);
        assert_eq!(reported(&before, &after), ["removed a.md", "created b.md"]);
    }

    #[test]
    fn a_flood_is_one_trigger_event_with_a_bounded_list() {
        let mut after = FolderScan::default();
        for number in 0..1_000_u64 {
            after.add(format!("{number:04}"), file(1, 1, number));
        }
        let changes = FolderScan::default().changes(&after, "/inbox").unwrap();
        assert_eq!((changes.changes.len(), changes.more), (CHANGES_MAX, 900));
        assert_eq!(changes.changes[0].path, "0000");
    }

    #[test]
    fn a_look_keeps_the_first_files_and_says_nothing_of_later_ones() {
        let mut full = FolderScan::default();
        for number in (0..FILES_WATCHED_MAX + 2).rev() {
            full.add(format!("{number:06}"), file(1, 1, 1));
        }
        assert!(full.cut);
        assert_eq!(full.files.len(), FILES_WATCHED_MAX);
        let mut later = full.clone();
        later.files.remove("000007");
        later.files.insert("zzz".to_owned(), file(1, 1, 9));
        assert_eq!(reported(&full, &later), ["removed 000007"]);
    }

    #[test]
    fn a_file_counts_by_its_patterns_and_its_depth() {
        let spec = |text: &str| serde_json::from_str::<FilesSpec>(text).unwrap();
        let all = spec(r#"{"folder":"/inbox"}"#);
        assert!(all.wants("a.md") && all.wants("x/a.md"));
        assert_eq!(all.debounce.ms(), 1_000);
        let flat = spec(r#"{"folder":"/inbox","recursive":false}"#);
        assert!(flat.wants("a.md") && !flat.wants("x/a.md"));
        let notes = spec(r#"{"folder":"/inbox","patterns":["**/*.md"]}"#);
        assert!(notes.wants("a.md") && notes.wants("x/y/a.md") && !notes.wants("a.txt"));
    }

    fn scans() -> impl Strategy<Value = FolderScan> {
        let seen = (0..3_u64, 0..3_i64, 0..6_u64);
        prop::collection::btree_map("[a-f]", seen, 0..6).prop_map(|files| {
            let mut scan = FolderScan::default();
            for (path, (size, modified_ms, number)) in files {
                scan.add(path, file(size, modified_ms, number));
            }
            scan
        })
    }

    proptest! {
        /// The changes, done to the paths of the first scan, lead to those of the second.
        #[test]
        fn the_changes_lead_from_one_look_to_the_other(before in scans(), after in scans()) {
            let mut paths: std::collections::BTreeSet<String> = before.files.keys().cloned().collect();
            let changes = before.changes(&after, "/f").map_or(Vec::new(), |changes| changes.changes);
            for change in &changes {
                if let Some(was) = &change.was {
                    prop_assert!(paths.remove(was));
                }
            }
            for change in &changes {
                match change.kind {
                    ChangeKind::Created | ChangeKind::Renamed => {
                        prop_assert!(paths.insert(change.path.clone()));
                    }
                    ChangeKind::Removed => prop_assert!(paths.remove(&change.path)),
                    ChangeKind::Changed => prop_assert!(paths.contains(&change.path)),
                }
            }
            prop_assert_eq!(paths, after.files.keys().cloned().collect());
        }
    }
}

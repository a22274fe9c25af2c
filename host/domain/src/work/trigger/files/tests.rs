//! Tests of what changed between two polls at a folder.

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

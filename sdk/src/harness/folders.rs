//! Temporary folders in place of granted ones, for native tests: a test has those that it granted,
//! and no other test sees them.

use crate::harness::bench::require;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env::temp_dir;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, process};

/// Names that are tried for a folder, should older processes have left some behind.
const NAMES_MAX: u64 = 1_000;

static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static FOLDERS: RefCell<BTreeMap<String, PathBuf>> = const { RefCell::new(BTreeMap::new()) };
}

/// A folder that is granted as long as this lives. Then it is removed with all that is in it.
#[derive(Debug)]
#[must_use = "the folder is removed when this is dropped"]
pub struct GrantedFolder {
    at: String,
    path: PathBuf,
    /// The folder that was granted there before.
    before: Option<PathBuf>,
}

/// Grants the code under test an empty temporary folder for reading and writing, where
/// [`folder`](crate::folder()) of this mount point leads.
///
/// # Panics
/// When this machine has no place for a temporary folder.
pub fn grant_folder(at: &str) -> GrantedFolder {
    let path = new_folder();
    let before = FOLDERS.with_borrow_mut(|folders| folders.insert(at.to_owned(), path.clone()));
    GrantedFolder {
        at: at.to_owned(),
        path,
        before,
    }
}

impl GrantedFolder {
    /// The folder on this machine, to put files there before and to read them after.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for GrantedFolder {
    fn drop(&mut self) {
        FOLDERS.with_borrow_mut(|folders| match self.before.take() {
            Some(before) => folders.insert(self.at.clone(), before),
            None => folders.remove(&self.at),
        });
        // What cannot be removed is the system's to clear away, as all temporary files are.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The temporary folder of a mount point.
pub(crate) fn granted_folder(at: &str) -> PathBuf {
    require(&["files.read", "files.write"]);
    FOLDERS
        .with_borrow(|folders| folders.get(at).cloned())
        .unwrap_or_else(|| {
            panic!(
                "this test granted no folder at `{at}`: \
                 `let folder = agent_host_sdk::harness::grant_folder(\"{at}\");`"
            )
        })
}

fn new_folder() -> PathBuf {
    for _ in 0..NAMES_MAX {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = temp_dir().join(format!("agent-host-sdk-{}-{number}", process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return path,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => panic!("there can be no folder `{}`: {error}", path.display()),
        }
    }
    panic!(
        "`{}` is full of what tests left behind",
        temp_dir().display()
    );
}

#[cfg(test)]
mod tests {
    use super::grant_folder;
    use crate::harness::Bench;
    use crate::{Tool, ToolError, Tools, folder};
    use serde_json::json;
    use std::fs;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    /// A tool that appends to a file, declaring this capability.
    struct Appends(&'static str);

    impl Tools for Appends {
        fn tools(&self) -> Vec<Tool> {
            let append = |_: &_, Nothing {}| {
                let file = folder("/notes").join("a.txt");
                let text = fs::read_to_string(&file).unwrap_or_default() + "x";
                fs::write(file, &text).map_err(|error| ToolError::Failed(error.to_string()))?;
                Ok(text)
            };
            vec![Tool::new("append", "Appends.", append).needs(self.0)]
        }
    }

    #[test]
    fn a_granted_folder_is_empty_at_first_and_gone_at_last() {
        let granted = grant_folder("/notes");
        assert_eq!(fs::read_dir(granted.path()).unwrap().count(), 0);
        let bench = Bench::new(Appends("files.write"));
        assert_eq!(bench.text("append", json!({})).unwrap(), "x");
        assert_eq!(bench.text("append", json!({})).unwrap(), "xx");
        let path = granted.path().to_owned();
        assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "xx");
        drop(granted);
        assert!(!path.exists());
    }

    #[test]
    fn a_second_grant_at_a_mount_point_hides_the_first_while_it_lives() {
        let first = grant_folder("/notes");
        let second = grant_folder("/notes");
        assert_eq!(folder("/notes"), second.path());
        drop(second);
        assert_eq!(folder("/notes"), first.path());
    }

    #[test]
    #[should_panic(expected = "grant_folder(\"/notes\")")]
    fn a_folder_that_the_test_did_not_grant_is_named_with_the_line_that_grants_it() {
        let _elsewhere = grant_folder("/elsewhere");
        let _ = folder("/notes");
    }

    #[test]
    #[should_panic(expected = "add `.needs(\"files.read\")`")]
    fn a_tool_that_declares_no_files_reaches_no_folder() {
        let _granted = grant_folder("/notes");
        let _ = Bench::new(Appends("net.http")).text("append", json!({}));
    }
}

//! Looking for changed files, again and again.
//!
//! Files are looked at by time, size and number, and not by notices of the system: there are few of
//! them, no notice is lost on folders that are shared or mounted, an editor that renames is no
//! special case, and no further crate is compiled. A change counts once two scans in a row found
//! the same, so that nothing is read that is still being written.

use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of files in the watched folders.
const FILES_MAX: usize = 20_000;
/// Depth of folders that are looked into.
const DEPTH_MAX: usize = 32;
/// Folders in which there are no sources, beside hidden ones.
const LEFT_OUT_FOLDERS: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];
/// Extensions of files that are built.
const LEFT_OUT_EXTENSIONS: [&str; 2] = ["wasm", "o"];

/// The properties by which a changed file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    changed_s: i64,
    changed_ns: i64,
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self {
            changed_s: about.mtime(),
            changed_ns: about.mtime_nsec(),
            size: about.size(),
            inode: about.ino(),
        }
    }
}

/// A file or folder, by whatever path it is found.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
        }
    }
}

/// The files that a scan has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceScan(BTreeMap<PathBuf, Stamp>);

impl SourceScan {
    /// Looks at some files. Those that are not there are left out. Blocks.
    pub(crate) fn at(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let found = files.into_iter().filter_map(|file| {
            let stamp = Stamp::of(&std::fs::metadata(&file).ok()?);
            Some((file, stamp))
        });
        Self(found.collect())
    }

    /// Returns the files that are new, gone or other than before.
    fn changed_since(&self, before: &Self) -> Vec<PathBuf> {
        let changed = self
            .0
            .iter()
            .filter(|(file, stamp)| before.0.get(*file) != Some(stamp));
        let gone = before.0.keys().filter(|file| !self.0.contains_key(*file));
        changed.map(|(file, _)| file).chain(gone).cloned().collect()
    }
}

/// The looks at some files: the one that was taken up, and the last one.
#[derive(Debug)]
pub(crate) struct Settling {
    taken: SourceScan,
    last: SourceScan,
}

impl Settling {
    pub(crate) fn new(scan: SourceScan) -> Self {
        Self {
            taken: scan.clone(),
            last: scan,
        }
    }

    /// Takes up a scan that is equal to the last one. Returns the files that have changed since the
    /// one that was taken up before; none while they still change.
    pub(crate) fn take(&mut self, now: SourceScan) -> Vec<PathBuf> {
        if now == self.last {
            return self.retake(now);
        }
        self.last = now;
        Vec::new()
    }

    /// Goes on with other files: those that were not looked at before are taken up. A change of the
    /// others still counts.
    pub(crate) fn follow(&mut self, now: SourceScan) {
        let taken = now.0.iter().map(|(file, stamp)| {
            let stamp = self.taken.0.get(file).unwrap_or(stamp);
            (file.clone(), stamp.clone())
        });
        self.taken = SourceScan(taken.collect());
        self.last = now;
    }

    /// Returns whether the last scan is not taken up yet: it may still change.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.last != self.taken
    }

    /// Takes up a scan, whatever the last one was. Returns the files that have changed.
    pub(crate) fn retake(&mut self, now: SourceScan) -> Vec<PathBuf> {
        let changed = now.changed_since(&self.taken);
        self.last = now.clone();
        self.taken = now;
        changed
    }
}

/// The folders with sources.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    folders: Vec<PathBuf>,
}

impl Sources {
    /// Takes these folders, or the current one if there are none.
    ///
    /// # Errors
    /// One of them is no folder.
    pub(crate) fn new(folders: &[PathBuf]) -> Result<Self, Failure> {
        for folder in folders {
            if !folder.is_dir() {
                let error = anyhow!("--watch: `{}` is not a folder", folder.display());
                return Err(Failure::new(Exit::Usage, error)
                    .advise("name the folder with the sources, such as `--watch src`"));
            }
        }
        let absolute = |folder: &PathBuf| std::path::absolute(folder);
        let folders = match folders {
            [] => vec![std::env::current_dir().context("the current folder is not known")?],
            folders => folders.iter().map(absolute).collect::<Result<_, _>>()?,
        };
        Ok(Self { folders })
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path)
    }

    /// Looks at all sources, apart from these files and folders by whatever path they are found.
    ///
    /// # Errors
    /// There are too many files.
    pub(crate) async fn scan_apart_from(
        &self,
        left_out: Vec<PathBuf>,
    ) -> Result<SourceScan, Failure> {
        let sources = self.clone();
        tokio::task::spawn_blocking(move || sources.inspect(&left_out)).await?
    }

    fn inspect(&self, left_out: &[PathBuf]) -> Result<SourceScan, Failure> {
        let left_out: BTreeSet<Identity> = left_out
            .iter()
            .filter_map(|path| Some(Identity::of(&std::fs::metadata(path).ok()?)))
            .collect();
        let mut found = SourceScan::default();
        let mut ahead: Vec<(PathBuf, usize)> =
            self.folders.iter().map(|at| (at.clone(), 0)).collect();
        while let Some((folder, depth)) = ahead.pop() {
            // A folder may be gone by now.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                // Links are looked at and not followed.
                let Ok(about) = entry.metadata() else {
                    continue;
                };
                if left_out.contains(&Identity::of(&about)) {
                    continue;
                }
                if about.is_dir() {
                    if depth < DEPTH_MAX && has_sources(&path) {
                        ahead.push((path, depth + 1));
                    }
                } else if is_source(&path) {
                    found.0.insert(path, Stamp::of(&about));
                }
            }
            if found.0.len() > FILES_MAX {
                return Err(too_many(&self.folders));
            }
        }
        Ok(found)
    }
}

fn too_many(folders: &[PathBuf]) -> Failure {
    let folders: Vec<String> = folders
        .iter()
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    let error = anyhow!(
        "--watch: {} holds more than {FILES_MAX} files",
        folders.join(", ")
    );
    Failure::new(Exit::Usage, error)
        .advise("name the folders with the sources, such as `--watch src`")
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn has_sources(folder: &Path) -> bool {
    !is_hidden(folder)
        && !LEFT_OUT_FOLDERS
            .iter()
            .any(|name| folder.file_name().is_some_and(|own| own == *name))
}

fn is_source(file: &Path) -> bool {
    !is_hidden(file)
        && !LEFT_OUT_EXTENSIONS
            .iter()
            .any(|extension| file.extension().is_some_and(|own| own == *extension))
}

#[cfg(test)]
mod tests {
    use super::{Settling, SourceScan, Sources};
    use std::path::PathBuf;
    use std::{fs, slice};
    use tempfile::TempDir;

    #[test]
    fn a_change_counts_once_two_looks_have_found_the_same() {
        let dir = TempDir::new().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        fs::write(&a, "1").unwrap();
        let scan_now = || SourceScan::at([a.clone(), b.clone()]);
        let mut settling = Settling::new(scan_now());
        assert!(settling.take(scan_now()).is_empty(), "nothing has changed");
        fs::write(&a, "12").unwrap();
        assert!(
            settling.take(scan_now()).is_empty(),
            "it may still be written"
        );
        fs::write(&a, "123").unwrap();
        assert!(settling.take(scan_now()).is_empty(), "it is still written");
        assert_eq!(settling.take(scan_now()), slice::from_ref(&a));
        assert!(settling.take(scan_now()).is_empty(), "it was taken up");
        fs::write(&b, "new").unwrap();
        fs::remove_file(&a).unwrap();
        assert!(settling.take(scan_now()).is_empty());
        assert_eq!(settling.take(scan_now()), [b.clone(), a.clone()]);
    }

    #[test]
    fn a_change_while_the_one_before_is_taken_up_still_counts() {
        let dir = TempDir::new().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        fs::write(&a, "1").unwrap();
        let mut settling = Settling::new(SourceScan::at([a.clone()]));
        fs::write(&a, "12").unwrap();
        fs::write(&b, "new").unwrap();
        let both = || SourceScan::at([a.clone(), b.clone()]);
        settling.follow(both());
        assert_eq!(
            settling.take(both()),
            slice::from_ref(&a),
            "the other one is new"
        );
        assert!(settling.take(both()).is_empty());
    }

    #[test]
    fn sources_are_neither_hidden_nor_built_nor_the_hosts_own() {
        let dir = TempDir::new().unwrap();
        for file in [
            "src/lib.rs",
            "src/deep/er/x.py",
            ".git/index",
            "target/debug/x",
            "web/node_modules/m/i.js",
            "data/events.db",
            "plugin.wasm",
            "bindings/x.o",
            "made.txt",
            ".hidden",
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let sources = Sources::new(&[dir.path().into()]).unwrap();
        // By other paths than those on which they are found.
        let left_out = ["made.txt", "src/../data", "not there"];
        let left_out = left_out.map(|name| dir.path().join(name));
        let found = sources.inspect(&left_out).unwrap();
        let found: Vec<PathBuf> = found.0.into_keys().collect();
        assert_eq!(
            found,
            ["src/deep/er/x.py", "src/lib.rs"].map(|file| dir.path().join(file))
        );
        let refused = Sources::new(&[dir.path().join("made.txt")]).unwrap_err();
        assert!(refused.error.to_string().contains("--watch"));
    }
}

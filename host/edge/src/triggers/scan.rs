//! Looks at granted folders: the regular files beneath one, and the text of one file. Neither ever
//! follows a link.

use domain::glob::Inside;
use domain::grant::DirectoryGrant;
use domain::trigger::{FilesSpec, FolderScan, ScannedFile};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};

/// Entries that one scan passes, of all folders together. A folder with more is seen in part.
const ENTRIES_MAX: usize = 500_000;
/// Folders in each other that a scan goes down.
const DEPTH_MAX: usize = 32;
/// Bytes of a path that a scan keeps. A longer one is not seen.
const PATH_BYTES_MAX: usize = 4_096;

/// The folder, and the filter of its files.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The folder, and the component's rights to it.
    pub(crate) grant: DirectoryGrant,
    /// The files that are watched.
    pub(crate) spec: FilesSpec,
}

impl Wanted {
    fn wants(&self, path: &Inside) -> bool {
        self.grant.allows_file(path) && self.spec.wants(&path.to_string())
    }
}

/// Looks at a folder. Waits for the disk.
///
/// # Errors
/// The folder itself cannot be read. Anything unreadable beneath it is skipped.
pub(super) fn inspect(wanted: &Wanted) -> io::Result<FolderScan> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(&wanted.grant.path, flags, Mode::empty())?;
    let mut looking = Looking {
        wanted,
        found: FolderScan::default(),
        entries: 0,
    };
    looking.folder(&root, &Inside::default())?;
    Ok(looking.found)
}

/// A file to read.
#[derive(Debug, Clone)]
pub(super) struct FileWanted {
    /// The folder that it is in, and the component's rights to it.
    pub(super) grant: DirectoryGrant,
    /// Its path below the folder.
    pub(super) file: String,
    /// Maximum bytes that are read of it.
    pub(super) bytes_max: usize,
}

/// Reads the beginning of a file as text. Waits for the disk.
///
/// # Errors
/// It is not there, is no regular file, is reached by a link, or is not for the component.
pub(super) fn read(wanted: &FileWanted) -> io::Result<String> {
    let no = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    let path = wanted.grant.reach(&Inside::default(), &wanted.file);
    let path = path.map_err(no)?;
    if !wanted.grant.allows_file(&path) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = flags | OFlags::DIRECTORY;
    let mut at = rustix::fs::open(&wanted.grant.path, folder, Mode::empty())?;
    let path = path.to_string();
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", &path));
    for name in folders.split('/').filter(|name| !name.is_empty()) {
        at = openat(&at, name, folder | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // Opening a pipe does not wait for its other end.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(&at, file, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes_max = u64::try_from(wanted.bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Looking<'a> {
    wanted: &'a Wanted,
    found: FolderScan,
    entries: usize,
}

impl Looking<'_> {
    fn folder(&mut self, folder: &OwnedFd, at: &Inside) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let Ok(entry) = entry else { return Ok(()) };
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.found.cut = true;
                return Ok(());
            }
            let name = entry.file_name();
            let Ok(text) = name.to_str() else { continue };
            if matches!(text, "." | "..") {
                continue;
            }
            let mut path = at.clone();
            path.push(text);
            if !self.wanted.grant.denies(&path) {
                self.entry(folder, name, &path);
            }
        }
        Ok(())
    }

    /// Notes a file, or goes down into a folder. Links, sockets and the like are neither.
    fn entry(&mut self, folder: &OwnedFd, name: &CStr, path: &Inside) {
        let Ok(stat) = statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if self.wanted.wants(path) => {
                let text = path.to_string();
                if text.len() <= PATH_BYTES_MAX {
                    self.found.add(text, seen(&stat));
                }
            }
            FileType::Directory if self.wanted.spec.recursive && path.depth() < DEPTH_MAX => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let Ok(below) = openat(folder.as_fd(), name, flags, Mode::empty()) else {
                    return;
                };
                // A folder that cannot be read is skipped.
                let _ = self.folder(&below, path);
            }
            _ => {}
        }
    }
}

#[expect(
    clippy::useless_conversion,
    reason = "the numbers of a file have other types on other systems"
)]
fn seen(stat: &Stat) -> ScannedFile {
    let seconds = i64::try_from(stat.st_mtime).unwrap_or_default();
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    let device = u64::try_from(stat.st_dev).ok();
    let number = u64::try_from(stat.st_ino).ok();
    ScannedFile {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified_ms: seconds
            .saturating_mul(1_000)
            .saturating_add(nanos / 1_000_000),
        id: device.zip(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::grant::Access;
    use serde_json::json;

    fn wanted(folder: &std::path::Path, patterns: &[&str]) -> Wanted {
        let spec = json!({ "folder": "/inbox", "patterns": patterns });
        Wanted {
            grant: DirectoryGrant::whole(folder, "/inbox", Access::ReadOnly),
            spec: serde_json::from_value(spec).unwrap(),
        }
    }

    fn paths(wanted: &Wanted) -> Vec<String> {
        inspect(wanted).unwrap().files.into_keys().collect()
    }

    #[test]
    fn a_look_sees_files_below_the_folder_and_no_link() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("one.md"), "1").unwrap();
        std::fs::write(root.join("a/b/two.md"), "22").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("a/link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.join("file")).unwrap();
        std::os::unix::fs::symlink(root, root.join("a/loop")).unwrap();
        assert_eq!(paths(&wanted(root, &[])), ["a/b/two.md", "one.md"]);
        assert_eq!(paths(&wanted(root, &["*.md"])), ["one.md"]);
        let seen = inspect(&wanted(root, &[])).unwrap();
        assert_eq!(seen.files["a/b/two.md"].size, 2);
    }

    #[test]
    fn what_the_grant_denies_is_not_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("private")).unwrap();
        std::fs::write(folder.path().join("private/a"), "1").unwrap();
        std::fs::write(folder.path().join("b"), "1").unwrap();
        let mut wanted = wanted(folder.path(), &[]);
        wanted.grant.deny = vec!["private".parse().unwrap()];
        assert_eq!(paths(&wanted), ["b"]);
    }

    #[test]
    fn a_file_is_read_below_its_folder_and_through_no_link() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("a/todo.md"), "- water").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("b")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.join("c")).unwrap();
        let text = |file: &str| {
            let wanted = FileWanted {
                grant: DirectoryGrant::whole(root, "/notes", Access::ReadOnly),
                file: file.to_owned(),
                bytes_max: 5,
            };
            read(&wanted).ok()
        };
        assert_eq!(text("a/todo.md").as_deref(), Some("- wat"));
        for file in ["b/secret", "c", "../x", "a", "/etc/passwd", "none"] {
            assert_eq!(text(file), None, "{file}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(inspect(&wanted(&folder.path().join("none"), &[])).is_err());
    }
}

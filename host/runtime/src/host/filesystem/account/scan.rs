//! The count of a folder's content: its files, links and folders, and their bytes. A file with
//! several names counts once.

use super::{Tally, bytes_of};
use crate::folders::{PASSING, file_id};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use std::collections::HashSet;
use std::fs::File;
use std::io;

/// Files and folders that are counted where a grant says no less.
pub(super) const ENTRIES_MAX: u64 = 1_000_000;
/// Folders within each other that are walked.
pub(crate) const DEPTH_MAX: usize = 128;

/// Counts the content of a folder. None when it has more entries, or folders deeper in each other,
/// than are counted. Follows no link.
pub(super) fn count(folder: &File, entries_max: u64) -> io::Result<Option<Tally>> {
    let mut tally = Tally::default();
    let mut seen = HashSet::new();
    let mut levels = vec![listing(folder, c".")?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else {
            return Ok(Some(tally));
        };
        let Some(entry) = level.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = match statat(level.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Another process has removed it meanwhile.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        tally.files += 1;
        if tally.files > entries_max {
            return Ok(None);
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            if depth > DEPTH_MAX {
                return Ok(None);
            }
            let inner = level
                .fd()
                .map_err(io::Error::from)
                .and_then(|fd| listing(fd, name));
            match inner {
                Ok(inner) => levels.push(inner),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        } else if stat.st_nlink <= 1 || seen.insert(file_id(&stat)) {
            tally.bytes = tally.bytes.saturating_add(bytes_of(&stat));
        }
    }
}

/// A way of its own through a folder: reading it moves no other.
fn listing(within: impl std::os::fd::AsFd, name: &std::ffi::CStr) -> io::Result<Dir> {
    let flags =
        OFlags::RDONLY | (PASSING & (OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC));
    Ok(Dir::new(openat(within, name, flags, Mode::empty())?)?)
}

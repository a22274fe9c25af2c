//! A walk through granted folders, over what the standard library does not say: the entries of a
//! folder in which a name is no text, and the number of names of a file.

use crate::folders::{Folders, GrantedPath};
use agent_host_sdk::{CallContext, ToolError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    /// A pipe, say.
    Other,
}

#[cfg(target_os = "wasi")]
pub(crate) use sandboxed::{entries, names};

#[cfg(not(target_os = "wasi"))]
pub(crate) use native::{entries, names};

#[cfg(target_os = "wasi")]
mod sandboxed {
    use super::{Entry, Kind, Path, io};
    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{
        Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags,
    };

    /// Shows the entries of a folder to a visitor until it returns false, in the disk's order. Of a
    /// name that is no text there is none.
    pub(crate) fn entries(
        folder: &Path,
        mut visit: impl FnMut(Option<Entry>) -> bool,
    ) -> io::Result<()> {
        // Says what is wrong in the words of the standard library, which itself fails to read a
        // folder with a name that is no text.
        if !std::fs::metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let (root, path) = granted(folder)?;
        let folder = root
            .open_at(
                PathFlags::SYMLINK_FOLLOW,
                &path,
                OpenFlags::DIRECTORY,
                DescriptorFlags::READ,
            )
            .map_err(failed)?;
        let listing = folder.read_directory().map_err(failed)?;
        loop {
            let entry = match listing.read_directory_entry() {
                Ok(None) => return Ok(()),
                Ok(Some(entry)) => Some(Entry {
                    name: entry.name,
                    kind: match entry.type_ {
                        DescriptorType::Directory => Kind::Folder,
                        DescriptorType::RegularFile => Kind::File,
                        DescriptorType::SymbolicLink => Kind::Link,
                        _ => Kind::Other,
                    },
                }),
                // It went while the folder was read.
                Err(ErrorCode::NoEntry) => continue,
                // Nothing more is known of this one; the others follow.
                Err(_) => None,
            };
            if !visit(entry) {
                return Ok(());
            }
        }
    }

    /// Returns the number of names that a file has.
    pub(crate) fn names(file: &Path) -> io::Result<u64> {
        let (root, path) = granted(file)?;
        let stat = root.stat_at(PathFlags::empty(), &path).map_err(failed)?;
        Ok(stat.link_count)
    }

    /// The granted folder of a path, and the path in it.
    fn granted(path: &Path) -> io::Result<(Descriptor, String)> {
        for (root, at) in get_directories() {
            if let Ok(inside) = path.strip_prefix(&at) {
                let inside = inside.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
                let inside = if inside.is_empty() { "." } else { inside };
                return Ok((root, inside.to_owned()));
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn failed(error: ErrorCode) -> io::Error {
        io::Error::other(error.name().to_owned())
    }
}

#[cfg(not(target_os = "wasi"))]
mod native {
    use super::{Entry, Kind, Path, io};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    pub(crate) fn entries(
        folder: &Path,
        mut visit: impl FnMut(Option<Entry>) -> bool,
    ) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                kind if kind.is_symlink() => Kind::Link,
                _ => Kind::Other,
            };
            let entry = entry.file_name().into_string().ok();
            if !visit(entry.map(|name| Entry { name, kind })) {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(crate) fn names(file: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(file)?.nlink())
    }
}

/// Entries of one folder that are kept in memory: those that are wanted, and folders.
const KEPT_MAX: usize = 50_000;
/// Folders within folders.
pub(crate) const DEPTH_MAX: u32 = 64;
/// Milliseconds of a call's time in which things are looked for; half of the processor time that a
/// component has by default.
const LOOKING_MS_MAX: u64 = 500;

/// The time that a call may look for things. What was found by its end is returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    began: Instant,
    most: Duration,
}

impl Stopwatch {
    /// Begins now. A call that is to end sooner has half of its time.
    pub(crate) fn start(context: &CallContext) -> Self {
        let half = Duration::from_millis(u64::from(context.deadline_ms) / 2);
        Self {
            began: Instant::now(),
            most: half.min(Duration::from_millis(LOOKING_MS_MAX)),
        }
    }

    pub(crate) fn has_run_out(&self) -> bool {
        self.began.elapsed() >= self.most
    }
}

/// Something that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its path from the folder where the walk began, with `/` between names.
    pub(crate) relative: String,
    pub(crate) kind: Kind,
    is_wanted: bool,
}

/// The completeness of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walked {
    All,
    /// It was stopped by the visitor, or there was too much.
    Part,
}

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) walked: Walked,
    /// Entries that cannot be shown: no call can name them.
    unnamed: usize,
    /// Folders that cannot be read.
    unread: usize,
}

/// The extent of a walk.
pub(crate) struct Extent<W> {
    /// Levels to look into.
    pub(crate) depth: u32,
    pub(crate) stopwatch: Stopwatch,
    /// Returns true of what the visitor wants to see.
    pub(crate) wants: W,
}

/// Shows what is wanted below a folder to a visitor until the visitor returns false. A folder
/// further down that cannot be read is passed over. When the time is over no folder is read any
/// more, and what was read is shown.
pub(crate) fn walk<W: Fn(&str, Kind) -> bool>(
    folders: &Folders,
    start: &GrantedPath,
    extent: &Extent<W>,
    mut visit: impl FnMut(&Found) -> bool,
) -> Result<Walk, ToolError> {
    let mut walk = Walk {
        walked: Walked::All,
        unnamed: 0,
        unread: 0,
    };
    let read = walk.entries(start, "", extent);
    let mut ahead = read.map_err(|error| folders.read_error(start, &error))?;
    while let Some(found) = ahead.pop() {
        if found.is_wanted && !visit(&found) {
            walk.walked = Walked::Part;
            break;
        }
        if found.kind == Kind::Folder && extent.goes_into(&found.relative) {
            if extent.stopwatch.has_run_out() {
                walk.walked = Walked::Part;
                continue;
            }
            let place = start.below(&found.relative);
            match walk.entries(&place, &format!("{}/", found.relative), extent) {
                Ok(below) => ahead.extend(below),
                Err(_) => walk.unread += 1,
            }
        }
    }
    Ok(walk)
}

impl<W: Fn(&str, Kind) -> bool> Extent<W> {
    fn goes_into(&self, relative: &str) -> bool {
        let level = u32::try_from(relative.matches('/').count()).unwrap_or(u32::MAX);
        level.saturating_add(1) < self.depth.min(DEPTH_MAX)
    }
}

impl Walk {
    /// The entries of one folder, the last name first, without those that nobody wants.
    fn entries<W: Fn(&str, Kind) -> bool>(
        &mut self,
        folder: &GrantedPath,
        prefix: &str,
        extent: &Extent<W>,
    ) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        entries(&folder.path, |entry| {
            let Some(entry) = entry else {
                self.unnamed += 1;
                return true;
            };
            let relative = format!("{prefix}{}", entry.name);
            let is_wanted = (extent.wants)(&relative, entry.kind);
            if is_wanted || (entry.kind == Kind::Folder && extent.goes_into(&relative)) {
                found.push(Found {
                    relative,
                    kind: entry.kind,
                    is_wanted,
                });
            }
            if found.len() > KEPT_MAX || extent.stopwatch.has_run_out() {
                self.walked = Walked::Part;
                return false;
            }
            true
        })?;
        found.sort_unstable_by(|a, b| b.relative.cmp(&a.relative));
        Ok(found)
    }

    /// The notes on what was passed over.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let note =
            |count: usize, what: &str| (count > 0).then(|| format!("[passed over {count} {what}]"));
        let unnamed = note(self.unnamed, "entries whose names are not UTF-8");
        let unread = note(self.unread, "folders that cannot be read");
        unnamed.into_iter().chain(unread)
    }
}

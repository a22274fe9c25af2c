//! Folders of single users, agents and sessions: made below a folder that is held open, and removed
//! with what they belonged to.
//!
//! Every name is looked up below an open folder, and no link is followed: whatever has an owner's
//! name by then is a folder, or is refused.

use super::{FolderError, FolderHandle, GrantedFolders};
use domain::grant::{DirectoryGrant, OwnedFolder, Owner, Owners, Segment, owner_name};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// The permissions of an owner's folder: those of the host's user alone.
const OWNER_MODE: Mode = Mode::RWXU;
/// Folders within each other that are removed.
const DEPTH_MAX: usize = 256;
/// Flags to open a folder to read it.
const READING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl FolderHandle {
    /// Opens the folder that these owners have below this one, and makes it if it is not there.
    /// Waits for the disk.
    ///
    /// # Errors
    /// The call has no such owner, something else has the folder's name, or the machine refuses.
    pub(crate) fn of_owners(
        &self,
        grant: &DirectoryGrant,
        owners: Owners<'_>,
    ) -> Result<(File, OwnedFolder), FolderError> {
        let names = self
            .pattern
            .names(owners)
            .map_err(|why| FolderError::Ownerless {
                path: grant.path.clone(),
                why,
            })?;
        let mut path = self.pattern.base.clone();
        let base = self.dir.try_clone();
        let mut folder = base
            .map_err(|source| unusable(&path, source))?
            .into_std_file();
        for name in names {
            path.push(&name);
            folder = made(&folder, &name).map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => FolderError::InTheWay { path: path.clone() },
                error => unusable(&path, error.into()),
            })?;
        }
        let owned = OwnedFolder {
            at: grant.at.clone(),
            granted: grant.path.display().to_string(),
            folder: path.display().to_string(),
        };
        Ok((folder, owned))
    }
}

impl GrantedFolders {
    /// Removes every folder that an owner has of its own, with all that is in it. Returns how many
    /// there were. Waits for the disk.
    ///
    /// # Errors
    /// The machine refuses to remove one, or it is deeper than is removed. The others are removed
    /// all the same.
    pub(crate) fn remove_of(&self, owner: Owner, id: &str) -> io::Result<u64> {
        let Some(name) = owner_name(id).and_then(|name| CString::new(name).ok()) else {
            return Ok(0);
        };
        let opened = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let replaced = opened.before.iter();
        let replaced = replaced.filter(|(path, _)| !opened.granted.contains_key(*path));
        let handles = opened.granted.iter().chain(replaced);
        let handles: Vec<_> = handles.map(|(_, handle)| Arc::clone(handle)).collect();
        // Not held while the file system is asked.
        drop(opened);
        let mut removed = 0;
        let mut failed = None;
        let is_of = |handle: &FolderHandle| handle.pattern.owners().any(|of| of == owner);
        for handle in handles.iter().filter(|handle| is_of(handle)) {
            let gone = Gone { owner, name: &name };
            match gone.below(&handle.dir, &handle.pattern.below) {
                Ok(count) => removed += count,
                Err(error) => {
                    let path = handle.pattern.base.display();
                    failed = Some(io::Error::new(
                        error.kind(),
                        format!("below `{path}`: {error}"),
                    ));
                }
            }
        }
        failed.map_or(Ok(removed), Err)
    }
}

fn unusable(path: &Path, source: io::Error) -> FolderError {
    FolderError::Unusable {
        path: path.to_owned(),
        source,
    }
}

/// Opens a folder in another one, and makes it if there is nothing.
fn made(within: &File, name: &str) -> Result<File, Errno> {
    let open = || openat(within, name, READING, Mode::empty()).map(File::from);
    match open() {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    match mkdirat(within, name, OWNER_MODE) {
        // Another call was first.
        Ok(()) | Err(Errno::EXIST) => open(),
        Err(error) => Err(error),
    }
}

/// An owner that is gone, with the name of its folders.
#[derive(Clone, Copy)]
struct Gone<'a> {
    owner: Owner,
    name: &'a CStr,
}

impl Gone<'_> {
    /// Removes its folders along these names below a folder. Returns how many there were.
    fn below(self, folder: impl AsFd, names: &[Segment]) -> io::Result<u64> {
        let folder = folder.as_fd();
        match names.split_first() {
            None => Ok(0),
            Some((Segment::Of(owner), _)) if *owner == self.owner => {
                let Some(own) = inner(folder, self.name)? else {
                    return Ok(0);
                };
                empty(own)?;
                unlinkat(folder, self.name, AtFlags::REMOVEDIR)?;
                Ok(1)
            }
            Some((Segment::Name(name), rest)) => {
                self.within(folder, &CString::new(name.as_str())?, rest)
            }
            Some((Segment::Of(_), rest)) => {
                let mut removed = 0;
                for entry in Dir::read_from(folder)? {
                    let entry = entry?;
                    if !is_itself(entry.file_name()) {
                        removed += self.within(folder, entry.file_name(), rest)?;
                    }
                }
                Ok(removed)
            }
        }
    }

    fn within(self, folder: impl AsFd, name: &CStr, rest: &[Segment]) -> io::Result<u64> {
        match inner(folder, name)? {
            Some(inner) => self.below(inner, rest),
            None => Ok(0),
        }
    }
}

fn is_itself(name: &CStr) -> bool {
    name == c"." || name == c".."
}

/// Opens a folder in another one. None if there is no folder of this name.
fn inner(folder: impl AsFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    match openat(folder, name, READING, Mode::empty()) {
        Ok(inner) => Ok(Some(inner)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a folder. Follows no link.
fn empty(folder: OwnedFd) -> io::Result<()> {
    let mut levels = vec![(Dir::new(folder)?, CString::default())];
    while let Some((level, _)) = levels.last_mut() {
        let Some(entry) = level.read() else {
            let name = levels.pop().map(|(_, name)| name).unwrap_or_default();
            if let Some((outer, _)) = levels.last() {
                unlinkat(outer.fd()?, &name, AtFlags::REMOVEDIR)?;
            }
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if is_itself(name) {
            continue;
        }
        match inner(level.fd()?, name)? {
            None => unlinkat(level.fd()?, name, AtFlags::empty())?,
            Some(_) if levels.len() >= DEPTH_MAX => {
                let deep = format!("there are more than {DEPTH_MAX} folders in each other");
                return Err(io::Error::other(deep));
            }
            Some(inner) => levels.push((Dir::new(inner)?, name.to_owned())),
        }
    }
    Ok(())
}

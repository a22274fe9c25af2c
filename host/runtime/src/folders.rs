//! Folders of this machine that are opened once and held. A handle keeps its folder when the
//! folder's name changes.
//!
//! Every folder that a guest may use is opened here when the host starts, and each call works
//! beneath the handle: a folder that is renamed, removed or replaced by a link meanwhile changes
//! nothing about where calls end up. The way to a folder is gone name by name, so that it is known
//! through which other folders it leads; [`domain::grant::nested`] says which ways may not be. Of a
//! folder of which each owner has its own, the base is opened; [`owned`] has the rest.

mod owned;

use crate::file_system::is_local;
use cap_std::fs::Dir;
use domain::grant::{
    DirectoryGrant, FileId, FolderChain, FolderPattern, Nesting, Ownerless, Placed, nested,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Links that are followed for one path.
const LINKS_MAX: usize = 40;

/// Flags to open a folder on the way: to go through, not to read.
#[cfg(target_os = "linux")]
pub(crate) const PASSING: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const PASSING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The reason that granted folders are not opened.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A folder cannot be opened.
    #[error("the granted folder `{path}` cannot be opened", path = path.display())]
    Unusable {
        /// Its path.
        path: PathBuf,
        /// The machine's answer.
        #[source]
        source: io::Error,
    },
    /// A path leads through a folder that a component may write, which could turn it elsewhere.
    #[error(
        "the granted folder `{inner}` is reached through `{outer}`, which a component may write \
         and so could turn elsewhere; grant folders \
         apart from each other",
        inner = inner.display(), outer = outer.display()
    )]
    Nested {
        /// The folder that is reached.
        inner: PathBuf,
        /// The folder that may be written.
        outer: PathBuf,
    },
    /// A path can lead to a folder that one owner has of its own under another grant.
    #[error(
        "the granted folder `{inner}` can be the folder of one owner in `{outer}`: an id can be \
         any name; grant folders apart from each other",
        inner = inner.display(), outer = outer.display()
    )]
    Owned {
        /// The folder that can be an owner's.
        inner: PathBuf,
        /// The folder in which each owner has its own.
        outer: PathBuf,
    },
    /// A path has a placeholder that stands for nothing, or at a wrong place.
    #[error("the granted folder `{path}` has no meaning: {why}", path = path.display())]
    Pattern {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: domain::grant::BadPattern,
    },
    /// A call has no owner of the kind that a path names.
    #[error("the granted folder `{path}` is of each owner: {why}", path = path.display())]
    Ownerless {
        /// The path.
        path: PathBuf,
        /// The owner that is missing.
        why: Ownerless,
    },
    /// Something that is no folder has the name of an owner's folder.
    #[error(
        "`{path}` is not a folder: a link or a file has the place of an owner's folder; remove it",
        path = path.display()
    )]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// A folder holds, is or lies in one that is the host's own.
    #[error(
        "the granted folder `{path}` holds, is or lies in `{own}`, which is the host's own; grant \
         another folder",
        path = path.display(), own = own.display()
    )]
    Own {
        /// The granted folder.
        path: PathBuf,
        /// The host's.
        own: PathBuf,
    },
}

/// A folder that is open, and the way by which it was reached.
#[derive(Debug)]
pub(crate) struct FolderHandle {
    pub(crate) dir: Dir,
    /// The way to it, as it was when it was opened.
    chain: FolderChain,
    /// Its path, and the names below it that each owner has of its own.
    pub(crate) pattern: FolderPattern,
    /// True if it is known to be on a file system of this machine's kernel, which answers at once
    /// about what is open.
    is_local: bool,
}

/// The granted folders of a host, by their paths.
#[derive(Debug, Default)]
pub(crate) struct GrantedFolders(RwLock<OpenFolders>);

/// The folders that are open.
#[derive(Debug, Default)]
struct OpenFolders {
    granted: HashMap<PathBuf, Arc<FolderHandle>>,
    /// The folders that were open before, for calls that were bound to them and begin only now.
    before: HashMap<PathBuf, Arc<FolderHandle>>,
}

impl OpenFolders {
    fn known(&self, path: &Path) -> Option<&Arc<FolderHandle>> {
        self.granted.get(path).or_else(|| self.before.get(path))
    }
}

impl FolderHandle {
    /// Opens a folder for good. Links on the way are followed, and are part of the chain.
    fn open(pattern: FolderPattern) -> io::Result<Self> {
        let Walked {
            chain,
            stack,
            is_folder,
        } = walk(&pattern.base)?;
        chain.end.ok_or(Errno::NOENT)?;
        let folder = stack.last().filter(|_| is_folder).ok_or(Errno::NOTDIR)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = File::from(openat(folder, ".", flags, Mode::empty())?);
        Ok(Self {
            is_local: is_local(&dir),
            dir: Dir::from_std_file(dir),
            chain,
            pattern,
        })
    }

    /// Returns true if a call may wait for it: an owner's folder may have to be made, and a server
    /// may not answer.
    fn may_wait(&self) -> bool {
        self.pattern.is_owned() || !self.is_local
    }

    /// Returns whether the folder still has a name somewhere.
    fn is_there(&self) -> io::Result<bool> {
        Ok(fstat(&self.dir)?.st_nlink > 0)
    }
}

impl GrantedFolders {
    /// Opens what is granted, in the place of what was open before. Calls that run keep theirs, and
    /// calls that were bound before this find theirs.
    pub(crate) fn open(
        &self,
        granted: &[&DirectoryGrant],
        own: &[&Path],
    ) -> Result<(), FolderError> {
        let mut opened = HashMap::new();
        for grant in granted {
            if !opened.contains_key(&grant.path) {
                let path = grant.path.clone();
                let pattern = FolderPattern::parse(&path).map_err(|why| FolderError::Pattern {
                    path: path.clone(),
                    why,
                })?;
                let unusable = |source| FolderError::Unusable {
                    path: pattern.base.clone(),
                    source,
                };
                let handle = FolderHandle::open(pattern.clone()).map_err(unusable)?;
                opened.insert(path, Arc::new(handle));
            }
        }
        check(granted, &opened, own)?;
        let mut folders = self.0.write().unwrap_or_else(PoisonError::into_inner);
        folders.before = std::mem::replace(&mut folders.granted, opened);
        Ok(())
    }

    /// Returns the granted folders in whose places others are now, or none: moved, removed or
    /// replaced since they were opened.
    pub(crate) fn moved(&self) -> Vec<PathBuf> {
        let folders = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let granted: Vec<(PathBuf, Arc<FolderHandle>)> = folders
            .granted
            .iter()
            .map(|(path, handle)| (path.clone(), handle.clone()))
            .collect();
        // Not held while the file system is asked.
        drop(folders);
        let is_elsewhere = |handle: &FolderHandle| {
            let there = folder_chain(&handle.pattern.base).ok();
            there.is_none_or(|there| there.end != handle.chain.end)
        };
        let moved = granted
            .into_iter()
            .filter(|(_, handle)| is_elsewhere(handle));
        let mut moved: Vec<PathBuf> = moved.map(|(path, _)| path).collect();
        moved.sort();
        moved
    }

    /// Returns true if a call may wait for one of these: a folder of an owner, or one that is not
    /// on a local file system.
    pub(crate) fn may_wait(&self, granted: &[DirectoryGrant]) -> bool {
        let folders = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut known = granted
            .iter()
            .filter_map(|grant| folders.known(&grant.path));
        known.any(|handle| handle.may_wait())
    }

    /// The handle of a granted folder.
    ///
    /// # Errors
    /// It was not granted when the folders were opened, or has been removed since.
    pub(crate) fn get(&self, path: &Path) -> Result<Arc<FolderHandle>, FolderError> {
        let unusable = |source| FolderError::Unusable {
            path: path.to_owned(),
            source,
        };
        let folders = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = folders.known(path).cloned();
        // Not held while the file system is asked.
        drop(folders);
        let handle = known
            .ok_or_else(|| unusable(io::Error::other("it was not opened when it was granted")))?;
        match handle.is_there() {
            Ok(true) => Ok(handle),
            Ok(false) => Err(unusable(io::Error::new(
                io::ErrorKind::NotFound,
                "it was removed after the host had opened it",
            ))),
            Err(error) => Err(unusable(error)),
        }
    }
}

fn check(
    granted: &[&DirectoryGrant],
    opened: &HashMap<PathBuf, Arc<FolderHandle>>,
    own: &[&Path],
) -> Result<(), FolderError> {
    // Each of the granted folders is among those that are open.
    let placed: Vec<Placed<'_>> = granted
        .iter()
        .filter_map(|grant| {
            let handle = opened.get(&grant.path)?;
            Some(Placed {
                access: grant.access,
                chain: &handle.chain,
                below: &handle.pattern.below,
            })
        })
        .collect();
    if let Some(found) = nested(&placed).first() {
        let path = |index: usize| {
            let grant = granted.get(index);
            grant.map(|grant| grant.path.clone()).unwrap_or_default()
        };
        let inner = path(found.inner);
        let outer = path(found.outer);
        return Err(match found.how {
            Nesting::Through => FolderError::Nested { inner, outer },
            Nesting::Owned => FolderError::Owned { inner, outer },
        });
    }
    for own in own {
        let chain = folder_chain(own).map_err(|source| FolderError::Unusable {
            path: own.to_path_buf(),
            source,
        })?;
        let mut folders = granted.iter().zip(&placed);
        if let Some((grant, _)) = folders.find(|(_, placed)| placed.chain.overlaps(&chain)) {
            return Err(FolderError::Own {
                path: grant.path.clone(),
                own: own.to_path_buf(),
            });
        }
    }
    Ok(())
}

/// The way that a path leads, as far as there is something.
///
/// # Errors
/// The machine does not let it be gone, or its links do not end.
pub fn folder_chain(path: &Path) -> io::Result<FolderChain> {
    Ok(walk(path)?.chain)
}

/// A path that was gone to its end, or to where nothing is.
struct Walked {
    chain: FolderChain,
    /// The open folders from the root to the last one.
    stack: Vec<OwnedFd>,
    /// True if the end of the path is the last of the open folders.
    is_folder: bool,
}

fn walk(path: &Path) -> io::Result<Walked> {
    let root = || open("/", PASSING, Mode::empty());
    let mut walked = Walked {
        chain: FolderChain::default(),
        stack: vec![root()?],
        is_folder: true,
    };
    let mut ahead = VecDeque::new();
    turn(&mut ahead, &std::path::absolute(path)?);
    let mut links = LINKS_MAX;
    while let Some(name) = ahead.pop_front() {
        // The root is never taken away.
        let dir = walked.stack.last().ok_or(Errno::NOENT)?;
        if name == ".." {
            if walked.stack.len() > 1 {
                walked.stack.pop();
            }
            continue;
        }
        walked.chain.through.insert(file_id(&fstat(dir)?));
        let found = match statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => {
                return Ok(Walked {
                    is_folder: false,
                    ..walked
                });
            }
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                links = links.checked_sub(1).ok_or(Errno::LOOP)?;
                let target = PathBuf::from(OsString::from_vec(
                    readlinkat(dir, name.as_os_str(), Vec::new())?.into_bytes(),
                ));
                if target.is_absolute() {
                    walked.stack.truncate(1);
                }
                turn(&mut ahead, &target);
            }
            FileType::Directory => {
                let inner = openat(dir, name.as_os_str(), PASSING, Mode::empty())?;
                walked.stack.push(inner);
            }
            _ if ahead.is_empty() => {
                walked.chain.end = Some(file_id(&found));
                return Ok(Walked {
                    is_folder: false,
                    ..walked
                });
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    let end = walked.stack.last().ok_or(Errno::NOENT)?;
    walked.chain.end = Some(file_id(&fstat(end)?));
    Ok(walked)
}

/// Goes on by a path, and only then by what was ahead.
fn turn(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

/// The identity of something by its numbers.
pub(crate) fn file_id(stat: &Stat) -> FileId {
    #[expect(
        clippy::useless_conversion,
        reason = "the fields have other types on other systems"
    )]
    FileId {
        device: stat.st_dev.try_into().unwrap_or(u64::MAX),
        inode: stat.st_ino.try_into().unwrap_or(u64::MAX),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::folders::GrantedFolders;
    use domain::grant::{Access, DirectoryGrant};

    fn grant(path: &str) -> DirectoryGrant {
        DirectoryGrant::whole(path, "/in", Access::ReadOnly)
    }

    #[test]
    fn a_call_waits_for_folders_of_owners_and_for_those_that_are_not_local() {
        // Devices are kept in memory, wherever this runs; of the kernel's own tables nothing is
        // known.
        let local = grant("/dev");
        let owned = grant("/dev/{user}");
        let unknown = grant("/proc");
        let folders = GrantedFolders::default();
        for (granted, may_wait) in [(&local, false), (&owned, true), (&unknown, true)] {
            folders.open(&[granted], &[]).unwrap();
            assert_eq!(
                folders.may_wait(std::slice::from_ref(granted)),
                may_wait,
                "{granted:?}"
            );
        }
        folders.open(&[&local, &unknown], &[]).unwrap();
        assert!(!folders.may_wait(std::slice::from_ref(&local)));
        assert!(folders.may_wait(&[local, unknown]));
    }
}

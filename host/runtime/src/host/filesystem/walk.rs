//! The resolution of a guest's path: the folder that it ends in, open, and the last name in it.
//!
//! Each folder on the way is opened from the one before it, and never through a link, so that what
//! was looked at is what is used, whatever is moved or replaced meanwhile. In a grant with patterns
//! a link on the way is refused; without, it is followed here, within the folder.

use super::account::Sheet;
use super::failed::Failed;
use super::folders::Folder;
use crate::folders::PASSING;
use domain::glob::Inside;
use rustix::fs::{Mode, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 4_096;
/// Links that are followed for one path.
const LINKS_MAX: usize = 40;
/// Folders that one path goes through: each is open until its end.
const FOLDERS_MAX: usize = 256;

/// An open folder of a grant with patterns or a quota, from which a path starts.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) folder: Arc<Folder>,
    pub(super) inside: Inside,
    pub(super) dir: Arc<File>,
}

/// The meaning of a path's last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The name itself: something is made, moved or removed there.
    Name,
    /// The file, folder or link itself that is there.
    Thing,
    /// The file or folder that is there, or that a link leads to.
    Followed,
}

/// A path in a granted folder, resolved.
pub(super) struct ResolvedPath {
    pub(super) folder: Arc<Folder>,
    /// Its path in the granted folder, without links on the way.
    pub(super) inside: Inside,
    /// The folder that it ends in, or, without a name, the one that it leads to.
    pub(super) dir: Arc<File>,
    name: Option<String>,
    /// The path ended as only a folder's may.
    pub(super) must_be_folder: bool,
}

impl ResolvedPath {
    /// The last name.
    ///
    /// # Errors
    /// It leads to the folder that was started from, or ended with `..`: nothing can be made, moved
    /// or removed there.
    pub(super) fn name(&self) -> Result<&str, Failed> {
        self.name.as_deref().ok_or(Failed::Code(ErrorCode::Busy))
    }

    /// Returns true if the guest may have a file there.
    pub(super) fn may_be_file(&self) -> bool {
        self.folder.grant.allows_file(&self.inside)
    }

    /// Makes a change there, while no other is made in the granted folder.
    pub(super) fn changed<T>(
        &self,
        change: impl FnOnce(&mut Sheet<'_>, &Self) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.folder.changed(|sheet| change(sheet, self))
    }

    /// The last name, as a path from the folder.
    pub(super) fn path(&self) -> String {
        self.name.clone().unwrap_or_else(|| ".".to_owned())
    }

    /// The last name of what cannot be a folder.
    ///
    /// # Errors
    /// As for [`ResolvedPath::name`]; and the path ended as only a folder's may.
    pub(super) fn file_name(&self) -> Result<&str, Failed> {
        if self.must_be_folder {
            Err(Failed::Code(ErrorCode::NotDirectory))
        } else {
            self.name()
        }
    }
}

impl Start {
    /// Goes where a path leads. Waits for the disk.
    ///
    /// # Errors
    /// It leads out of the folder or passes what is denied, or there is no such way.
    pub(super) fn walk(self, path: &str, last: Last) -> Result<ResolvedPath, Failed> {
        let Self {
            folder,
            inside,
            dir,
        } = self;
        if path.is_empty() {
            return Err(Failed::Code(ErrorCode::NoEntry));
        }
        if path.len() >= PATH_BYTES_MAX {
            return Err(Failed::Code(ErrorCode::NameTooLong));
        }
        folder
            .grant
            .reach(&inside, path)
            .map_err(|_| Failed::Refused)?;
        let links = (!folder.grant.has_patterns()).then_some(LINKS_MAX);
        let mut path_walk = PathWalk {
            passed: Vec::new(),
            ahead: VecDeque::new(),
            links,
            must_be_folder: false,
        };
        path_walk.turn(path);
        let name = path_walk.go(&dir, last)?;
        let PathWalk {
            passed,
            must_be_folder,
            ..
        } = path_walk;
        let mut reached = inside;
        passed.iter().for_each(|(_, name)| reached.push(name));
        name.iter().for_each(|name| reached.push(name));
        let dir = passed.into_iter().last().map_or(dir, |(dir, _)| dir);
        Ok(ResolvedPath {
            folder,
            inside: reached,
            dir,
            name,
            must_be_folder,
        })
    }
}

struct PathWalk {
    passed: Vec<(Arc<File>, String)>,
    ahead: VecDeque<String>,
    /// Links that may still be followed; none where no link may.
    links: Option<usize>,
    must_be_folder: bool,
}

impl PathWalk {
    /// Goes on by a path, and only then by what was ahead.
    fn turn(&mut self, path: &str) {
        if self.ahead.is_empty() {
            self.must_be_folder |= matches!(path.rsplit('/').next(), Some("" | "." | ".."));
        }
        for name in path.rsplit('/').filter(|name| !matches!(*name, "" | ".")) {
            self.ahead.push_front(name.to_owned());
        }
    }

    /// Goes on to the end; returns the last name, where it is not gone into.
    fn go(&mut self, start: &Arc<File>, last: Last) -> Result<Option<String>, Failed> {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.passed.pop().ok_or(Failed::Refused)?;
                continue;
            }
            let dir = self.passed.last().map_or(start, |(dir, _)| dir);
            if self.ahead.is_empty() && (last == Last::Name || !self.must_be_folder) {
                match readlinkat(&**dir, &*name, Vec::new()) {
                    Ok(target) if last == Last::Followed => self.follow(target.to_bytes())?,
                    _ => return Ok(Some(name)),
                }
                continue;
            }
            if self.passed.len() >= FOLDERS_MAX {
                return Err(Failed::Code(ErrorCode::NameTooLong));
            }
            match openat(&**dir, &*name, PASSING, Mode::empty()) {
                Ok(opened) => self.passed.push((Arc::new(File::from(opened)), name)),
                Err(error @ (Errno::NOTDIR | Errno::LOOP | Errno::MLINK)) => {
                    match readlinkat(&**dir, &*name, Vec::new()) {
                        Ok(target) => self.follow(target.to_bytes())?,
                        // With patterns, a file on the way is not revealed: it may not be allowed.
                        Err(_) if self.links.is_none() && !self.ahead.is_empty() => {
                            return Err(Failed::Code(ErrorCode::NoEntry));
                        }
                        Err(_) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn follow(&mut self, target: &[u8]) -> Result<(), Failed> {
        let left = self.links.as_mut().ok_or(Failed::Refused)?;
        *left = left.checked_sub(1).ok_or(Failed::Code(ErrorCode::Loop))?;
        let target = std::str::from_utf8(target)
            .map_err(|_| Failed::Code(ErrorCode::IllegalByteSequence))?;
        if target.starts_with('/') {
            return Err(Failed::Refused);
        }
        self.turn(target);
        Ok(())
    }
}

//! The data directory: locked by one process, readable by its owner only, with a marker that
//! identifies its database.

use super::OpenError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

pub(crate) const DATABASE: &str = "store.db";
/// The marker's name: a file that holds the store's id.
const MARKER: &str = "store-id";
const BALLAST: &str = "ballast";
/// Maximum number of tries for the lock before the directory counts as another process's. A process
/// that is just ending may hold it a moment longer, and so may a child of this one between its fork
/// and its exec.
const LOCK_TRIES_MAX: u32 = 25;
const LOCK_PAUSE_MS: u64 = 20;

/// A data directory that this process holds locked until the value is dropped, or the process ends
/// in whatever way.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// The open directory carries the lock.
    _lock: File,
}

impl DataDir {
    /// Makes the directory if it does not exist, and locks it. Waits half a second for another
    /// process that holds the lock.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        if !path.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| OpenError::io("created", path, error))?;
            if let Some(parent) = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
            {
                sync_dir(parent).map_err(|error| OpenError::io("synced", parent, error))?;
            }
        }
        let lock = File::open(path).map_err(|error| OpenError::io("opened", path, error))?;
        for _ in 0..LOCK_TRIES_MAX {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        _lock: lock,
                    });
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    sleep(Duration::from_millis(LOCK_PAUSE_MS))
                }
                Err(error) => return Err(OpenError::io("locked", path, error.into())),
            }
        }
        Err(OpenError::Locked {
            dir: path.to_owned(),
        })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(format!("{DATABASE}-wal"))
    }

    pub(crate) fn reserved_space(&self) -> PathBuf {
        self.path.join(BALLAST)
    }

    pub(crate) fn is_empty(&self) -> Result<bool, OpenError> {
        let mut entries =
            fs::read_dir(&self.path).map_err(|error| OpenError::io("read", &self.path, error))?;
        Ok(entries.next().is_none())
    }

    /// The id that the marker holds; none when no database was ever finished here.
    pub(crate) fn marker(&self) -> Result<Option<String>, OpenError> {
        let path = self.path.join(MARKER);
        match fs::read_to_string(&path) {
            Ok(id) => Ok(Some(id.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::io("read", &path, error)),
        }
    }

    /// Writes the marker, as a whole or not at all.
    pub(crate) fn mark(&self, id: &str) -> Result<(), OpenError> {
        let path = self.path.join(MARKER);
        let unfinished = self.path.join(format!("{MARKER}.new"));
        let write = || {
            let mut file = create_private(&unfinished)?;
            file.write_all(id.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            sync_dir(&self.path)
        };
        write().map_err(|error| OpenError::io("written", &path, error))
    }

    /// Makes an empty file for the database if there never was one, and returns the file's size.
    pub(crate) fn prepare_database(&self, expected: bool) -> Result<u64, OpenError> {
        let path = self.database();
        let bytes = match fs::metadata(&path) {
            Ok(file) => Some(file.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(OpenError::io("read", &path, error)),
        };
        match bytes {
            None | Some(0) if expected => Err(OpenError::Missing { path }),
            Some(bytes) => Ok(bytes),
            None => {
                create_private(&path).map_err(|error| OpenError::io("created", &path, error))?;
                sync_dir(&self.path).map_err(|error| OpenError::io("synced", &self.path, error))?;
                Ok(0)
            }
        }
    }
}

/// An empty file that only its owner may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Syncs a directory, so that created, renamed and removed entries are durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

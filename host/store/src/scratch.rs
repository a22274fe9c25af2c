//! Scratch databases: files in the folder of the store's database. They are removed after use, or
//! after a crash when the store is next opened.

use crate::open::create_private;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a scratch database, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates an empty file in the folder of the store's database. A scratch database never
    /// becomes larger than the store's, so this fails if that size could take the space that
    /// commits need.
    pub(crate) fn make(database: &Path, name: &str) -> io::Result<Self> {
        remove(database, name);
        let path = database.with_file_name(name);
        let needed = fs::metadata(database).map_or(0, |database| database.len());
        // Some file systems do not say.
        if let Ok(found) = rustix::fs::statvfs(path.parent().unwrap_or(&path))
            && found.f_blocks > 0
            && found.f_bavail.saturating_mul(found.f_frsize) < needed
        {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("less than {needed} bytes are free, which it may take"),
            ));
        }
        create_private(&path)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove_files(&self.path);
    }
}

/// Removes the scratch database of a name, if a crash left it there.
pub(crate) fn remove(database: &Path, name: &str) {
    remove_files(&database.with_file_name(name));
}

fn remove_files(path: &Path) {
    for extension in ["db-journal", "db-wal", "db-shm", "db"] {
        let path = path.with_extension(extension);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                path = %path.display(),
                "a scratch database could not be removed"
            );
        }
    }
}

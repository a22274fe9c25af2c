//! ReservedSpace: some space that is given back when the disk is full, so that there is room to
//! recover in; and whether there is room.

use rustix::fs::FallocateFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Bytes that must be free in addition to the ballast: the growth of the log until it is moved to
/// the database.
const HEADROOM_BYTES: u64 = 4 << 20;
/// Bytes that are written at a time where space cannot be reserved.
const CHUNK_BYTES: usize = 64 << 10;

/// Returns whether something failed for want of space, and not because the disk is broken.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A file that does nothing but take up space.
#[derive(Debug)]
pub(crate) struct ReservedSpace {
    path: PathBuf,
    bytes: u64,
}

impl ReservedSpace {
    pub(crate) fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Makes sure that it is there. Fails when there is no space for it.
    pub(crate) fn fill(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() == self.bytes) {
            return Ok(());
        }
        if self.bytes == 0 {
            return Ok(());
        }
        let filled = self.reserve(self.bytes).map(drop);
        if filled.is_err() {
            self.free();
        }
        filled
    }

    /// Puts it back after the disk was full. Fails when there is not enough space for it and for
    /// going on.
    pub(crate) fn refill(&self) -> io::Result<()> {
        self.free();
        let filled = self
            .reserve(self.bytes + HEADROOM_BYTES)
            .and_then(|file| file.set_len(self.bytes));
        if filled.is_err() {
            self.free();
        }
        filled
    }

    /// Returns whether the free space, without the ballast, is too small to last long. False if the
    /// file system does not report it.
    pub(crate) fn is_short(&self) -> bool {
        let folder = self.path.parent().unwrap_or(&self.path);
        rustix::fs::statvfs(folder).is_ok_and(|found| {
            found.f_blocks > 0 && found.f_bavail.saturating_mul(found.f_frsize) < HEADROOM_BYTES
        })
    }

    fn reserve(&self, bytes: u64) -> io::Result<File> {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.path)?;
        match rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        }) {
            Ok(()) => Ok(file),
            // Not every file system can reserve; all can be written to.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                let chunk = vec![0x55; CHUNK_BYTES];
                let mut left = bytes;
                while left > 0 {
                    let part = usize::try_from(left)
                        .unwrap_or(CHUNK_BYTES)
                        .min(CHUNK_BYTES);
                    file.write_all(chunk.get(..part).unwrap_or_default())?;
                    left -= part as u64;
                }
                file.sync_all()?;
                Ok(file)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the space back.
    pub(crate) fn free(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the ballast could not be removed"
            );
        }
    }
}

//! Ballast: some space that is given back when the disk is full, so that there is room to recover in.

use rustix::fs::FallocateFlags;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Bytes that are written at a time where space cannot be reserved.
const CHUNK_BYTES: usize = 64 << 10;

/// A file that does nothing but take up space.
#[derive(Debug)]
pub(crate) struct Ballast {
    path: PathBuf,
    bytes: u64,
}

impl Ballast {
    pub(crate) fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Makes sure that it is there. Fails when there is no space for it.
    pub(crate) fn fill(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() == self.bytes) {
            return Ok(());
        }
        let filled = self.reserve();
        if filled.is_err() {
            self.free();
        }
        filled
    }

    fn reserve(&self) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&self.path)?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            Ok(()) => Ok(()),
            // Not every file system can reserve; all can be written to.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                let chunk = vec![0x55; CHUNK_BYTES];
                let mut left = self.bytes;
                while left > 0 {
                    let part = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
                    file.write_all(chunk.get(..part).unwrap_or_default())?;
                    left -= part as u64;
                }
                file.sync_all()
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the space back.
    pub(crate) fn free(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the ballast could not be removed");
        }
    }
}

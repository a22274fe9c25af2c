//! A disk whose syncs do what a test or a bench says: `slow_disk.c` is loaded before the program's
//! C library. Nothing that is measured or tested on it has a real disk's mood in it. For Linux.

use crate::guests::root;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The variable that names the page to the library.
const PAGE: &str = "AGENT_HOST_TESTS_SYNCS";
/// The offset in the page of the sync behaviour; before it stands the number of syncs.
const WHAT_AT: u64 = 8;
/// The offset in the page of the flag that fails reads of the database.
const READS_AT: u64 = 16;

/// The behaviour of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    /// It takes so long, and then is done.
    Take(Duration),
    /// It takes until syncs do something else.
    Hang,
    /// It fails: the disk is broken.
    Fail,
}

/// The disk of one program.
#[derive(Debug)]
pub struct SlowDisk {
    library: PathBuf,
    page: PathBuf,
}

impl SlowDisk {
    /// A disk whose syncs take no time, with its files in a folder.
    ///
    /// # Errors
    /// This is not Linux, there is no C compiler, or a file cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::Error::other(
                "the syncs of a program can be replaced on Linux only",
            ));
        }
        let disk = Self {
            library: folder.join("slow_disk.so"),
            page: folder.join("syncs"),
        };
        let source = root().join("tests/src/slow_disk.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .arg(&disk.library)
            .arg(&source)
            .status()?;
        if !compiled.success() {
            return Err(io::Error::other(format!(
                "cc does not compile `{}`",
                source.display()
            )));
        }
        std::fs::write(&disk.page, [0; 24])?;
        Ok(disk)
    }

    /// The library that a program with this disk loads before its own C library.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The variable that tells the library its page.
    #[must_use]
    pub fn variable(&self) -> (&'static str, &Path) {
        (PAGE, &self.page)
    }

    /// The file that counts the syncs, for [`count`].
    #[must_use]
    pub fn counter(&self) -> &Path {
        &self.page
    }

    /// Sets the behaviour of syncs from now on, those that hang included.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn set(&self, syncs: Syncs) -> io::Result<()> {
        let what = match syncs {
            Syncs::Take(time) => u64::try_from(time.as_micros()).unwrap_or(u64::MAX - 2),
            Syncs::Hang => u64::MAX,
            Syncs::Fail => u64::MAX - 1,
        };
        File::options()
            .write(true)
            .open(&self.page)?
            .write_all_at(&what.to_ne_bytes(), WHAT_AT)
    }

    /// Has reads of the database fail from now on, or succeed again.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn set_reads(&self, succeed: bool) -> io::Result<()> {
        File::options()
            .write(true)
            .open(&self.page)?
            .write_all_at(&u64::from(!succeed).to_ne_bytes(), READS_AT)
    }
}

/// Returns the number of syncs so far.
///
/// # Errors
/// There is no such counter.
pub fn count(counter: &Path) -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open(counter)?.read_exact_at(&mut bytes, 0)?;
    Ok(u64::from_ne_bytes(bytes))
}

//! A wall clock that jumps when a test says so: `faked_clock.c` is loaded before the program's C
//! library. For Linux.

use crate::guests::root;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the page to the library.
const PAGE: &str = "AGENT_HOST_TESTS_CLOCK";

/// The wall clock of one program after another.
#[derive(Debug)]
pub struct FakedClock {
    library: PathBuf,
    page: PathBuf,
}

impl FakedClock {
    /// A clock that is right, with its files in a folder.
    ///
    /// # Errors
    /// This is not Linux, there is no C compiler, or a file cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::Error::other(
                "the clock of a program can be replaced on Linux only",
            ));
        }
        let clock = Self {
            library: folder.join("faked_clock.so"),
            page: folder.join("clock"),
        };
        let source = root().join("tests/src/faked_clock.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .arg(&clock.library)
            .arg(&source)
            .status()?;
        if !compiled.success() {
            return Err(io::Error::other(format!(
                "cc does not compile `{}`",
                source.display()
            )));
        }
        std::fs::write(&clock.page, [0; 8])?;
        Ok(clock)
    }

    /// The library that a program with this clock loads before its own C library.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The variable that tells the library its page.
    #[must_use]
    pub fn variable(&self) -> (&'static str, &Path) {
        (PAGE, &self.page)
    }

    /// Has the clock go so many milliseconds before or after the right one, from now on.
    ///
    /// # Panics
    /// When the page cannot be written.
    pub fn shift(&self, ms: i64) {
        let page = File::options()
            .write(true)
            .open(&self.page)
            .expect("the page");
        page.write_all_at(&ms.to_ne_bytes(), 0)
            .expect("a page that is written");
    }
}

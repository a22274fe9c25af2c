//! The bare disk: what a sync costs here and now, without any database around it.

use crate::measure::us;
use crate::report::Circumstances;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes written before each sync: a page of the database.
const PAGE_BYTES: usize = 4 << 10;
/// Pages of the file, which are written round and round.
const PAGES: u64 = 256;
/// Time for which the disk is measured for the report's header.
const SEARCH_FOR: Duration = Duration::from_millis(500);
/// Below so many syncs a second the disk counts as throttled.
const BURST_PER_S_MIN: f64 = 2_000.0;

/// A file of its own, written in full beforehand, so that a sync writes data and nothing else.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    page: u64,
}

impl Disk {
    /// A file in a folder.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(folder.join("raw"))?;
        for page in 0..PAGES {
            file.write_all_at(&[1; PAGE_BYTES], page * PAGE_BYTES as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, page: 0 })
    }

    /// Writes one page and syncs it; how long that took.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn sync(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.page = (self.page + 1) % PAGES;
        self.file
            .write_all_at(&[2; PAGE_BYTES], self.page * PAGE_BYTES as u64)?;
        self.file.sync_data()?;
        Ok(began.elapsed())
    }
}

/// Returns the circumstances under which this run measures.
///
/// # Errors
/// The system's error.
pub(crate) fn circumstances() -> anyhow::Result<Circumstances> {
    let folder = tempfile::tempdir()?;
    let mut disk = Disk::new(folder.path())?;
    let began = Instant::now();
    let mut syncs = 0_u32;
    while began.elapsed() < SEARCH_FOR {
        disk.sync()?;
        syncs += 1;
    }
    let fdatasync_per_s = f64::from(syncs) / us(began.elapsed()) * 1e6;
    // Only Linux says it in a file.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    Ok(Circumstances {
        fdatasync_per_s,
        disk: if fdatasync_per_s < BURST_PER_S_MIN {
            "throttled"
        } else {
            "burst"
        },
        load: if load.is_empty() {
            "unknown".to_owned()
        } else {
            load
        },
        profile: if cfg!(debug_assertions) {
            "dev (opt-level 1, hot crates 2)"
        } else {
            "release"
        },
    })
}

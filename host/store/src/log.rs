//! The write-ahead log: its length, its bound, and the reads that keep it from being shortened.
//!
//! A read keeps the log from starting over: the pages that it sees may be stored only there. So the
//! log grows while reads and commits go on, and a read that never ended would fill the disk. Long
//! reads of the store's own go in chunks, or read a copy. When the log reaches its bound anyway,
//! reads that have taken longer than a moment are ended. No others begin until the log can start
//! over, unless a read of another program keeps it from doing so.

use crate::sql::{self, Connection, with_causes};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Bytes of a frame in addition to its page.
const FRAME_HEADER_BYTES: u64 = 24;
/// Fraction of its bound from which the log is made to start over. Below the bound it does so only
/// if no read is in the way.
const LONG_PART: u64 = 4;
/// Time that a read may go on when the log has reached its bound, in milliseconds.
const GRACE_MS: u64 = 100;
/// Time that commits wait for reads to leave a full log, and that a read waits for the same reason,
/// in milliseconds. Reads are ended meanwhile, and check several times in this time whether to end.
/// Commits wait longer by the time that the disk takes to move the log.
pub(crate) const FULL_WAIT_MS: u64 = 500;
/// Steps of SQLite's machine between two checks of a read whether it is in the way. Reading one
/// large row takes few steps and much time.
pub(crate) const POLL_OPS: i32 = 1_000;
/// Placeholder for the start time when no read is in progress.
const NO_READ: u64 = u64::MAX;

/// The state of the write-ahead log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// Bytes of its file.
    pub bytes: u64,
    /// Size in bytes from which on reads that are in the way are ended. One transaction may exceed
    /// it, and so may any number while another program reads.
    pub bytes_max: u64,
    /// Reason why the log could not be moved to the database at the last try, with its causes; none
    /// when it was moved.
    pub failing: Option<String>,
    /// Reads that were ended because they were in the way, since the store was opened.
    pub reads_ended: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    bytes_max: u64,
    frame_bytes: u64,
    /// Frames in it, as the last commit left it.
    pages: Arc<AtomicUsize>,
    index: OnceLock<ManuallyDrop<File>>,
    /// True if the log has reached its bound and has not started over since.
    full: AtomicBool,
    /// True while reads that have taken longer than a moment are ended.
    ends_reads: AtomicBool,
    gate: Gate,
    /// Start of the read in progress of each connection that is watched.
    reads: Mutex<Vec<Weak<AtomicU64>>>,
    failing: Mutex<Option<String>>,
    reads_ended: AtomicU64,
    epoch: Instant,
    /// Ends the next read that checks, whatever the log's length.
    #[cfg(test)]
    pub(crate) ends_next: AtomicBool,
}

/// Urgency of starting the log over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// No need.
    Short,
    /// The log should start over.
    Long,
    /// The log must start over.
    Full,
}

impl Log {
    /// Creates the state of the log at this path. The number of its frames is reported by the
    /// database's connection.
    pub(crate) fn new(
        path: PathBuf,
        bytes_max: u64,
        connection: &Connection,
        pages: Arc<AtomicUsize>,
    ) -> sql::Result<Self> {
        let page_bytes = connection.page_bytes()?;
        Ok(Self {
            path,
            bytes_max,
            frame_bytes: u64::from(page_bytes) + FRAME_HEADER_BYTES,
            pages,
            index: OnceLock::new(),
            full: AtomicBool::new(false),
            ends_reads: AtomicBool::new(false),
            gate: Gate::default(),
            reads: Mutex::default(),
            failing: Mutex::default(),
            reads_ended: AtomicU64::new(0),
            epoch: Instant::now(),
            #[cfg(test)]
            ends_next: AtomicBool::new(false),
        })
    }

    pub(crate) fn state(&self) -> LogState {
        LogState {
            bytes: fs::metadata(&self.path).map_or(0, |log| log.len()),
            bytes_max: self.bytes_max,
            failing: self
                .failing
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            reads_ended: self.reads_ended.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The index file of the log. It is opened once and never closed: closing any descriptor of a
    /// file drops all locks of the process on it. Other processes learn from these locks that the
    /// database is in use.
    pub(crate) fn index(&self) -> io::Result<&File> {
        if self.index.get().is_none() {
            let _ = self.index.set(ManuallyDrop::new(File::open(
                self.path.with_extension("db-shm"),
            )?));
        }
        self.index
            .get()
            .map(|index| &**index)
            .ok_or_else(|| io::Error::other("it was not kept"))
    }

    /// Frames in it.
    pub(crate) fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn length(&self) -> Length {
        let bytes = (self.pages() as u64).saturating_mul(self.frame_bytes);
        if bytes >= self.bytes_max {
            Length::Full
        } else if bytes >= self.bytes_max / LONG_PART {
            Length::Long
        } else {
            Length::Short
        }
    }

    /// Notes that the log has reached its bound. Returns whether that is new.
    pub(crate) fn set_full(&self) -> bool {
        !self.full.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Begins to end reads that have taken longer than a moment, and blocks new ones.
    pub(crate) fn clear_reads(&self) {
        self.ends_reads.store(true, Ordering::Relaxed);
        self.gate.close();
    }

    /// Lets reads begin again. Reads that were asked to end still end.
    pub(crate) fn admit_reads(&self) {
        self.gate.open();
    }

    /// Stops ending reads: none of them keeps the log from starting over.
    pub(crate) fn spare_reads(&self) {
        self.ends_reads.store(false, Ordering::Relaxed);
    }

    /// Returns whether a read of the store's own is in progress that began at or before this time,
    /// in milliseconds of this clock.
    pub(crate) fn has_read_begun_by(&self, ms: u64) -> bool {
        self.reads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
            .map(|began| began.load(Ordering::SeqCst))
            .any(|began| began != NO_READ && began <= ms)
    }

    /// Returns whether the read that began then has taken longer than a moment.
    fn is_long(&self, began: &AtomicU64) -> bool {
        let began = began.load(Ordering::Relaxed);
        began != NO_READ && self.ms().saturating_sub(began) > GRACE_MS
    }

    /// Records that the next commit starts the log over.
    pub(crate) fn restarted(&self) {
        self.pages.store(0, Ordering::Relaxed);
        self.full.store(false, Ordering::Relaxed);
        self.spare_reads();
        self.admit_reads();
    }

    /// Records that the log was moved to the database, or the error that prevented it.
    pub(crate) fn moved(&self, error: Option<&sql::Error>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) =
            error.map(|error| with_causes(error));
    }

    /// Milliseconds since it was opened.
    pub(crate) fn ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(NO_READ - 1)
    }
}

/// Gate that reads pass before they begin. It is closed while the writer waits for the reads in
/// progress to leave a full log. Otherwise successive reads could overlap, and the log would never
/// be free.
#[derive(Debug, Default)]
struct Gate {
    is_closed: AtomicBool,
    /// Locked to open the gate and to check whether to wait, so that no read misses the opening.
    opening: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(false, Ordering::SeqCst);
        drop(opening);
        self.opened.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until the gate is open, but only for a moment: the writer's disk may not respond.
    fn wait(&self) {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let _ =
            self.opened
                .wait_timeout_while(opening, Duration::from_millis(FULL_WAIT_MS), |()| {
                    self.is_closed()
                });
    }
}

/// The reads of one connection. Each is ended when it has taken longer than a moment while the log
/// is full, unless ending it would not help.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    log: Arc<Log>,
    /// Start of the read in progress, in milliseconds of the log's clock.
    began: Arc<AtomicU64>,
}

impl Watched {
    /// Makes the connection check whether to end its reads.
    pub(crate) fn watch(connection: &mut Connection, log: &Arc<Log>) -> sql::Result<Self> {
        let watched = Self::unattached(log);
        let seen = watched.clone();
        connection.end_when(POLL_OPS, move || seen.is_in_the_way())?;
        Ok(watched)
    }

    /// Creates it for a connection that does its own checks.
    pub(crate) fn unattached(log: &Arc<Log>) -> Self {
        let began = Arc::new(AtomicU64::new(NO_READ));
        let mut reads = log.reads.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop the entries of closed connections.
        reads.retain(|read| read.strong_count() > 0);
        reads.push(Arc::downgrade(&began));
        drop(reads);
        Self {
            log: Arc::clone(log),
            began,
        }
    }

    /// Records that a read begins. Waits for a moment first if reads are blocked.
    pub(crate) fn begins(&self) {
        if !self.begins_at_once() {
            self.log.gate.wait();
            self.began.store(self.log.ms(), Ordering::SeqCst);
        }
    }

    /// Records that a read begins. Returns false and records nothing if reads are blocked.
    pub(crate) fn begins_at_once(&self) -> bool {
        // Recorded before the gate is checked, and the writer closes the gate before it checks for
        // reads: one of the two sees the other.
        self.began.store(self.log.ms(), Ordering::SeqCst);
        let is_admitted = !self.log.gate.is_closed();
        if !is_admitted {
            self.ends();
        }
        is_admitted
    }

    pub(crate) fn ends(&self) {
        self.began.store(NO_READ, Ordering::SeqCst);
    }

    /// Returns whether the read has to end. Each such read counts once.
    pub(crate) fn is_in_the_way(&self) -> bool {
        let has_to_end =
            self.log.ends_reads.load(Ordering::Relaxed) && self.log.is_long(&self.began);
        #[cfg(test)]
        let has_to_end = has_to_end
            || (self.began.load(Ordering::Relaxed) != NO_READ
                && self.log.ends_next.swap(false, Ordering::Relaxed));
        if has_to_end {
            self.log.reads_ended.fetch_add(1, Ordering::Relaxed);
        }
        has_to_end
    }
}

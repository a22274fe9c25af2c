//! The store as its users see it: commits in, reads out.

use crate::commit::Prepared;
use crate::commit::{Commit, CommitError, Committed};
use crate::copy;
use crate::health::{Health, Vitals};
use crate::log::{Log, LogState};
use crate::meta::{self, ENDED};
use crate::open::{self, DataDir, OpenError, Options};
use crate::probe::is_failing;
use crate::read::{PANICKED, ReadError};
use crate::readers::PointReads;
use crate::readers::{Read, Readers};
use crate::rebuild::Rebuilds;
use crate::sql::{self, Connection, Failure, Sql};
use crate::stats::{Counters, Stats, count};
use crate::writer::{self, Between, QueuedCommit, Request, ReservedSpace, State, Writer};
use domain::time::Timestamp;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// An open store. Clones share it. Dropping the last one waits until all queued commits are
/// durable.
#[derive(Clone)]
pub struct Store {
    maintenance: Maintenance,
}

impl Deref for Store {
    type Target = Maintenance;

    fn deref(&self) -> &Maintenance {
        &self.maintenance
    }
}

/// An open store for those who keep it running: its health, figures, backups, checks and rebuilds.
/// It reads and writes nothing that anybody said.
#[derive(Clone)]
pub struct Maintenance {
    inner: Arc<Inner>,
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maintenance")
            .field("database", &self.inner.database)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("database", &self.inner.database)
            .finish_non_exhaustive()
    }
}

/// Maximum time that dropping waits for threads that the disk blocks.
const LEAVE: Duration = Duration::from_secs(5);
/// Interval at which dropping checks whether the threads have ended.
const POLL: Duration = Duration::from_millis(1);

struct Inner {
    database: PathBuf,
    /// None once the store was closed.
    senders: Mutex<Option<Senders>>,
    durable: watch::Receiver<u64>,
    vitals: Arc<Vitals>,
    log: Arc<Log>,
    counters: Arc<Counters>,
    queued_bytes: Arc<AtomicUsize>,
    queue_bytes_max: usize,
    needs_integrity_check: bool,
    was_ended: bool,
    latest_at_open: Timestamp,
    kept_longer_ms: Arc<AtomicU64>,
    /// Every thread holds a receiver of it while it has part of the store open.
    alive: watch::Sender<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Set when the store has to close.
    closing: Arc<AtomicBool>,
    rebuilds: Rebuilds,
    /// Lock of a purge or a rebuild: a rebuild could restore data that is about to be erased.
    upkeep: Arc<tokio::sync::Mutex<()>>,
    /// Lock of the reader of a copy of the database.
    copying: Arc<tokio::sync::Mutex<()>>,
}

/// Channels to the store's threads. The threads run as long as one of these exists.
#[derive(Clone)]
pub(crate) struct Senders {
    pub(crate) writer: SyncSender<Request>,
    readers: Arc<Readers>,
    point_reads: Arc<PointReads>,
}

impl Store {
    /// Returns the data directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.inner.database.parent().unwrap_or(Path::new("."))
    }

    /// Opens the store of a data directory, or makes a new one where the directory is empty or
    /// missing. Blocks while the database is checked and recovered from a crash: some milliseconds,
    /// up to about a second for a large log.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let dir = Arc::new(DataDir::lock(dir)?);
        let database = dir.database();
        let prepared = open::prepare(&dir)?;
        // Only now: where the database is missing, a copy that a crash left may be all there is.
        copy::remove(&database);
        let rebuilds = Rebuilds::new(&database);
        let opened = open::database(&dir, prepared)?;
        let mut connection = opened.connection;
        let log = watched_log(&dir, &mut connection, options.log_bytes_max)?;
        let (alive, leased) = watch::channel(());
        let (started, mut threads) =
            Readers::start(&dir, options.readers, options.reads_max, &leased, &log)?;
        let point_reads = PointReads::open(&dir, options.readers, &leased, &log)?;
        let (write_sender, requests) = sync_channel(options.queue_max);
        let (durable_sender, durable) = watch::channel(opened.head.position);
        let counters = Arc::new(Counters::default());
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let reserved_space = ReservedSpace::new(dir.reserved_space(), options.ballast_bytes);
        let is_full = !is_filled(&reserved_space);
        let vitals = Arc::new(Vitals::new(is_full || reserved_space.is_short()));
        let reported = Arc::clone(&vitals);
        let state = State::new(opened.head, opened.latest, is_full);
        let kept_longer_ms = Arc::clone(&state.kept_longer_ms);
        let counted = Arc::clone(&counters);
        let queued = Arc::clone(&queued_bytes);
        let written = Arc::clone(&log);
        let thread = start_writer(connection, dir, leased, move |sql| Writer {
            sql,
            requests,
            counters: counted,
            queued_bytes: queued,
            durable: durable_sender,
            reserved_space,
            vitals: reported,
            log: written,
            state,
        });
        threads
            .push(thread.map_err(|error| OpenError::io("written by a thread", &database, error))?);
        let senders = Mutex::new(Some(Senders {
            writer: write_sender,
            readers: Arc::new(started),
            point_reads: Arc::new(point_reads),
        }));
        let inner = Inner {
            database,
            senders,
            durable,
            vitals,
            log,
            counters,
            queued_bytes,
            queue_bytes_max: options.queue_bytes_max,
            needs_integrity_check: opened.needs_integrity_check,
            was_ended: opened.was_ended,
            latest_at_open: opened.latest,
            kept_longer_ms,
            alive,
            threads: Mutex::new(threads),
            closing: Arc::default(),
            rebuilds,
            upkeep: Arc::default(),
            copying: Arc::default(),
        };
        let inner = Arc::new(inner);
        Ok(Self {
            maintenance: Maintenance { inner },
        })
    }

    /// Returns the latest time among the last events when the store was opened; 0 without any.
    #[must_use]
    pub fn latest_at_open(&self) -> Timestamp {
        self.inner.latest_at_open
    }

    /// Extends the lifetime of idempotency keys by so many milliseconds, because it is not known
    /// whether they have expired.
    pub fn keep_keys_longer(&self, ms: u64) {
        self.inner.kept_longer_ms.store(ms, Ordering::Relaxed);
    }

    /// The time since which idempotency keys are remembered.
    pub(crate) fn keys_since(&self, now: Timestamp) -> Timestamp {
        writer::keys_since(now, &self.inner.kept_longer_ms)
    }

    /// Stores a commit. After `Ok` it survives a crash of the process and of the machine; after any
    /// error nothing of it is stored. Dropping the future does not undo it. While the writer is
    /// stalled ([`Health::Stalled`]) it is refused as busy.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        count(&self.inner.counters.commits, 1);
        // Callers that waited for a disk that does not respond would block connections and places
        // in the queue that others need.
        if self.inner.vitals.is_stalled() {
            count(&self.inner.counters.busy, 1);
            return Err(CommitError::Busy);
        }
        let prepared = Prepared::new(commit).map_err(|error| CommitError::Unstorable {
            source: error.into(),
        })?;
        let bytes = prepared.bytes;
        if self.inner.queued_bytes.fetch_add(bytes, Ordering::Relaxed) > self.inner.queue_bytes_max
        {
            self.inner.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            count(&self.inner.counters.busy, 1);
            return Err(CommitError::Busy);
        }
        let (reply, answer) = oneshot::channel();
        if let Err(error) =
            self.ask_writer(Request::Commit(Box::new(QueuedCommit { prepared, reply })))
        {
            self.inner.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(error);
        }
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Closes the store. It accepts no new requests, finishes the queued ones, moves the log to the
    /// database and releases the data directory. The duration depends on the disk. A caller that
    /// does not wait loses nothing that was acknowledged.
    pub async fn close(&self) {
        self.inner.leave();
        self.inner.alive.closed().await;
    }

    /// Returns whether the process that last worked on the store ended on request
    /// ([`Self::end_work`]). True of a new store as well.
    #[must_use]
    pub fn was_ended(&self) -> bool {
        self.inner.was_ended
    }

    /// Removes the mark of a clean shutdown. Once this returns, a process that opens the store
    /// after a crash can detect the crash.
    pub async fn begin_work(&self) -> Result<(), CommitError> {
        self.in_writer(|sql| meta::remove(sql, ENDED)).await
    }

    /// Records that work has ended, or is about to end, on request.
    pub async fn end_work(&self) -> Result<(), CommitError> {
        self.in_writer(|sql| meta::note(sql, ENDED, "as told"))
            .await
    }
}

impl Maintenance {
    /// Returns a watch on the position of the last durable event. A reader that sees a position
    /// sees every event up to it.
    #[must_use]
    pub fn durable(&self) -> watch::Receiver<u64> {
        self.inner.durable.clone()
    }

    /// Returns whether commits are accepted at this moment, and if not, why. While the writer is
    /// idle, it checks every second for space and for whether a failure persists.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.vitals.health()
    }

    /// Returns the state of the write-ahead log.
    #[must_use]
    pub fn log_state(&self) -> LogState {
        self.log().state()
    }

    /// Returns whether the pages of the store were not checked when it was opened. A large store
    /// that was not closed properly is opened unchecked; [`Store::damage`] does the check then.
    #[must_use]
    pub fn needs_integrity_check(&self) -> bool {
        self.inner.needs_integrity_check
    }

    /// Returns counters of the writer's work so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.counters.read()
    }

    pub(crate) fn database(&self) -> &Path {
        &self.inner.database
    }

    /// Runs a read on a reader thread. All of it sees the same state of the store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        count(&self.inner.counters.reads, 1);
        let (reply, answer) = oneshot::channel();
        let vitals = Arc::clone(&self.inner.vitals);
        let read: Read = Box::new(move |sql| {
            let read = at_one_time(sql, read);
            vitals.note_read(&read);
            let _ = reply.send(read);
        });
        self.senders().ok_or(ReadError::Closed)?.readers.ask(read)?;
        answer
            .await
            .map_err(|_| self.unanswered())?
            .map_err(|error| self.read_error(error))
    }

    /// Returns the failure of a read. While the disk fails no stored data is reported as
    /// unreadable: SQLite may mistake a page that it could not read for a malformed one.
    fn read_error(&self, error: sql::Error) -> ReadError {
        match ReadError::from(error) {
            ReadError::Unreadable { source } if self.is_disk_failing() => {
                ReadError::Unavailable { source }
            }
            error => error,
        }
    }

    /// Returns whether the disk failed to read a moment ago, or fails in a test read now.
    #[must_use]
    pub fn is_disk_failing(&self) -> bool {
        self.inner.vitals.has_disk_failed() || is_failing(&self.inner.database)
    }

    /// Returns the reason why a read has no answer: it panicked, unless the store is being closed.
    ///
    /// A retry would panic again, so the error is that something cannot be read.
    pub(crate) fn unanswered(&self) -> ReadError {
        match self.closing().load(Ordering::Relaxed) {
            true => ReadError::Closed,
            false => ReadError::Unreadable {
                source: PANICKED.into(),
            },
        }
    }

    /// Reads a few rows by their keys on the caller's own thread, because handing the read to
    /// another thread takes longer than the read itself. Only for a single statement, or for rows
    /// that never change: a commit may land between several statements.
    pub(crate) async fn point_read<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        let point_reads = self.senders().ok_or(ReadError::Closed)?.point_reads;
        match point_reads.inspect(inspect) {
            Ok(seen) => {
                self.inner.vitals.note_read(&seen);
                seen.map_err(|error| self.read_error(error))
            }
            Err(inspect) => self.read(inspect).await,
        }
    }

    pub(crate) fn vitals(&self) -> &Vitals {
        &self.inner.vitals
    }

    pub(crate) fn closing(&self) -> &Arc<AtomicBool> {
        &self.inner.closing
    }

    pub(crate) fn rebuilds(&self) -> &Rebuilds {
        &self.inner.rebuilds
    }

    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.inner.log
    }

    pub(crate) fn copying(&self) -> &Arc<tokio::sync::Mutex<()>> {
        &self.inner.copying
    }

    pub(crate) fn upkeep(&self) -> &Arc<tokio::sync::Mutex<()>> {
        &self.inner.upkeep
    }

    pub(crate) fn senders(&self) -> Option<Senders> {
        self.inner
            .senders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn ask_writer(&self, request: Request) -> Result<(), CommitError> {
        let senders = self.senders().ok_or(CommitError::Closed)?;
        senders
            .writer
            .try_send(request)
            .map_err(|error| match error {
                TrySendError::Full(_) => {
                    count(&self.inner.counters.busy, 1);
                    CommitError::Busy
                }
                TrySendError::Disconnected(_) => CommitError::Closed,
            })
    }

    /// Runs some work on the writer's connection, between two commits.
    pub(crate) async fn in_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (reply, answer) = oneshot::channel();
        let between = Between::new(move |sql| {
            let _ = reply.send(work(sql));
        });
        self.ask_writer(Request::Between(between))?;
        answer
            .await
            .map_err(|_| CommitError::Closed)?
            .map_err(|error| match error.failure() {
                Some(Failure::Full) => CommitError::Full,
                _ => CommitError::Unavailable {
                    source: error.into(),
                },
            })
    }

    /// Runs statements on the writer's connection.
    #[cfg(test)]
    pub(crate) async fn execute(&self, text: &'static str) {
        let (reply, answer) = oneshot::channel();
        self.ask_writer(Request::Execute(text, reply)).unwrap();
        answer.await.unwrap();
    }
}

/// Starts the writer's thread. It keeps the directory locked until the connection is closed.
fn start_writer(
    connection: Connection,
    dir: Arc<DataDir>,
    leased: watch::Receiver<()>,
    build: impl FnOnce(Sql<'_>) -> Writer<'_> + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || {
            writer::run(&connection, build);
            drop(connection);
            drop(dir);
            drop(leased);
        })
}

/// Sets up counting of the pages of the database's log, beginning with those that exist when it is
/// opened.
fn watched_log(
    dir: &DataDir,
    connection: &mut Connection,
    bytes_max: u64,
) -> Result<Arc<Log>, OpenError> {
    writer::watch_log(connection)
        .and_then(|pages| Log::new(dir.log(), bytes_max, connection, pages))
        .map(Arc::new)
        .map_err(|error| OpenError::database(&dir.database(), error))
}

/// Fills the reserved space, and returns whether the disk had enough space for it.
fn is_filled(reserved_space: &ReservedSpace) -> bool {
    let filled = reserved_space.fill();
    if let Err(error) = &filled {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "there is no space for the ballast: commits wait for it"
        );
    }
    filled.is_ok()
}

/// Runs several reads in one transaction, so that all of them see the same state.
fn at_one_time<T>(sql: &Sql<'_>, read: impl FnOnce(&Sql<'_>) -> sql::Result<T>) -> sql::Result<T> {
    sql.execute("BEGIN DEFERRED", [])?;
    let result = read(sql);
    let ended = sql.execute("ROLLBACK", []);
    let value = result?;
    ended?;
    Ok(value)
}

impl Inner {
    /// Accepts no more requests, and ends all work except commits.
    fn leave(&self) {
        self.closing.store(true, Ordering::Relaxed);
        drop(
            self.senders
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.leave();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // A thread that waits for a disk that does not answer must not keep the process from
        // ending.
        let patience = Instant::now() + LEAVE;
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < patience {
            std::thread::sleep(POLL);
        }
        for thread in threads.into_iter().filter(JoinHandle::is_finished) {
            // A reader that panicked has said so already; the writer ends the process instead.
            let _ = thread.join();
        }
    }
}

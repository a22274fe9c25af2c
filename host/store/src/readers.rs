//! Reader threads, each with its own read-only connection. Neither the writer nor the async runtime
//! ever waits for a read.

use crate::log::{Log, Watched};
use crate::open::{DataDir, OpenError};
use crate::panics::caught;
use crate::read::{PANICKED, ReadError};
use crate::sql::{self, Connection, Sql, unreadable};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;

pub(crate) type Read = Box<dyn FnOnce(&Sql<'_>) + Send>;

tokio::task_local! {
    /// Set where reads give way to others.
    static BACKGROUND: ();
}

/// Runs a task whose reads have low priority. As long as other reads wait, at least one thread
/// serves them. Any number of waiting background reads leaves room for others. It is meant for work
/// that no client waits for.
pub fn in_background<F: Future>(task: F) -> impl Future<Output = F::Output> {
    BACKGROUND.scope((), task)
}

/// Priority of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Reads that a client waits for.
    Front,
    /// Reads for work in the background.
    Background,
}

impl Lane {
    /// The lane of the task that asks.
    fn here() -> Self {
        if BACKGROUND.try_with(|()| ()).is_ok() {
            Self::Background
        } else {
            Self::Front
        }
    }
}

/// Queue of the reads that wait for a thread. The threads end when it is dropped.
pub(crate) struct Readers(Arc<Queue>);

struct Queue {
    waiting: Mutex<Lanes>,
    /// Wakes one thread for each read.
    more: Condvar,
    /// Maximum number of waiting reads in each lane.
    waiting_max: usize,
    /// Threads that read for the background at the same time, at most.
    background_max: usize,
}

#[derive(Default)]
struct Lanes {
    front: VecDeque<Read>,
    background: VecDeque<Read>,
    /// Threads that read for the background.
    at_background: usize,
    /// The lane of the last read: if both lanes have reads, they take turns.
    last_was_front: bool,
    closed: bool,
}

impl Lanes {
    /// The next read, and its lane.
    fn pop(&mut self, background_max: usize) -> Option<(Read, Lane)> {
        let may_background = self.at_background < background_max && !self.background.is_empty();
        let lane = if may_background && (self.front.is_empty() || self.last_was_front) {
            Lane::Background
        } else {
            Lane::Front
        };
        self.last_was_front = lane == Lane::Front;
        let read = match lane {
            Lane::Front => self.front.pop_front(),
            Lane::Background => self.background.pop_front(),
        };
        self.at_background += usize::from(lane == Lane::Background && read.is_some());
        read.map(|read| (read, lane))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next read; none once the queue is closed and empty.
    fn next(&self) -> Option<(Read, Lane)> {
        let mut waiting = self.lock();
        loop {
            if let Some(read) = waiting.pop(self.background_max) {
                return Some(read);
            }
            // Reads that this thread may not take are left to the background threads.
            if waiting.closed {
                return None;
            }
            waiting = self
                .more
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread is done with a read.
    fn done(&self, lane: Lane) {
        if lane == Lane::Background {
            self.lock().at_background -= 1;
            // A waiting thread may take the read that this thread may not take, because it serves
            // the other lane.
            self.more.notify_one();
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.more.notify_all();
    }
}

impl Readers {
    pub(crate) fn start(
        dir: &Arc<DataDir>,
        threads: usize,
        waiting_max: usize,
        alive: &watch::Receiver<()>,
        log: &Arc<Log>,
    ) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let path = dir.database();
        let background_max = threads.saturating_sub(1).max(1);
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            more: Condvar::new(),
            waiting_max,
            background_max,
        });
        let readers = Self(Arc::clone(&queue));
        let mut handles = Vec::with_capacity(threads);
        for number in 0..threads.max(1) {
            let (connection, watched) =
                connect_watched(&path, log).map_err(|error| OpenError::database(&path, error))?;
            let queue = Arc::clone(&queue);
            let dir = Arc::clone(dir);
            let alive = alive.clone();
            let thread = Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || {
                    read_all(&connection, &queue, &watched);
                    // A caller that waits for the store to be closed may open it again as soon as
                    // no part of it is open.
                    drop(connection);
                    drop(dir);
                    drop(alive);
                });
            handles.push(thread.map_err(|error| OpenError::io("read by a thread", &path, error))?);
        }
        Ok((readers, handles))
    }

    /// Hands a read to a free thread.
    pub(crate) fn ask(&self, read: Read) -> Result<(), ReadError> {
        let mut waiting = self.0.lock();
        let lane = match Lane::here() {
            Lane::Front => &mut waiting.front,
            Lane::Background => &mut waiting.background,
        };
        if lane.len() >= self.0.waiting_max {
            return Err(ReadError::Busy);
        }
        lane.push_back(read);
        drop(waiting);
        self.0.more.notify_one();
        Ok(())
    }
}

/// A connection that cannot write.
pub(crate) fn connect(path: &Path) -> sql::Result<Connection> {
    let connection = Connection::open_read_only(path)?;
    connection.set_up_reader()?;
    Ok(connection)
}

/// The same, with reads that are ended when they are in the way of the log.
pub(crate) fn connect_watched(path: &Path, log: &Arc<Log>) -> sql::Result<(Connection, Watched)> {
    let mut connection = connect(path)?;
    let watched = Watched::watch(&mut connection, log)?;
    Ok((connection, watched))
}

fn read_all(connection: &Connection, queue: &Queue, watched: &Watched) {
    let sql = Sql::new(connection);
    while let Some((read, lane)) = queue.next() {
        watched.begins();
        // A read that panics drops the channel of its answer; the thread continues.
        if let Err(panic) = caught(|| read(&sql)) {
            tracing::error!(panic, "a read of the store panicked");
            leave_transaction(connection);
        }
        watched.ends();
        queue.done(lane);
    }
}

/// Ends the transaction in which a read panicked. Otherwise every further read in it would fail,
/// and the log could not be shortened.
pub(crate) fn leave_transaction(connection: &Connection) {
    if connection.in_transaction()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a thread that reads the store cannot go on: the process ends, so that it can be \
             started again whole"
        );
        std::process::abort();
    }
}

/// An inspection that takes longer has waited for the disk. One that was only preempted on a busy
/// machine takes some milliseconds; sending later ones to another thread would only cost more
/// processor time.
const SHORT: Duration = Duration::from_millis(8);
/// Number of inspections that go to the reader threads after a slow one.
const DETOUR_POLLS: u32 = 64;

/// Connections for inspections of single rows.
pub(crate) struct PointReads {
    connections: Vec<Mutex<(Connection, Watched)>>,
    /// Looks that still go elsewhere.
    detour: AtomicU32,
    /// Handle of the data directory, dropped after the connections. A caller that waits for the
    /// store to be closed may open it again as soon as nothing of it is open.
    _dir: Arc<DataDir>,
    _alive: watch::Receiver<()>,
}

impl PointReads {
    /// Opens so many connections, at least one.
    pub(crate) fn open(
        dir: &Arc<DataDir>,
        connections: usize,
        alive: &watch::Receiver<()>,
        log: &Arc<Log>,
    ) -> Result<Self, OpenError> {
        let path = dir.database();
        let connections = (0..connections.max(1))
            .map(|_| connect_watched(&path, log).map(Mutex::new))
            .collect::<sql::Result<_>>()
            .map_err(|error| OpenError::database(&path, error))?;
        Ok(Self {
            connections,
            detour: AtomicU32::new(0),
            _dir: Arc::clone(dir),
            _alive: alive.clone(),
        })
    }

    /// Runs an inspection on this thread. Returns it unrun if it should go to a reader thread:
    /// while inspections are slow, all connections are in use, or reads are blocked.
    pub(crate) fn inspect<T, L>(&self, inspect: L) -> Result<sql::Result<T>, L>
    where
        L: FnOnce(&Sql<'_>) -> sql::Result<T>,
    {
        if self
            .detour
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
        {
            return Err(inspect);
        }
        let free = self
            .connections
            .iter()
            .find_map(|connection| match connection.try_lock() {
                Ok(free) => Some(free),
                // An inspection that panicked has changed nothing: these connections cannot write.
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            });
        let Some(free) = free else {
            return Err(inspect);
        };
        let (connection, watched) = &*free;
        if !watched.begins_at_once() {
            return Err(inspect);
        }
        let began = Instant::now();
        // The caller drives a session, and does not end with one inspection.
        let seen = caught(|| inspect(&Sql::new(connection))).unwrap_or_else(|panic| {
            tracing::error!(panic, "a look into the store panicked");
            leave_transaction(connection);
            Err(unreadable(0, PANICKED))
        });
        watched.ends();
        drop(free);
        if began.elapsed() > SHORT {
            self.detour.store(DETOUR_POLLS, Ordering::Relaxed);
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::in_background;
    use crate::{Options, ReadError, Store};

    fn with_readers(dir: &tempfile::TempDir, readers: usize) -> Store {
        let options = Options {
            readers,
            reads_max: 4,
            ..Options::default()
        };
        Store::open(dir.path(), options).unwrap()
    }

    #[tokio::test]
    async fn a_read_that_panics_fails_by_itself_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = with_readers(&dir, 1);
        let panicked = store.read::<()>(|_| panic!("this is a test")).await;
        assert!(
            matches!(&panicked, Err(ReadError::Unreadable { source }) if source.to_string().contains("panicked")),
            "{panicked:?}"
        );
        assert!(
            store
                .read(|sql| Ok(!sql.connection().in_transaction()))
                .await
                .is_ok_and(|alone| !alone),
            "a transaction of its own"
        );
    }

    #[tokio::test]
    async fn a_look_that_panics_fails_by_itself_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = with_readers(&dir, 1);
        // More often than there are connections.
        for _ in 0..3 {
            let panicked = store.point_read::<()>(|_| panic!("this is a test")).await;
            assert!(
                matches!(panicked, Err(ReadError::Unreadable { .. })),
                "{panicked:?}"
            );
            assert!(
                store
                    .point_read(|sql| sql.exists("SELECT 1 FROM head WHERE id = 1", []))
                    .await
                    .unwrap()
            );
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the task is awaited")]
    async fn a_read_that_panics_while_the_store_is_closed_says_that_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let store = with_readers(&dir, 1);
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let reading = store.clone();
        let reading = tokio::spawn(async move {
            let panics = move |_: &crate::sql::Sql<'_>| -> crate::sql::Result<()> {
                panic!("released: {:?}", gate.recv())
            };
            reading.read(panics).await
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let closing = store.clone();
        let closing = tokio::spawn(async move { closing.close().await });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        drop(release);
        let outcome = reading.await.unwrap();
        assert!(matches!(outcome, Err(ReadError::Closed)), "{outcome:?}");
        closing.await.unwrap();
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the tasks are awaited")]
    async fn reads_in_the_background_leave_a_thread_and_their_places_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = with_readers(&dir, 2);
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
        // One read is in progress, and the maximum of four wait behind it.
        let mut leased = Vec::new();
        for _ in 0..5 {
            let store = store.clone();
            let gate = gate.clone();
            let read = async move {
                store
                    .read(move |_| {
                        let _ = gate.lock().unwrap().recv();
                        Ok(())
                    })
                    .await
            };
            leased.push(tokio::spawn(in_background(read)));
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let refused = in_background(store.read(|_| Ok(()))).await;
        assert!(matches!(refused, Err(ReadError::Busy)), "{refused:?}");
        // Reads that a caller waits for are served meanwhile.
        for number in 0..10 {
            assert_eq!(store.read(move |_| Ok(number)).await.unwrap(), number);
        }
        drop(release);
        for read in leased {
            read.await.unwrap().unwrap();
        }
    }
}

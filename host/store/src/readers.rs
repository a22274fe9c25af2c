//! Threads that read, each with a read-only connection of its own, so that neither the writer nor the async runtime ever waits for a read.

use crate::open::{DataDir, OpenError, reader};
use crate::read::ReadError;
use crate::sql::Sql;
use rusqlite::{Connection, OpenFlags};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use tokio::sync::watch;

/// Something to read.
pub(crate) type Read = Box<dyn FnOnce(&Sql<'_>) + Send>;

/// Reads that wait for a thread. The threads end when it is dropped.
pub(crate) struct Readers(Arc<Queue>);

struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes one thread for each read.
    more: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct Waiting {
    reads: VecDeque<Read>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next read; none when there is none and there will be none.
    fn next(&self) -> Option<Read> {
        let mut waiting = self.lock();
        loop {
            if let Some(read) = waiting.reads.pop_front() {
                return Some(read);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("waiting_max", &self.0.waiting_max).finish_non_exhaustive()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.more.notify_all();
    }
}

impl Readers {
    /// Starts the threads.
    pub(crate) fn start(
        dir: &Arc<DataDir>,
        threads: usize,
        waiting_max: usize,
        alive: &watch::Receiver<()>,
    ) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let path = dir.database();
        let queue = Arc::new(Queue { waiting: Mutex::default(), more: Condvar::new(), waiting_max });
        let readers = Self(Arc::clone(&queue));
        let mut handles = Vec::with_capacity(threads);
        for number in 0..threads.max(1) {
            let connection = connect(&path).map_err(|error| OpenError::database(&path, error))?;
            let (queue, dir, alive) = (Arc::clone(&queue), Arc::clone(dir), alive.clone());
            let thread = Builder::new().name(format!("store-reader-{number}")).spawn(move || {
                read_all(&connection, &queue);
                // Whoever waits for the store to be closed may open it again as soon as nothing of it is open.
                drop(connection);
                drop(dir);
                drop(alive);
            });
            handles.push(thread.map_err(|error| OpenError::io("read by a thread", &path, error))?);
        }
        Ok((readers, handles))
    }

    /// Hands something to read to a thread that is free.
    pub(crate) fn ask(&self, read: Read) -> Result<(), ReadError> {
        let mut waiting = self.0.lock();
        if waiting.reads.len() >= self.0.waiting_max {
            return Err(ReadError::Busy);
        }
        waiting.reads.push_back(read);
        drop(waiting);
        self.0.more.notify_one();
        Ok(())
    }
}

/// A connection that cannot write.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    reader(&connection)?;
    Ok(connection)
}

fn read_all(connection: &Connection, queue: &Queue) {
    let sql = Sql::new(connection);
    while let Some(read) = queue.next() {
        // What panicked drops the channel on which its answer is awaited; the thread goes on.
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&sql))).is_err() {
            tracing::error!("a read of the store panicked");
            leave_transaction(connection);
        }
    }
}

/// Ends the transaction that a read was in when it panicked: in it, every further read would fail, and the log could not be shortened.
fn leave_transaction(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a thread that reads the store cannot go on: the process ends, so that it can be started again whole"
        );
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, ReadError, Store};

    #[tokio::test]
    async fn a_read_that_panics_fails_by_itself_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options { readers: 1, ..Options::default() }).unwrap();
        let panicked = store.read::<()>(|_| panic!("this is a test")).await;
        assert!(matches!(panicked, Err(ReadError::Closed)), "{panicked:?}");
        assert!(store.read(|sql| Ok(sql.connection().is_autocommit())).await.is_ok_and(|alone| !alone), "a transaction of its own");
    }
}

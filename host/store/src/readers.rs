//! Threads that read, each with a read-only connection of its own, so that neither the writer nor the async runtime ever waits for a read.

use crate::open::{DataDir, OpenError, reader};
use crate::read::ReadError;
use crate::sql::Sql;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use tokio::sync::watch;

/// Something to read.
pub(crate) type Read = Box<dyn FnOnce(&Sql<'_>) + Send>;

/// Starts the threads. They end when the sender that is returned is dropped.
pub(crate) fn start(
    dir: &Arc<DataDir>,
    threads: usize,
    waiting_max: usize,
    alive: &watch::Receiver<()>,
) -> Result<(SyncSender<Read>, Vec<JoinHandle<()>>), OpenError> {
    let path = dir.database();
    let (sender, receiver) = sync_channel(waiting_max);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut handles = Vec::with_capacity(threads);
    for number in 0..threads.max(1) {
        let connection = connect(&path).map_err(|error| OpenError::database(&path, error))?;
        let (receiver, dir, alive) = (Arc::clone(&receiver), Arc::clone(dir), alive.clone());
        let thread = Builder::new().name(format!("store-reader-{number}")).spawn(move || {
            read_all(&connection, &receiver);
            // Whoever waits for the store to be closed may open it again as soon as nothing of it is open.
            drop(connection);
            drop(dir);
            drop(alive);
        });
        handles.push(thread.map_err(|error| OpenError::io("read by a thread", &path, error))?);
    }
    Ok((sender, handles))
}

/// Hands something to read to a thread that is free.
pub(crate) fn ask(sender: &SyncSender<Read>, read: Read) -> Result<(), ReadError> {
    sender.try_send(read).map_err(|error| match error {
        TrySendError::Full(_) => ReadError::Busy,
        TrySendError::Disconnected(_) => ReadError::Closed,
    })
}

/// A connection that cannot write.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    reader(&connection)?;
    Ok(connection)
}

fn read_all(connection: &Connection, receiver: &Mutex<Receiver<Read>>) {
    let sql = Sql::new(connection);
    loop {
        // One thread waits for the next read, the others wait for their turn to wait.
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else { return };
        // What panicked drops the channel on which its answer is awaited; the thread goes on.
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&sql))).is_err() {
            tracing::error!("a read of the store panicked");
        }
    }
}

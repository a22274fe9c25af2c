//! Short reads of single rows on the caller's own thread.
//!
//! Reading a row whose pages are in memory takes some ten microseconds; handing it to another
//! thread takes several times that. So short reads run on the calling thread as long as they stay
//! short. A read that had to wait for the disk sends the next ones to the reader threads, where
//! waiting blocks no other work.

use crate::log::{Log, Watched};
use crate::open::{DataDir, OpenError};
use crate::panics::caught;
use crate::read::PANICKED;
use crate::readers::{connect_watched, leave_transaction};
use crate::sql::{self, Connection, Sql, unreadable};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

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

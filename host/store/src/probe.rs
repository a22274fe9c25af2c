//! Test read that finds out whether reads succeed.
//!
//! One probe runs at a time, however many requests arrive, and its result is reused for a moment: a
//! request for it needs no credential.

use crate::event_row::Head;
use crate::health::LastProbe;
use crate::store::Maintenance;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum milliseconds of a probe. A probe that takes longer has failed.
const PROBE_MS_MAX: u64 = 2_000;
/// Milliseconds for which the answer of a probe counts.
const FRESH_MS: u64 = 500;
/// Events from one read of a probe to the next: a prime, so that probes reach all parts of a
/// database.
const STRIDE: u64 = 10_007;

/// Extension of the file of the write-ahead log.
const LOG: &str = "db-wal";
/// Bytes of the log that are read to learn whether the disk fails.
const CHUNK_BYTES: usize = 512;

/// Returns whether the disk of a database fails to read. The probe reads a chunk of the log:
/// closing the database file itself would drop the locks that SQLite has on it.
pub(crate) fn is_failing(database: &Path) -> bool {
    let log = File::open(database.with_extension(LOG));
    let read = log.and_then(|log| log.read_at(&mut [0; CHUNK_BYTES], 0));
    read.is_err_and(|error| error.kind() != ErrorKind::NotFound)
}

impl Maintenance {
    /// Returns whether reads succeed at this moment: none has failed for some seconds, and a test
    /// read completes in time.
    pub async fn is_readable(&self) -> bool {
        if self.vitals().has_failed_to_read() {
            return false;
        }
        let probe = &self.vitals().probe;
        let mut last = probe.last.lock().await;
        let number = match *last {
            Some(found) if found.at.elapsed() < Duration::from_millis(FRESH_MS) => {
                return found.is_readable;
            }
            Some(found) => found.number + 1,
            None => 0,
        };
        let is_readable = self.try_reading(&probe.is_under_way, number).await;
        *last = Some(LastProbe {
            at: Instant::now(),
            is_readable,
            number,
        });
        is_readable
    }

    async fn try_reading(&self, is_under_way: &Arc<AtomicBool>, number: u64) -> bool {
        // Behind an unfinished probe, another would only wait as well.
        if is_under_way.swap(true, Ordering::Relaxed) {
            return false;
        }
        let done = Done(Arc::clone(is_under_way));
        let read = self.read(move |sql| {
            let _done = done;
            let last = Head::stored(sql)?.position;
            let position = number.wrapping_mul(STRIDE) % last.max(1) + 1;
            sql.exists(
                "SELECT 1 FROM events WHERE position = ?1 AND hash IS NOT NULL",
                [position],
            )
        });
        let in_time = tokio::time::timeout(Duration::from_millis(PROBE_MS_MAX), read).await;
        matches!(in_time, Ok(Ok(_)))
    }
}

/// Marks the end of a probe's read, whatever its result.
struct Done(Arc<AtomicBool>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn reads_that_do_not_come_back_are_noticed_and_then_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(
            dir.path(),
            Options {
                readers: 1,
                ..Options::default()
            },
        )
        .unwrap();
        assert!(store.is_readable().await);
        let (free, leased) = std::sync::mpsc::channel::<()>();
        let holding = store.clone();
        let mut holder = tokio::task::JoinSet::new();
        holder.spawn(async move {
            let waiting = move |_: &crate::sql::Sql<'_>| Ok(leased.recv().is_ok());
            holding.read(waiting).await
        });
        tokio::time::sleep(Duration::from_millis(super::FRESH_MS + 100)).await;
        assert!(!store.is_readable().await);
        // Repeated requests do not queue up behind it.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(super::FRESH_MS)).await;
            assert!(!store.is_readable().await);
        }
        drop(free);
        holder.join_next().await.unwrap().unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(super::FRESH_MS + 100)).await;
        assert!(store.is_readable().await);
    }
}

//! Checkpoints: moving the write-ahead log to the database, and having it start over.

use super::Writer;
use crate::fault;
use crate::log::{FULL_WAIT_MS, Length};
use crate::open::disown;
use crate::sql::{self, Failure};
use crate::sqlite::{BUSY_TIMEOUT, Checkpoint};
use crate::stats::count;
use std::time::Duration;
use std::{io, thread};

/// Pages in the write-ahead log after which they are moved to the database. SQLite would do this
/// before the commit returns; here it is done after the callers have their answer.
const CHECKPOINT_PAGES: usize = 4_000;
/// Time that commits wait for reads to leave a long log, in milliseconds.
const LONG_WAIT_MS: u64 = 20;
/// The pause between two polls whether they have left it, in milliseconds.
const POLL_MS: u64 = 2;
/// The shortest time from a try for which commits waited in vain, while nothing in the store was in
/// the way, to the next one, in milliseconds.
const LOCKED_PAUSE_MS: u64 = 5_000;

/// Reads for which commits have waited in vain while the log was full.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder {
    /// Reads of the store's own that had begun by then, in milliseconds of the log's clock. They
    /// end at their next check.
    Own { begun_by_ms: u64 },
    /// Reads of another program.
    Other(LockedLog),
}

/// A full log that another program's read keeps from starting over.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedLog {
    /// Frames of the log.
    frames: i32,
    /// Frames that could be moved to the database: those that the oldest read sees.
    moved: i32,
    /// The time, in milliseconds of the log's clock.
    at_ms: u64,
}

impl LockedLog {
    /// Returns whether another try may succeed: the oldest read has changed. A read of the store's
    /// own that began together with the other program's, at the end of the log, is
    /// indistinguishable from it. So one more try is made once the log has grown beyond both.
    fn is_over(self, now: Self) -> bool {
        let began_at_end = self.moved == self.frames;
        let is_another = now.moved != self.moved || (began_at_end && now.frames != self.frames);
        is_another && now.at_ms.saturating_sub(self.at_ms) >= LOCKED_PAUSE_MS
    }
}

impl Writer<'_> {
    pub(super) fn checkpoint_if_due(&mut self) {
        let pages = self.log.pages();
        // The log starts over once all of it was moved and no read uses it.
        if pages < self.state.checkpointed_pages {
            self.state.checkpointed_pages = 0;
        }
        let length = self.log.length();
        let is_urgent = length == Length::Full && (self.log.set_full() || self.is_let_go());
        if pages < self.state.checkpointed_pages + CHECKPOINT_PAGES && !is_urgent {
            return;
        }
        self.state.checkpointed_pages = pages;
        match length {
            Length::Short => self.checkpoint(Checkpoint::Passive),
            Length::Long => self.restart_log(Duration::from_millis(LONG_WAIT_MS)),
            Length::Full => self.restart_full_log(),
        }
    }

    /// Retries a failed checkpoint, also while no request arrives.
    pub(super) fn checkpoint_if_full(&mut self) {
        if self.log.is_full() {
            self.restart_full_log();
        }
    }

    /// Returns whether reads of the store's own that kept a full log from starting over have ended
    /// since.
    fn is_let_go(&self) -> bool {
        matches!(
            self.state.holder,
            Some(Holder::Own { begun_by_ms }) if !self.log.has_read_begun_by(begun_by_ms)
        )
    }

    /// Makes a full log start over. Reads of the store's own that would begin meanwhile wait. A
    /// read of another program cannot be ended. While it lasts, no read of the store's own is ended
    /// or delayed and no try waits: that would not help.
    fn restart_full_log(&mut self) {
        if let Some(holder) = self.state.holder {
            self.restart_log(Duration::ZERO);
            if !self.log.is_full() {
                return;
            }
            let may_succeed = match holder {
                Holder::Own { .. } => self.is_let_go(),
                Holder::Other(foreign_lock) => self
                    .inspect_reads()
                    .is_some_and(|now| foreign_lock.is_over(now)),
            };
            if !may_succeed {
                return;
            }
        }
        self.log.clear_reads();
        self.restart_log(Duration::from_millis(FULL_WAIT_MS));
        if self.log.is_full() {
            // No read begins any more. If none is in progress either, the last try fails because of
            // another program.
            let begun_by_ms = self.log.ms();
            if self.log.has_read_begun_by(begun_by_ms) {
                self.state.holder = Some(Holder::Own { begun_by_ms });
            } else {
                self.restart_log(Duration::ZERO);
                if self.log.is_full() {
                    self.log.spare_reads();
                    self.state.holder = self.inspect_reads().map(Holder::Other);
                }
            }
        }
        self.log.admit_reads();
    }

    /// Moves as much of the log as reads permit. The result shows where the oldest of them began;
    /// none if it fails.
    fn inspect_reads(&self) -> Option<LockedLog> {
        count(&self.counters.checkpoints, 1);
        let connection = self.sql.connection();
        let moved = connection.checkpoint(Checkpoint::Passive);
        moved.ok().map(|(frames, moved)| LockedLog {
            frames,
            moved,
            at_ms: self.log.ms(),
        })
    }

    /// Moves the log to the database and waits until no read uses it. The next commit then starts
    /// it over. Reads that begin once all of it is moved read the database, and are not in the way.
    fn restart_log(&mut self, patience: Duration) {
        fault::point("store.checkpoint");
        count(&self.counters.checkpoints, 1);
        let mut moved = self.try_to_restart();
        let mut waited = Duration::ZERO;
        while waited < patience && moved.as_ref().is_err_and(is_busy) {
            let pause = Duration::from_millis(POLL_MS);
            thread::sleep(pause);
            waited += pause;
            moved = self.try_to_restart();
        }
        match moved {
            Ok(()) => {
                fault::point("store.checkpoint");
                self.log.restarted();
                self.log.moved(None);
                self.state.checkpointed_pages = 0;
                self.state.holder = None;
            }
            // A read is in progress. It need not be reported as long as there is room.
            Err(error) if is_busy(&error) && !self.log.is_full() => self.log.moved(None),
            Err(error) => {
                // Tries that do not wait are many, and repeat what one that waited has found.
                if !patience.is_zero() {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        bytes = self.log.state().bytes,
                        "the log could not begin anew"
                    );
                }
                self.log.moved(Some(&error));
            }
        }
    }

    /// Does the same without waiting. SQLite reads the start of the blocking read only once, and
    /// keeps waiting if the next read has replaced that one at the next check. So it would wait in
    /// vain while reads follow each other.
    fn try_to_restart(&self) -> sql::Result<()> {
        let connection = self.sql.connection();
        let moved = connection
            .set_busy_timeout(Duration::ZERO)
            .and_then(|()| connection.checkpoint(Checkpoint::Restart));
        if let Err(error) = connection.set_busy_timeout(BUSY_TIMEOUT) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the writer does not wait for locks as it should"
            );
        }
        moved.map(drop)
    }

    /// Prevents a transaction whose end failed from being found in the log after a kill of this
    /// process. Its frames may be complete when only their sync failed. If this cannot be ensured,
    /// the process ends before any caller learns that nothing was stored.
    pub(super) fn disown(&self) {
        // Nobody else writes meanwhile.
        let locked = self.sql.execute("BEGIN IMMEDIATE", []);
        let disowned = unless_busy(locked)
            .and_then(|()| self.log.index())
            .and_then(|index| disown(self.log.path(), index));
        if let Err(error) = disowned {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a transaction failed at its end, and it is not certain that nothing of it is \
                 stored: the process ends, so that nobody is told so"
            );
            std::process::abort();
        }
        self.roll_back();
    }

    pub(super) fn checkpoint(&mut self, mode: Checkpoint) {
        fault::point("store.checkpoint");
        count(&self.counters.checkpoints, 1);
        match self.sql.connection().checkpoint(mode) {
            Ok(_) => {
                self.log.moved(None);
                fault::point("store.checkpoint");
            }
            Err(error) => {
                self.log.moved(Some(&error));
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the log could not be moved to the database"
                );
            }
        }
    }
}

fn is_busy(error: &sql::Error) -> bool {
    error.failure() == Some(Failure::Busy)
}

/// Fails if another process holds the lock under which the log is written. It may overwrite the
/// frames to be disowned, or release the lock and leave them there. A lock that cannot be taken for
/// another reason, such as a broken disk, is no other process's.
fn unless_busy(locked: sql::Result<usize>) -> io::Result<()> {
    match locked {
        Err(error) if is_busy(&error) => Err(io::Error::other(error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{LOCKED_PAUSE_MS, LockedLog, unless_busy};
    use crate::sql::{Columns, Connection};
    use std::time::Duration;

    #[test]
    fn nothing_is_disowned_while_somebody_else_may_write_to_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let [writer, other] = [(); 2].map(|()| Connection::open(&path).unwrap());
        writer
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .unwrap();
        writer.execute_batch("CREATE TABLE t (n)").unwrap();
        writer.set_busy_timeout(Duration::ZERO).unwrap();
        let locked = || writer.execute("BEGIN IMMEDIATE", []);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(unless_busy(locked()).is_err(), "they hold the lock");
        other.execute_batch("ROLLBACK; BEGIN").unwrap();
        let rows: u32 = other
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 0);
        assert!(unless_busy(locked()).is_ok(), "a read is not in the way");
        assert!(locked().is_err(), "it is in the transaction already");
        assert!(unless_busy(locked()).is_ok(), "and has the lock itself");
    }

    #[test]
    fn a_log_is_held_until_the_oldest_read_is_another_one() {
        let at = |frames, moved, at_ms| LockedLog {
            frames,
            moved,
            at_ms,
        };
        let later_ms = 100 * LOCKED_PAUSE_MS;
        let foreign_lock = at(50, 20, 0);
        assert!(!foreign_lock.is_over(at(90, 20, later_ms)), "it goes on");
        assert!(
            foreign_lock.is_over(at(90, 60, LOCKED_PAUSE_MS)),
            "it has ended"
        );
        assert!(
            !foreign_lock.is_over(at(90, 60, LOCKED_PAUSE_MS - 1)),
            "too early"
        );
        let at_end = at(50, 50, 0);
        assert!(!at_end.is_over(at(50, 50, later_ms)), "nothing is written");
        assert!(at_end.is_over(at(51, 50, later_ms)), "it may be another");
    }
}

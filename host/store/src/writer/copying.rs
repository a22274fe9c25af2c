//! Copying the database by the writer's own connection, piece by piece between commits.
//!
//! SQLite begins a copy anew when another connection than the one that copies writes, and a copy in
//! one reading transaction would keep the log from beginning anew for as long as it takes. What
//! this connection commits, however, goes to the pages that were copied before as well, so the copy
//! is the database as it is at the end, and nothing is held between two pieces.

use super::Writer;
use crate::fault;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Pages of one piece: commits wait for no more than that.
const PIECE_PAGES: i32 = 256;
/// Maximum number of tries of a piece that finds the database locked, with a pause in between.
/// Something else may be replacing rows in it.
const TRIES_MAX: u32 = 500;
/// The pause between two tries, in milliseconds.
const PAUSE_MS: u64 = 10;

impl Writer<'_> {
    /// Copies to a file that is empty. Ends with an error when the store is closed meanwhile.
    pub(super) fn copy(&mut self, to: &Path) -> rusqlite::Result<()> {
        let mut target = Connection::open(to)?;
        // It is synced when it is whole, and thrown away when it is not; and commits do not wait
        // for its disk.
        target.execute_batch("PRAGMA synchronous = OFF")?;
        let backup = Backup::new(self.sql.connection(), &mut target)?;
        let mut tries = 0;
        loop {
            let pause = match backup.step(PIECE_PAGES)? {
                StepResult::Done => return Ok(()),
                StepResult::Busy | StepResult::Locked if tries < TRIES_MAX => {
                    tries += 1;
                    Duration::from_millis(PAUSE_MS)
                }
                StepResult::Busy | StepResult::Locked => {
                    return Err(interrupted("the database stayed locked"));
                }
                // More, or what later versions of the library may say.
                _ => {
                    tries = 0;
                    Duration::ZERO
                }
            };
            fault::point("store.backup");
            // All that waits goes first.
            loop {
                match self.next(pause) {
                    Ok(request) => self.serve(request),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(interrupted("the store was closed"));
                    }
                }
            }
        }
    }
}

fn interrupted(reason: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT),
        Some(reason.to_owned()),
    )
}

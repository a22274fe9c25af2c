//! Copying the database by the writer's own connection, chunk by chunk between commits.
//!
//! SQLite restarts a copy when another connection than the copying one writes, and a copy in one
//! reading transaction would keep the log from starting over. Commits of the copying connection,
//! however, are also applied to the pages copied before. So the copy is the database as of its end,
//! and nothing is locked between two chunks.

use super::Writer;
use crate::fault;
use crate::sql::{self, Connection, Failure};
use crate::sqlite::{Copied, Durability};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Pages of one chunk, which bound the wait of commits.
const CHUNK_PAGES: i32 = 256;
/// Maximum number of tries of a chunk that finds the database locked, with a pause in between. A
/// rebuild may be replacing rows in it.
const TRIES_MAX: u32 = 500;
/// The pause between two tries, in milliseconds.
const PAUSE_MS: u64 = 10;

impl Writer<'_> {
    /// Copies to a file that is empty. Ends with an error when the store is closed meanwhile.
    pub(super) fn copy(&mut self, to: &Path) -> sql::Result<()> {
        let mut target = Connection::open(to)?;
        // It is synced once it is complete, and deleted otherwise. Commits do not wait for its
        // disk.
        target.sync(Durability::Off)?;
        let copy = self.sql.connection().copy_to(&mut target)?;
        let mut tries = 0;
        loop {
            let pause = match copy.step(CHUNK_PAGES)? {
                Copied::All => return Ok(()),
                Copied::Some => {
                    tries = 0;
                    Duration::ZERO
                }
                Copied::Nothing if tries < TRIES_MAX => {
                    tries += 1;
                    Duration::from_millis(PAUSE_MS)
                }
                Copied::Nothing => return Err(interrupted("the database stayed locked")),
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

fn interrupted(reason: &str) -> sql::Error {
    sql::Error::failed(Failure::Interrupted, reason)
}

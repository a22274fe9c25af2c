//! Numbers of stored objects, for the operator.

use super::ReadError;
use crate::sql;
use crate::store::Maintenance;

/// Numbers of stored objects, all at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Sessions that are open.
    pub open_sessions: u64,
    /// Sessions of which a run is open.
    pub running_sessions: u64,
    /// Inputs that wait, reminders that are not due included.
    pub waiting_inputs: u64,
    /// Dead letters.
    pub dead_inputs: u64,
    /// Bytes of the database, without its write-ahead log.
    pub database_bytes: u64,
}

impl Maintenance {
    /// Counts the stored objects. The time grows with the number of sessions.
    pub async fn counts(&self) -> Result<Counts, ReadError> {
        self.read(|sql| {
            let count = |text: &'static str| -> sql::Result<u64> {
                Ok(sql.one::<u64>(text, [])?.unwrap_or_default())
            };
            Ok(Counts {
                open_sessions: count("SELECT count(*) FROM sessions WHERE status = 'open'")?,
                running_sessions: count(
                    "SELECT count(*) FROM sessions WHERE open_run IS NOT NULL",
                )?,
                waiting_inputs: count("SELECT count(*) FROM inputs WHERE state = 'waiting'")?,
                dead_inputs: count("SELECT count(*) FROM inputs WHERE state = 'dead'")?,
                database_bytes: count(
                    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                )?,
            })
        })
        .await
    }
}

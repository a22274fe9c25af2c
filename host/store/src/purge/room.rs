//! Room: the remaining part of a bound on rows and on their bytes.
//!
//! A single row may be larger than the bound. So the last accepted row may exceed it, and the first
//! one always fits.

use super::{BYTES_PER_COMMIT_MAX, BYTES_READ};
use crate::sql::{self, Args, FromRow, Sql};

/// See the module.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) rows: usize,
    bytes: u64,
}

impl Room {
    /// Room for things of one sort in one transaction.
    pub(super) fn of_commit(rows: usize) -> Self {
        Self {
            rows,
            bytes: BYTES_PER_COMMIT_MAX,
        }
    }

    /// Room in a page of a scan.
    fn of_page(rows: usize) -> Self {
        Self {
            rows,
            bytes: BYTES_READ,
        }
    }

    /// Unbounded room, for data that are erased as a whole.
    pub(super) fn endless() -> Self {
        Self {
            rows: usize::MAX,
            bytes: u64::MAX,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Takes room for one thing of so many bytes.
    pub(super) fn take(&mut self, bytes: u64) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Reads rows while there is room, and returns whether they are all rows of the query. `bytes`
/// returns the size of each. The query's own limit has to be the room's.
pub(super) fn some_rows<T: FromRow>(
    sql: &Sql<'_>,
    text: &'static str,
    args: impl Args,
    mut room: Room,
    bytes: impl Fn(&T) -> u64,
) -> sql::Result<(Vec<T>, bool)> {
    sql.query(text, args, |rows| {
        let mut found = Vec::new();
        while !room.is_full() {
            let Some(row) = rows.next()? else {
                return Ok((found, true));
            };
            let one = T::from_row(sql, &row)?;
            room.take(bytes(&one));
            found.push(one);
        }
        Ok((found, false))
    })
}

/// Reads a page of at most so many rows, which is kept short by their bytes too.
pub(super) fn page_of<T: FromRow>(
    sql: &Sql<'_>,
    text: &'static str,
    args: impl Args,
    rows_max: usize,
    bytes: impl Fn(&T) -> u64,
) -> sql::Result<(Vec<T>, bool)> {
    some_rows(sql, text, args, Room::of_page(rows_max), bytes)
}

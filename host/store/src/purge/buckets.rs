//! Contents of buckets that go with their owner.

use super::{BYTES_PER_COMMIT_MAX, ROWS_PER_COMMIT_MAX, Tally};
use crate::projections::scope_name;
use crate::sql::{Columns, Sql, limit};
use domain::grant::BucketScope;
use rusqlite::params;

/// Erases what the buckets of one owner hold, as much as fits into one transaction. Returns whether
/// that is all. A bucket goes when it is empty, so that nobody looks at it again.
pub(super) fn erase_entries(
    sql: &Sql<'_>,
    scope: BucketScope,
    of: &str,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
    let text = "SELECT id FROM buckets WHERE scope = ?1 AND of = ?2 LIMIT ?3";
    let buckets = sql.rows(
        text,
        params![scope_name(scope), of, limit(ROWS_PER_COMMIT_MAX)],
        |row| row.get::<_, i64>(0),
    )?;
    let mut room = Room {
        entries: ROWS_PER_COMMIT_MAX,
        bytes: BYTES_PER_COMMIT_MAX,
    };
    for bucket in &buckets {
        if !empty(sql, *bucket, &mut room, tally)? {
            return Ok(false);
        }
        sql.execute("DELETE FROM buckets WHERE id = ?1", [bucket])?;
    }
    Ok(buckets.len() < ROWS_PER_COMMIT_MAX)
}

/// What a transaction may delete yet.
struct Room {
    entries: usize,
    bytes: u64,
}

/// Deletes entries of a bucket while there is room. Returns whether none is left.
fn empty(sql: &Sql<'_>, bucket: i64, room: &mut Room, tally: &mut Tally) -> rusqlite::Result<bool> {
    let entries = sql.rows(
        "SELECT rowid, length(value) FROM bucket_entries WHERE bucket = ?1 LIMIT ?2",
        params![bucket, limit(room.entries + 1)],
        |row| Ok((row.get::<_, i64>(0)?, row.uint(1)?)),
    )?;
    for (entry, bytes) in entries {
        if room.entries == 0 || room.bytes == 0 {
            return Ok(false);
        }
        sql.execute("DELETE FROM bucket_entries WHERE rowid = ?1", [entry])?;
        tally.erased.bucket_keys += 1;
        room.entries -= 1;
        room.bytes = room.bytes.saturating_sub(bytes);
    }
    Ok(true)
}

//! Contents of buckets, with their sizes.

use crate::sql::{Columns, Sql, int};
use domain::event::KeyValueWritten;
use domain::grant::{BucketPlace, BucketScope};
use rusqlite::params;

/// A scope as the table names it.
pub(crate) fn scope_name(scope: BucketScope) -> &'static str {
    match scope {
        BucketScope::Component => "component",
        BucketScope::User => "user",
        BucketScope::Agent => "agent",
        BucketScope::Session => "session",
    }
}

/// A call wrote. A bucket is there from its first write on, also when it is empty again: its
/// number, that of the event, is never another's.
pub(super) fn written(
    sql: &Sql<'_>,
    written: &KeyValueWritten,
    position: u64,
) -> rusqlite::Result<()> {
    let BucketPlace {
        component,
        bucket,
        scope,
        of,
    } = &written.place;
    let held = sql.row(
        "INSERT INTO buckets (component, bucket, scope, of, id) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (component, bucket, scope, of) DO UPDATE SET keys = buckets.keys \
         RETURNING id, keys, bytes",
        params![component, bucket, scope_name(*scope), of, int(position)],
        |row| Ok((row.get::<_, i64>(0)?, row.uint(1)?, row.uint(2)?)),
    )?;
    let Some((id, mut keys, mut bytes)) = held else {
        return Ok(());
    };
    for entry in &written.entries {
        if let Some(was) = needs_value_bytes(sql, id, &entry.key)? {
            keys = keys.saturating_sub(1);
            bytes = bytes.saturating_sub(entry.key.len() as u64 + was);
        }
        match entry.value.bytes() {
            Some(value) => {
                keys += 1;
                bytes += (entry.key.len() + value.len()) as u64;
                // In place: a row that is deleted and inserted moves, which writes more pages.
                sql.execute(
                    "INSERT INTO bucket_entries (bucket, key, value) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value",
                    params![id, entry.key, value],
                )?;
            }
            None => {
                sql.execute(
                    "DELETE FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
                    params![id, entry.key],
                )?;
            }
        }
    }
    sql.write(
        "UPDATE buckets SET keys = ?2, bytes = ?3 WHERE id = ?1",
        params![id, int(keys), int(bytes)],
    )
}

/// Returns the bytes of the value that a key has; none where it has none.
fn needs_value_bytes(sql: &Sql<'_>, bucket: i64, key: &str) -> rusqlite::Result<Option<u64>> {
    sql.row(
        "SELECT length(value) FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
        params![bucket, key],
        |row| row.uint(0),
    )
}

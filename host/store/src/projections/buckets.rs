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
        let was = sql.row(
            "DELETE FROM bucket_entries WHERE bucket = ?1 AND key = ?2 RETURNING length(value)",
            params![id, entry.key],
            |row| row.uint(0),
        )?;
        if let Some(was) = was {
            keys = keys.saturating_sub(1);
            bytes = bytes.saturating_sub(entry.key.len() as u64 + was);
        }
        if let Some(value) = entry.value.bytes() {
            keys += 1;
            bytes += (entry.key.len() + value.len()) as u64;
            sql.execute(
                "INSERT INTO bucket_entries (bucket, key, value) VALUES (?1, ?2, ?3)",
                params![id, entry.key, value],
            )?;
        }
    }
    sql.execute(
        "UPDATE buckets SET keys = ?2, bytes = ?3 WHERE id = ?1",
        params![id, int(keys), int(bytes)],
    )?;
    Ok(())
}

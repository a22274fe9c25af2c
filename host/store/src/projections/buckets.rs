//! Contents of buckets, with their sizes.

use crate::sql::{Columns, Sql, int};
use domain::event::KeyValueWritten;
use domain::grant::{BucketPlace, BucketScope};
use rusqlite::params;

/// A scope as the table names it.
pub(crate) fn scope_word(scope: BucketScope) -> &'static str {
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
    let place = params![component, bucket, scope_word(*scope), of];
    sql.execute(
        "INSERT INTO buckets (component, bucket, scope, of, id) VALUES (?1, ?2, ?3, ?4, ?5) ON \
         CONFLICT DO NOTHING",
        params![component, bucket, scope_word(*scope), of, int(position)],
    )?;
    let held = sql.row(
        "SELECT id, keys, bytes FROM buckets WHERE component = ?1 AND bucket = ?2 AND scope = ?3 \
         AND of = ?4",
        place,
        |row| Ok((row.get::<_, i64>(0)?, row.uint(1)?, row.uint(2)?)),
    )?;
    let Some((id, mut keys, mut bytes)) = held else {
        return Ok(());
    };
    for entry in &written.entries {
        let was = sql.row(
            "SELECT length(value) FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
            params![id, entry.key],
            |row| row.uint(0),
        )?;
        if let Some(was) = was {
            keys = keys.saturating_sub(1);
            bytes = bytes.saturating_sub(entry.key.len() as u64 + was);
        }
        match entry.value.bytes() {
            Some(value) => {
                keys += 1;
                bytes += (entry.key.len() + value.len()) as u64;
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
    sql.execute(
        "UPDATE buckets SET keys = ?2, bytes = ?3 WHERE id = ?1",
        params![id, int(keys), int(bytes)],
    )?;
    Ok(())
}

//! Contents of buckets, with their sizes.

use crate::sql::{self, Sql, args, named, upsert};
use domain::event::KeyValueWritten;
use domain::grant::{BucketPlace, BucketScope};

/// A scope as the table names it.
pub(crate) fn scope_name(scope: BucketScope) -> &'static str {
    match scope {
        BucketScope::Component => "component",
        BucketScope::User => "user",
        BucketScope::Agent => "agent",
        BucketScope::Session => "session",
    }
}

/// Records writes of a call. A bucket exists from its first write on, also when it is empty again.
/// Its number is that of the event, so it is never reused.
pub(super) fn written(sql: &Sql<'_>, written: &KeyValueWritten, position: u64) -> sql::Result<()> {
    let BucketPlace {
        component,
        bucket,
        scope,
        of,
    } = &written.place;
    let leased = sql.one::<(i64, u64, u64)>(
        "INSERT INTO buckets (component, bucket, scope, of, id) VALUES (:component, :bucket, \
         :scope, :owner, :position) ON CONFLICT (component, bucket, scope, of) DO UPDATE SET keys \
         = buckets.keys RETURNING id, keys, bytes",
        named![
            component,
            bucket,
            scope = scope_name(*scope),
            owner = of,
            position
        ],
    )?;
    let Some((id, mut keys, mut bytes)) = leased else {
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
                upsert!(
                    sql,
                    bucket_entries {
                        bucket: id,
                        key: entry.key
                    },
                    set { value }
                )?;
            }
            None => {
                sql.execute(
                    "DELETE FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
                    args![id, entry.key],
                )?;
            }
        }
    }
    sql.write(
        "UPDATE buckets SET keys = :keys, bytes = :bytes WHERE id = :id",
        named![id, keys, bytes],
    )
}

/// Returns the bytes of the value that a key has; none where it has none.
fn needs_value_bytes(sql: &Sql<'_>, bucket: i64, key: &str) -> sql::Result<Option<u64>> {
    sql.one::<u64>(
        "SELECT length(value) FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
        args![bucket, key],
    )
}

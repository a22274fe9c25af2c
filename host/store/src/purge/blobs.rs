//! Blobs after an erasure: the streams that still name them, and deletion of those that are not
//! named any more.

use super::{BYTES_PER_COMMIT_MAX, ROWS_PER_COMMIT_MAX, Tally};
use crate::EMPTY_STATE;
use crate::sql::{self, Sql, args};
use crate::streams;
use crate::user_storage;
use domain::digest::Digest;
use domain::id::Stream;

/// Blobs that are checked in one transaction.
const BLOBS_PER_COMMIT_MAX: usize = 256;

/// Marks blobs of a stream whose naming events are erased to be checked, as many as fit into one
/// transaction. Returns whether all are marked.
pub(super) fn named_no_more(sql: &Sql<'_>, stream: Stream) -> sql::Result<bool> {
    let stream = streams::number(sql, stream)?;
    let named = sql.all::<Digest>(
        "SELECT digest FROM blob_references WHERE stream = ?1 LIMIT ?2",
        args![stream, ROWS_PER_COMMIT_MAX],
    )?;
    for digest in &named {
        not_named_by(sql, stream, *digest)?;
    }
    Ok(named.len() < ROWS_PER_COMMIT_MAX)
}

/// Marks a blob to be checked that a stream no longer names.
pub(super) fn not_named_by(sql: &Sql<'_>, stream: Option<i64>, digest: Digest) -> sql::Result<()> {
    inspect(sql, digest)?;
    sql.write(
        "DELETE FROM blob_references WHERE stream = ?1 AND digest = ?2",
        args![stream, digest],
    )
}

fn inspect(sql: &Sql<'_>, digest: Digest) -> sql::Result<()> {
    sql.write(
        "INSERT INTO blobs_to_inspect (digest) VALUES (?1) ON CONFLICT DO NOTHING",
        [digest],
    )
}

/// Notes which of the blobs that a commit brought nothing names: they go with the next purge, as
/// they always did.
pub(crate) fn inspect_unnamed(sql: &Sql<'_>, brought: &[Digest]) -> sql::Result<()> {
    for digest in brought {
        if !is_named(sql, *digest)? {
            inspect(sql, *digest)?;
        }
    }
    Ok(())
}

fn is_named(sql: &Sql<'_>, digest: Digest) -> sql::Result<bool> {
    sql.exists("SELECT 1 FROM blob_references WHERE digest = ?1", [digest])
}

/// Checks some of the marked blobs and deletes those that are not named. Returns whether none is
/// left to check. The cost of each does not depend on how much is stored.
pub(super) fn erase_unnamed(sql: &Sql<'_>, tally: &mut Tally) -> sql::Result<bool> {
    let inspected = sql.all::<Digest>(
        "SELECT digest FROM blobs_to_inspect LIMIT ?1",
        [BLOBS_PER_COMMIT_MAX],
    )?;
    let mut deleted_bytes = 0;
    for (at, digest) in inspected.iter().enumerate() {
        if deleted_bytes >= BYTES_PER_COMMIT_MAX && at > 0 {
            return Ok(false);
        }
        let is_kept = *digest == Digest::of(EMPTY_STATE) || is_named(sql, *digest)?;
        if !is_kept
            && let Some(bytes) = sql.one::<u64>(
                "SELECT length(bytes) FROM blobs WHERE digest = ?1",
                [digest],
            )?
        {
            user_storage::erases_blob(sql, &digest.0)?;
            sql.execute("DELETE FROM blobs WHERE digest = ?1", [digest])?;
            deleted_bytes += bytes;
            tally.erased.blobs += 1;
            tally.erased.blob_bytes += bytes;
        }
        sql.execute("DELETE FROM blobs_to_inspect WHERE digest = ?1", [digest])?;
    }
    Ok(inspected.len() < BLOBS_PER_COMMIT_MAX)
}

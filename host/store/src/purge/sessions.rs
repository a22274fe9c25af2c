//! Purge of a session's data beside its runs: inputs, items, files, buckets of tools, names, and
//! requests about it.

use super::buckets::erase_entries;
use super::runs::remove_input;
use super::searchable_rows::forget;
use super::streams::note_loss;
use super::{BEHIND_ALL, EVENTS_PER_COMMIT_MAX, Tally, erase_event};
use crate::projections::needs_snippet;
use crate::sql::{Columns, Sql, int, limit};
use crate::user_storage;
use domain::digest::Digest;
use domain::grant::BucketScope;
use domain::id::{RunId, SessionId};
use rusqlite::params;

/// Remembered requests that one transaction forgets.
pub(super) const REQUESTS_PER_COMMIT_MAX: u64 = 256;

/// Erases what fits into one transaction of a session, of its events those after this version.
/// Returns the version up to which nothing is left to erase; none when that is all. Turns keep
/// their places in the tree: a commitment to a turn's messages says nothing without them.
pub(super) fn erase(
    sql: &Sql<'_>,
    session: SessionId,
    after: u64,
    tally: &mut Tally,
) -> rusqlite::Result<Option<u64>> {
    let id = session.to_string();
    let stream = format!("session/{id}");
    let events = sql.rows(
        "SELECT version, position, iif(kind = 'session.input.accepted.v1', \
         json_extract(CAST(payload AS TEXT), '$.input'), NULL) FROM events WHERE stream = ?1 AND \
         version > ?2 AND payload IS NOT NULL AND kind NOT IN ('session.turn.committed.v1', \
         'session.turns.imported.v1', 'session.cleared.v1', 'session.deleted.v1', \
         'purge.begun.v1', 'purge.done.v1') ORDER BY version LIMIT ?3",
        params![stream, int(after), limit(EVENTS_PER_COMMIT_MAX)],
        |row| Ok((row.uint(0)?, row.uint(1)?, row.get::<_, Option<String>>(2)?)),
    )?;
    for (_, position, input) in &events {
        if let Some(input) = input {
            remove_input(sql, input)?;
        }
        erase_event(sql, *position, tally)?;
    }
    if let Some((version, ..)) = events.get(EVENTS_PER_COMMIT_MAX - 1) {
        return Ok(Some(*version));
    }
    let requests = forget_requests(sql, &id)?;
    tally.erased.requests += requests;
    if requests >= REQUESTS_PER_COMMIT_MAX {
        return Ok(Some(BEHIND_ALL));
    }
    // Turns that stay are found through those that they stay for.
    let committed =
        "SELECT position FROM events WHERE stream = ?1 AND kind = 'session.turn.committed.v1'";
    for position in sql.rows(committed, [&stream], |row| row.uint(0))? {
        forget(sql, position, usize::MAX)?;
    }
    if !erase_buckets(sql, &id, tally)? {
        return Ok(Some(BEHIND_ALL));
    }
    for text in [
        "DELETE FROM items WHERE session = ?1",
        "DELETE FROM files WHERE session = ?1",
        "DELETE FROM wakes WHERE subject = ?1",
        "DELETE FROM operations WHERE session = ?1",
        "DELETE FROM spawned WHERE session = ?1",
        "DELETE FROM snapshots WHERE stream = 'session/' || ?1",
    ] {
        sql.execute(text, [&id])?;
    }
    note_loss(sql, &stream)?;
    snippets_again(sql, &id)?;
    Ok(None)
}

/// Forgets requests that are remembered under a key, with what was answered; how many, of which
/// there are more when they are as many as one transaction forgets. Those of versions that did not
/// say what they are about, by what was answered: there are none a week after those.
pub(super) fn forget_requests(sql: &Sql<'_>, about: &str) -> rusqlite::Result<u64> {
    let text = "DELETE FROM idempotency WHERE (source, key) IN (SELECT source, key FROM \
                idempotency WHERE about = ?1 LIMIT ?2) RETURNING source, length(reply), brought_with";
    let forgotten =
        user_storage::erases_replies(sql, text, params![about, int(REQUESTS_PER_COMMIT_MAX)])?;
    let text = "DELETE FROM idempotency WHERE about IS NULL AND instr(reply, CAST(?1 AS BLOB)) > 0 \
                RETURNING source, length(reply), brought_with";
    Ok(forgotten + user_storage::erases_replies(sql, text, [about])?)
}

/// Erases the buckets of tools in a session, and what they wrote of it in turns that stay. Returns
/// whether that is all.
fn erase_buckets(sql: &Sql<'_>, session: &str, tally: &mut Tally) -> rusqlite::Result<bool> {
    let writes = "SELECT e.position FROM runs r CROSS JOIN events e ON e.stream = 'run/' || r.id \
                  WHERE r.session = ?1 AND e.kind = 'keyvalue.written.v1' AND e.payload IS NOT \
                  NULL AND json_extract(CAST(e.payload AS TEXT), '$.place.scope') = 'session'";
    for position in sql.rows(writes, [session], |row| row.uint(0))? {
        erase_event(sql, position, tally)?;
    }
    erase_entries(sql, BucketScope::Session, session, tally)
}

/// Other sessions that were deleted may show the beginning of what is gone.
fn snippets_again(sql: &Sql<'_>, session: &str) -> rusqlite::Result<()> {
    let others = "SELECT s.id, s.head FROM turns t CROSS JOIN sessions s ON s.head = t.id WHERE \
                  s.status = 'deleted' AND NOT s.purged AND t.root IN (SELECT root FROM turns \
                  WHERE session = ?1 UNION SELECT t.root FROM sessions s JOIN turns t ON t.id = \
                  s.head WHERE s.id = ?1)";
    for (other, head) in sql.rows(others, [session], |row| {
        Ok((row.get::<_, String>(0)?, row.digest(1)?))
    })? {
        let shown = last_shown(sql, &other, head)?;
        sql.execute(
            "UPDATE sessions SET last_snippet = ?2 WHERE id = ?1 AND last_snippet IS NOT ?2",
            params![other, shown],
        )?;
    }
    Ok(())
}

/// Returns the snippet of a session: the last reply of its own turns, or of the turn that it was
/// forked from.
fn last_shown(sql: &Sql<'_>, session: &str, head: Digest) -> rusqlite::Result<Option<String>> {
    let mut at = Some(head);
    while let Some(turn) = at {
        let text = "SELECT run, session, parent FROM turns WHERE id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok((
                row.id::<RunId>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.digest_opt(2)?,
            ))
        };
        let Some((run, made_in, parent)) = sql.row(text, [turn.0], read)? else {
            return Ok(None);
        };
        let shown = needs_snippet(sql, run)?;
        if shown.is_some() || made_in.as_deref() != Some(session) {
            return Ok(shown);
        }
        at = parent;
    }
    Ok(None)
}

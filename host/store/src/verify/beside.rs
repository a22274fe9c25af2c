//! What is kept beside the events: blobs are what their digests say, and projections are what the events say.

use crate::event_row::{self, event_columns};
use crate::projections::project;
use crate::schema::{self, PROJECTIONS};
use crate::sql::{Columns, Sql, int, limit};
use domain::digest::Digest;
use rusqlite::{Connection, params};

/// Events that are folded at a time.
const CHUNK_EVENTS: usize = 256;

/// The first thing that is not as it was stored, if there is one. Sees one state of the store, so it has to run in a transaction or alone.
/// Projections are compared only while no payload is erased: what they held of it cannot be folded again.
pub(super) fn problem(sql: &Sql<'_>, erased: u64) -> rusqlite::Result<Option<String>> {
    if let Some(problem) = damage(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = changed_blob(sql)? {
        return Ok(Some(problem));
    }
    if erased > 0 { Ok(None) } else { changed_projection(sql) }
}

/// What the database itself finds wrong with its pages and indices.
fn damage(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    // Table by table, because the words that recall finds are an index of SQLite's own kind, which is made again from the rest if need be.
    let tables: Vec<String> = sql.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'recall_index%' AND name NOT LIKE 'sqlite%'",
        [],
        |row| row.get(0),
    )?;
    for table in tables {
        let found: String = sql.connection().query_row(&format!("PRAGMA integrity_check({table})"), [], |row| row.get(0))?;
        if found != "ok" {
            return Ok(Some(format!("the database is damaged: {found}")));
        }
    }
    Ok(None)
}

fn changed_blob(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    let mut blobs = sql.connection().prepare("SELECT digest, bytes FROM blobs")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
        let digest = row.digest(0)?;
        if Digest::of(bytes) != digest {
            return Ok(Some(format!("the blob {} is not what its digest says", digest.short())));
        }
    }
    Ok(None)
}

/// Folds all events once more, into a database of their own that goes with this call, and compares.
fn changed_projection(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    // A private database without a name: SQLite keeps it in memory as long as it is small, then in a temporary file.
    let mut again = Connection::open("")?;
    schema::migrate(&mut again, "")?;
    again.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
    let folded = Sql::new(&again);
    let mut position = 0;
    loop {
        let events = sql.rows(
            concat!("SELECT ", event_columns!(), " FROM events WHERE position > ?1 ORDER BY position LIMIT ?2"),
            params![int(position), limit(CHUNK_EVENTS)],
            event_row::read,
        )?;
        let Some(last) = events.last() else { break };
        position = last.position;
        for recorded in &events {
            project(&folded, recorded)?;
        }
    }
    if !same_rows(sql.connection(), &again, "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2")? {
        return Ok(Some("the layout of the database was changed".to_owned()));
    }
    for table in PROJECTIONS {
        // Two columns name a row in each of these tables.
        if !same_rows(sql.connection(), &again, &format!("SELECT * FROM {table} ORDER BY 1, 2"))? {
            return Ok(Some(format!("the table `{table}` is not what the events say; the events themselves are whole")));
        }
    }
    Ok(None)
}

/// Whether two databases give the same rows.
fn same_rows(left: &Connection, right: &Connection, text: &str) -> rusqlite::Result<bool> {
    let (mut left, mut right) = (left.prepare(text)?, right.prepare(text)?);
    let columns = left.column_count();
    let (mut left, mut right) = (left.query([])?, right.query([])?);
    loop {
        match (left.next()?, right.next()?) {
            (None, None) => return Ok(true),
            (Some(left), Some(right)) => {
                for column in 0..columns {
                    if left.get_ref(column)? != right.get_ref(column)? {
                        return Ok(false);
                    }
                }
            }
            (Some(_), None) | (None, Some(_)) => return Ok(false),
        }
    }
}

//! Verification of the data beside the events: blobs match their digests, and projections match the
//! events.

use super::turns;
use crate::EMPTY_STATE;
use crate::projections::{PROJECTIONS, fold};
use crate::purge;
use crate::schema;
use crate::sql::{Columns, Sql};
use domain::digest::Digest;
use rusqlite::{Connection, Row};

/// The first thing that is not as it was stored, if there is one. Sees one state of the store, so
/// it has to run in a transaction or alone. Projections are compared unless a purge is under way:
/// it leaves what folding the events gives only at its end.
pub(crate) fn problem(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    if let Some(problem) = damage(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = changed_blob(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = turns::problem(sql)? {
        return Ok(Some(problem));
    }
    if purge::is_any_open(sql)? {
        return Ok(None);
    }
    match changed_projection(sql)? {
        Some(problem) => Ok(Some(problem)),
        None => missing_blob(sql),
    }
}

/// Returns the damage that SQLite itself finds in its pages and indices.
fn damage(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    // The check of the full-text index goes by what this connection last saw of the index's
    // structure, and takes a later commit for damage (SQLite 3.54's `fts5IntegrityMethod` leaves
    // out what every search does first: looking whether the structure is still the same). So a
    // search goes before it.
    for search in [
        "SELECT 1 FROM recall_index WHERE recall_index MATCH 'body : \"\"'",
        "SELECT 1 FROM notes_index WHERE notes_index MATCH 'body : \"\"'",
    ] {
        sql.exists(search, [])?;
    }
    let found: String = sql
        .connection()
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((found != "ok").then(|| format!("the database is damaged: {found}")))
}

fn changed_blob(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    let mut blobs = sql
        .connection()
        .prepare("SELECT digest, bytes FROM blobs")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
        let digest = row.digest(0)?;
        if Digest::of(bytes) != digest {
            return Ok(Some(format!(
                "the blob {} is not what its digest says",
                digest.short()
            )));
        }
    }
    Ok(None)
}

/// Goes by the projection that tells which stream names which blobs, so that one has to be right.
/// It leaves out the empty state.
fn missing_blob(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    let missing = sql.row(
        "SELECT named.digest, named.stream FROM (SELECT digest, stream FROM blob_references UNION \
         ALL SELECT ?1, 'session/*') named \
         LEFT JOIN blobs ON blobs.digest = named.digest WHERE blobs.digest IS NULL LIMIT 1",
        [Digest::of(EMPTY_STATE).0],
        |row| Ok((row.digest(0)?, row.get::<_, String>(1)?)),
    )?;
    Ok(missing.map(|(digest, stream)| {
        format!(
            "the blob {} is missing that the stream `{stream}` names",
            digest.short()
        )
    }))
}

/// Folds all events once more, into a database of their own that goes with this call, and compares.
fn changed_projection(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    // A private database without a name: SQLite keeps it in memory as long as it is small, then in
    // a temporary file.
    let mut again = Connection::open("")?;
    schema::migrate(&mut again, "")?;
    again.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
    fold::fold_after(0, sql, &Sql::new(&again), &mut |_| ())?;
    if !same_rows(
        sql.connection(),
        &again,
        "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2",
    )? {
        return Ok(Some("the layout of the database was changed".to_owned()));
    }
    for table in PROJECTIONS {
        let key = key_of(&again, table)?;
        if !same_rows(
            sql.connection(),
            &again,
            &format!("SELECT * FROM {table} ORDER BY {key}"),
        )? {
            return Ok(Some(format!(
                "the table `{table}` is not what the events say; the events themselves are whole"
            )));
        }
    }
    Ok(None)
}

/// Returns the columns that name a row in a table.
fn key_of(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let text = "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
    let mut statement = connection.prepare(text)?;
    let columns: Vec<String> = statement
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(columns.join(", "))
}

/// Returns whether two databases give the same rows.
pub(crate) fn same_rows(
    left: &Connection,
    right: &Connection,
    text: &str,
) -> rusqlite::Result<bool> {
    let mut left = left.prepare(text)?;
    let mut right = right.prepare(text)?;
    let columns = left.column_count();
    let mut left = left.query([])?;
    let mut right = right.query([])?;
    loop {
        match (left.next()?, right.next()?) {
            (None, None) => return Ok(true),
            (Some(one), Some(other)) if same_row(one, other, columns)? => {}
            _ => return Ok(false),
        }
    }
}

/// Returns whether two rows have the same values.
pub(crate) fn same_row(one: &Row<'_>, other: &Row<'_>, columns: usize) -> rusqlite::Result<bool> {
    for column in 0..columns {
        if one.get_ref(column)? != other.get_ref(column)? {
            return Ok(false);
        }
    }
    Ok(true)
}

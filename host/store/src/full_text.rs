//! Full-text index, which follows the searchable rows with a delay.
//!
//! Nothing but search rests on it, so no commit waits for text to be split into words. A cursor
//! says up to which row the index has them, and the writer advances it between commits, many rows
//! at once, without a sync of its own. A search first has the index brought up to date. A crash
//! leaves the cursor where the index is, because both are written together.

use crate::fault;
use crate::meta;
use crate::panics::caught;
use crate::projections::{indexed_body, owner_token};
use crate::sql::{Columns, Sql, int};
use domain::id::AgentId;
use domain::message::Message;
use rusqlite::params;

/// Rows that are indexed in one transaction.
pub(crate) const ROWS_MAX: u64 = 256;
/// Bytes of text after which no further row is indexed in the same transaction.
const BYTES_MAX: usize = 256 << 10;
/// Name of the note of the last row that was indexed.
const INDEXED: &str = "indexed";

/// The words of a row.
pub(crate) struct Words {
    /// The agent that they belong to.
    pub(crate) agent: AgentId,
    /// The text.
    pub(crate) text: String,
    /// True if they are a note's, which the index of notes has as well.
    pub(crate) is_note: bool,
}

/// The last row that was indexed, or had nothing to be indexed; 0 before the first.
pub(crate) fn cursor(sql: &Sql<'_>) -> rusqlite::Result<i64> {
    Ok(sql
        .row(
            "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'indexed'",
            [],
            |row| row.get(0),
        )?
        .unwrap_or(0))
}

/// Returns whether there are rows that the index does not have.
pub(crate) fn is_behind(sql: &Sql<'_>) -> rusqlite::Result<bool> {
    let text = "SELECT 1 FROM recall WHERE id > coalesce((SELECT CAST(value AS INTEGER) FROM meta \
                WHERE name = 'indexed'), 0) LIMIT 1";
    sql.exists(text, [])
}

/// Returns whether the index has a row. It lacks rows without words, and those over whose words
/// the host panicked.
pub(crate) fn has(sql: &Sql<'_>, id: i64) -> rusqlite::Result<bool> {
    sql.exists("SELECT 1 FROM recall_index_docsize WHERE id = ?1", [id])
}

/// Indexes the next rows, none of which comes after `last`, and returns whether that was all. Runs
/// within an open transaction.
///
/// A row over which this panics is passed over, and not found. Otherwise it would end the process
/// at every start.
pub(crate) fn index_some(sql: &Sql<'_>, last: i64) -> rusqlite::Result<bool> {
    let before = cursor(sql)?;
    let ids: Vec<i64> = sql.rows(
        "SELECT id FROM recall WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
        params![before, last, int(ROWS_MAX)],
        |row| row.get(0),
    )?;
    let mut bytes = 0;
    let mut indexed = before;
    for id in &ids {
        if bytes >= BYTES_MAX {
            break;
        }
        // Nothing that panics comes between the statements that write a row, so no half of it is
        // left to undo.
        match caught(|| index_row(sql, *id)) {
            Ok(added) => bytes += added?,
            Err(panic) => tracing::error!(
                row = *id,
                panic,
                "the host panicked over words that were to be indexed: they are not found"
            ),
        }
        indexed = *id;
    }
    if indexed > before {
        meta::note(sql, INDEXED, &indexed.to_string())?;
    }
    Ok(ids.last().is_none_or(|last| *last == indexed) && (ids.len() as u64) < ROWS_MAX)
}

/// Indexes a row, and returns the bytes of its words.
fn index_row(sql: &Sql<'_>, id: i64) -> rusqlite::Result<usize> {
    let Some(words) = readable(words_of(sql, id), id)? else {
        return Ok(0);
    };
    let text = &words.text;
    fault::index(text);
    let owner = owner_token(words.agent);
    let put = "INSERT INTO recall_index (rowid, agent, body) VALUES (?1, ?2, ?3)";
    sql.execute(put, params![id, owner, indexed_body(text)])?;
    if words.is_note {
        let put = "INSERT INTO notes_index (rowid, agent, body) VALUES (?1, ?2, ?3)";
        sql.execute(put, params![id, owner, indexed_body(text)])?;
    }
    Ok(text.len())
}

/// Returns the words of a row, or none where they cannot be read. The rows after it are still
/// found.
fn readable(words: rusqlite::Result<Option<Words>>, id: i64) -> rusqlite::Result<Option<Words>> {
    match words {
        Err(error) if error.sqlite_error_code().is_none() => {
            tracing::warn!(
                row = id,
                error = &error as &dyn std::error::Error,
                "words that cannot be read are not indexed"
            );
            Ok(None)
        }
        words => words,
    }
}

/// Indexes all rows up to one, within a transaction that is open.
pub(crate) fn index_through(sql: &Sql<'_>, last: i64) -> rusqlite::Result<()> {
    while !index_some(sql, last)? {}
    Ok(())
}

pub(crate) fn clear(sql: &Sql<'_>) -> rusqlite::Result<()> {
    sql.execute(
        "INSERT INTO recall_index (recall_index) VALUES ('delete-all')",
        [],
    )?;
    clear_notes(sql)?;
    meta::remove(sql, INDEXED)
}

/// Clears the index of notes, if it has none any more: one that lost its last words is not quite as
/// one that never had any.
pub(crate) fn clear_empty_notes(sql: &Sql<'_>) -> rusqlite::Result<()> {
    if sql.exists("SELECT 1 FROM notes_index_docsize", [])? {
        return Ok(());
    }
    clear_notes(sql)
}

fn clear_notes(sql: &Sql<'_>) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO notes_index (notes_index) VALUES ('delete-all')",
        [],
    )
}

/// Returns the words of a row; none where the row has no text.
pub(crate) fn words_of(sql: &Sql<'_>, id: i64) -> rusqlite::Result<Option<Words>> {
    let found = sql.row(
        "SELECT r.agent, r.note, m.message FROM recall r LEFT JOIN messages m ON m.run = r.run AND \
         m.id = r.message WHERE r.id = ?1",
        [id],
        |row| {
            let agent: Option<AgentId> = row.id_opt(0)?;
            let note: Option<String> = row.get(1)?;
            let message: Option<Message> = row.json_opt(2)?;
            let is_note = note.is_some();
            let text = note.or_else(|| message.map(|message| message.text()));
            Ok(agent.zip(text).map(|(agent, text)| Words {
                agent,
                text,
                is_note,
            }))
        },
    )?;
    Ok(found
        .flatten()
        .filter(|words| !words.text.trim().is_empty()))
}

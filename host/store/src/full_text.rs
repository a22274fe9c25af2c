//! Full-text index, which follows the searchable rows with a delay.
//!
//! Only search depends on it, so no commit waits for text to be split into words. A cursor marks
//! the last indexed row. The writer advances it between commits, many rows at once, without a sync
//! of its own. A search first has the index brought up to date. After a crash the cursor and the
//! index still match, because both are written together.

use crate::fault;
use crate::meta;
use crate::panics::caught;
use crate::projections::{ROWS_OF_EVENT, indexed_body, owner_token};
use crate::sql::{self, Connection, Failure, Sql, insert, named, row, select};
use domain::id::AgentId;
use domain::message::Message;

/// Rows that are indexed in one transaction.
pub(crate) const ROWS_MAX: u64 = 256;
/// Bytes of text after which no further row is indexed in the same transaction.
const BYTES_MAX: usize = 256 << 10;
/// Name of the note of the last row that was indexed.
const INDEXED: &str = "indexed";

/// Rows of one event that have short numbers in the indices: an index stores the distances between
/// numbers, for each word. The others have their own numbers, behind `FAR`.
const NEAR_ROWS: i64 = 16;
const FAR: i64 = 1 << 62;
/// In a statement, the number of a row in its table, by its number in an index.
macro_rules! row_of {
    ($index:literal) => {
        concat!(
            $index,
            " JOIN recall r ON r.id = CASE WHEN ",
            $index,
            ".rowid < 4611686018427387904 THEN ",
            $index,
            ".rowid / 16 * 1048576 + ",
            $index,
            ".rowid % 16 ELSE ",
            $index,
            ".rowid - 4611686018427387904 END"
        )
    };
}

/// In a statement, the rows `r` that have any of `:words`, and their rank: the less, the better.
pub(crate) struct Search {
    pub(crate) found: &'static str,
    pub(crate) matches: &'static str,
    pub(crate) rank: &'static str,
}

/// Messages of committed turns, and notes.
pub(crate) const ALL: Search = Search {
    found: row_of!("recall_index"),
    matches: "recall_index MATCH :words",
    rank: "bm25(recall_index, 1.0, 0.0)",
};
/// The notes, in an index of their own.
pub(crate) const NOTES: Search = Search {
    found: row_of!("notes_index"),
    matches: "notes_index MATCH :words",
    rank: "bm25(notes_index, 1.0, 0.0)",
};

/// The words of a row.
pub(crate) struct Words {
    /// The agent that they belong to.
    pub(crate) agent: AgentId,
    /// The text.
    pub(crate) text: String,
    /// True if they are a note's, which the index of notes has as well.
    pub(crate) is_note: bool,
}

/// Returns the number of a row in the indices.
fn number_of(id: i64) -> i64 {
    let place = id % ROWS_OF_EVENT;
    if place < NEAR_ROWS {
        id / ROWS_OF_EVENT * NEAR_ROWS + place
    } else {
        FAR + id
    }
}

/// Returns the last row that was indexed or had no words; 0 before the first.
pub(crate) fn cursor(sql: &Sql<'_>) -> sql::Result<i64> {
    Ok(sql
        .one(
            "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'indexed'",
            [],
        )?
        .unwrap_or(0))
}

/// Returns whether there are rows that the index does not have.
pub(crate) fn is_behind(sql: &Sql<'_>) -> sql::Result<bool> {
    let text = "SELECT 1 FROM recall WHERE id > coalesce((SELECT CAST(value AS INTEGER) FROM meta \
                WHERE name = 'indexed'), 0) LIMIT 1";
    sql.exists(text, [])
}

/// Returns whether the index has a row. It lacks rows without words, and rows whose words made the
/// host panic.
pub(crate) fn has(sql: &Sql<'_>, id: i64) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM recall_index_docsize WHERE id = ?1",
        [number_of(id)],
    )
}

/// Indexes the next rows up to `last`, and returns whether all of them are done. Runs within an
/// open transaction.
///
/// A row whose indexing panics is skipped, and searches do not find it. Otherwise it would end the
/// process at every start.
pub(crate) fn index_some(sql: &Sql<'_>, last: i64) -> sql::Result<bool> {
    let before = cursor(sql)?;
    let ids: Vec<i64> = sql.all(
        "SELECT id FROM recall WHERE id > :id AND id <= :last ORDER BY id LIMIT :limit",
        named![id = before, last, limit = ROWS_MAX],
    )?;
    let mut bytes = 0;
    let mut indexed = before;
    for id in &ids {
        if bytes >= BYTES_MAX {
            break;
        }
        // Nothing between the statements that write a row can panic, so a half-written row never
        // has to be undone.
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
fn index_row(sql: &Sql<'_>, id: i64) -> sql::Result<usize> {
    let Some(words) = readable(words_of(sql, id), id)? else {
        return Ok(0);
    };
    let text = &words.text;
    fault::index(text);
    let owner = owner_token(words.agent);

    insert!(
        sql,
        recall_index {
            rowid: number_of(id),
            agent: owner,
            body: indexed_body(text)
        }
    )?;
    if words.is_note {
        insert!(
            sql,
            notes_index {
                rowid: number_of(id),
                agent: owner,
                body: indexed_body(text)
            }
        )?;
    }
    Ok(text.len())
}

/// Returns the words of a row, or none where they cannot be read. The rows after it are still
/// found.
fn readable(words: sql::Result<Option<Words>>, id: i64) -> sql::Result<Option<Words>> {
    match words {
        Err(error) if error.failure().is_none() => {
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
pub(crate) fn index_through(sql: &Sql<'_>, last: i64) -> sql::Result<()> {
    while !index_some(sql, last)? {}
    Ok(())
}

/// Prepares the removal of words. Without it, an index would mark them as deleted and keep them.
pub(crate) fn begin_removal(sql: &Sql<'_>) -> sql::Result<()> {
    let text = "INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1)";
    sql.write(text, [])?;
    let text = "INSERT INTO notes_index (notes_index, rank) VALUES ('secure-delete', 1)";
    sql.write(text, [])
}

/// Removes the words of a row. The index needs to know which ones it loses.
pub(crate) fn remove(sql: &Sql<'_>, id: i64, words: &Words) -> sql::Result<()> {
    let owner = owner_token(words.agent);
    let body = indexed_body(&words.text);
    insert!(
        sql,
        recall_index {
            recall_index: "delete",
            rowid: number_of(id),
            agent: owner,
            body
        }
    )?;
    if words.is_note {
        insert!(
            sql,
            notes_index {
                notes_index: "delete",
                rowid: number_of(id),
                agent: owner,
                body
            }
        )?;
    }
    Ok(())
}

/// Makes a connection read the current structure of the indices.
///
/// Their integrity check uses the structure that the connection last read, and mistakes a later
/// commit for damage. SQLite 3.54's `fts5IntegrityMethod` omits the check for a changed structure
/// with which every search begins.
pub(crate) fn see(sql: &Sql<'_>) -> sql::Result<()> {
    for search in [
        "SELECT 1 FROM recall_index WHERE recall_index MATCH 'body : \"\"'",
        "SELECT 1 FROM notes_index WHERE notes_index MATCH 'body : \"\"'",
    ] {
        sql.exists(search, [])?;
    }
    Ok(())
}

/// Returns whether the indices of two databases have the same content. Their page layout depends on
/// when the words were written and is not compared.
pub(crate) fn are_same(left: &Connection, right: &Connection) -> sql::Result<bool> {
    for connection in [left, right] {
        connection.execute_batch(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.recall_words USING fts5vocab(main, \
             recall_index, instance); CREATE VIRTUAL TABLE IF NOT EXISTS temp.note_words USING \
             fts5vocab(main, notes_index, instance)",
        )?;
    }
    for text in [
        "SELECT id, sz FROM recall_index_docsize ORDER BY id",
        // The totals by which hits are ranked.
        "SELECT block FROM recall_index_data WHERE id = 1",
        "SELECT term, doc, col, offset FROM temp.recall_words",
        "SELECT id, sz FROM notes_index_docsize ORDER BY id",
        "SELECT block FROM notes_index_data WHERE id = 1",
        "SELECT term, doc, col, offset FROM temp.note_words",
    ] {
        match left.same_rows(right, text) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // An index that cannot be read returns another error.
            Err(error) if error.failure() == Some(Failure::Corrupt) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

pub(crate) fn clear(sql: &Sql<'_>) -> sql::Result<()> {
    insert!(
        sql,
        recall_index {
            recall_index: "delete-all"
        }
    )?;
    clear_notes(sql)?;
    meta::remove(sql, INDEXED)
}

/// Clears the index of notes if no notes are left. An index that lost its last words differs from
/// one that never had any.
pub(crate) fn clear_empty_notes(sql: &Sql<'_>) -> sql::Result<()> {
    if sql.exists("SELECT 1 FROM notes_index_docsize", [])? {
        return Ok(());
    }
    clear_notes(sql)
}

fn clear_notes(sql: &Sql<'_>) -> sql::Result<()> {
    insert!(
        sql,
        notes_index {
            notes_index: "delete-all"
        }
    )
}

row! {
    struct StoredWords
        from "recall r LEFT JOIN messages m ON m.run = r.run AND m.id = r.message"
    {
        agent: Option<AgentId> = "r.agent",
        note: Option<String> = "r.note",
        message: Option<Message> as packed_opt = "m.message",
    }
}

/// Returns the words of a row; none where the row has no text.
pub(crate) fn words_of(sql: &Sql<'_>, id: i64) -> sql::Result<Option<Words>> {
    let found: Option<StoredWords> = sql.one(select!(StoredWords, "WHERE r.id = ?1"), [id])?;
    let words = found.and_then(|row| {
        let is_note = row.note.is_some();
        let text = row
            .note
            .or_else(|| row.message.map(|message| message.text()));
        row.agent.zip(text).map(|(agent, text)| Words {
            agent,
            text,
            is_note,
        })
    });
    Ok(words.filter(|words| !words.text.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::{ALL, number_of};
    use crate::projections::recall_rows_of;
    use crate::sql::{Columns, Connection, args};

    #[test]
    fn a_row_is_found_by_its_number_in_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        let found = format!(
            "WITH recall_index (rowid) AS (SELECT ?1), recall (id) AS (SELECT ?2) SELECT count(*) \
             FROM {}",
            ALL.found
        );
        for position in [1, 2, 1 << 30, 1 << 40] {
            let (first, end) = recall_rows_of(position);
            for id in [first, first + 1, first + 15, first + 16, end - 1] {
                for number in [number_of(id), number_of(id) + 1] {
                    let is_found =
                        connection.query_row(&found, args![number, id], |row| row.uint(0));
                    assert_eq!(is_found.unwrap() == 1, number == number_of(id), "{id}");
                }
            }
        }
    }
}

//! Searchable rows of purged events: they go with the texts that they were made of.

use super::room::Room;
use super::{ROWS_PER_COMMIT_MAX, Store};
use crate::commit::CommitError;
use crate::full_text;
use crate::projections::{needs_snippet, recall_rows_of};
use crate::sql::{self, Sql, args, named, row, select};
use domain::digest::Digest;
use domain::id::{RunId, SessionId, Stream};

/// Removes searchable rows of an event while there is room, and returns whether all are removed.
/// Their words must still exist: the index has to know which words it loses.
pub(super) fn forget(sql: &Sql<'_>, position: u64, room: &mut Room) -> sql::Result<bool> {
    let (first, end) = recall_rows_of(position);
    let rows: Vec<i64> = sql.all(
        "SELECT id FROM recall WHERE id >= :id AND id < :end ORDER BY id LIMIT :limit",
        named![id = first, end, limit = room.rows.saturating_add(1)],
    )?;
    if rows.is_empty() {
        return Ok(true);
    }
    full_text::begin_removal(sql)?;
    // A note is the only row of its event.
    let mut lost_note = false;
    for row in &rows {
        if room.is_full() {
            return Ok(false);
        }
        let mut bytes = 0;
        // Removing words that the index does not have would corrupt its totals.
        if full_text::has(sql, *row)?
            && let Some(words) = full_text::words_of(sql, *row)?
        {
            full_text::remove(sql, *row, &words)?;
            lost_note |= words.is_note;
            bytes = words.text.len() as u64;
        }
        sql.execute("DELETE FROM recall WHERE id = ?1", [row])?;
        room.take(bytes);
    }
    // An index that lost its last words differs from one that never had any.
    if !sql.exists("SELECT 1 FROM recall", [])? {
        full_text::clear(sql)?;
    } else if lost_note {
        full_text::clear_empty_notes(sql)?;
    }
    Ok(true)
}

/// Returns whether an event has searchable rows.
pub(super) fn has_any(sql: &Sql<'_>, position: u64) -> sql::Result<bool> {
    let (first, end) = recall_rows_of(position);
    sql.exists(
        "SELECT 1 FROM recall WHERE id >= ?1 AND id < ?2",
        args![first, end],
    )
}

row! {
    /// A deleted session whose head is in a tree.
    #[derive(Debug)]
    struct Other from "turns t CROSS JOIN sessions s ON s.head = t.id" {
        id: SessionId = "s.id",
        number: u64 = "s.number",
        head: Digest = "s.head",
        snippet: Option<String> = "s.last_snippet",
    }
}

impl Store {
    /// Updates the snippets of other deleted sessions, beginning after this number, as many as fit
    /// into one transaction. Returns the number of the last; none when all are done. Readers scan
    /// their threads, and the writer gets only the changed snippets: these sessions do not change
    /// otherwise.
    pub(super) async fn erase_snippets(
        &self,
        purge: Stream,
        session: SessionId,
        after: u64,
    ) -> Result<Option<u64>, CommitError> {
        let others = self.read(move |sql| others_of(sql, session, after)).await?;
        let last = others.get(ROWS_PER_COMMIT_MAX - 1).map(|last| last.number);
        let mut changed = Vec::new();
        for other in others {
            let found = self.read(move |sql| {
                let shown = last_shown(sql, other.id, other.head)?;
                Ok((shown != other.snippet).then_some((other.id, shown)))
            });
            changed.extend(found.await?);
        }
        if !changed.is_empty() {
            self.transact_for(purge, move |sql, _| {
                changed.iter().try_for_each(|(other, shown)| {
                    sql.write(
                        "UPDATE sessions SET last_snippet = ?2 WHERE id = ?1 AND NOT purged",
                        args![other, shown],
                    )
                })
            })
            .await?;
        }
        Ok(last)
    }
}

/// Returns deleted sessions whose heads are in the trees of a session's turns.
fn others_of(sql: &Sql<'_>, session: SessionId, after: u64) -> sql::Result<Vec<Other>> {
    let text = select!(
        Other,
        "WHERE s.status = 'deleted' AND NOT s.purged AND s.number > :after AND t.root IN (SELECT \
         root FROM turns WHERE session = :session UNION SELECT t.root FROM sessions s JOIN turns t \
         ON t.id = s.head WHERE s.id = :session) ORDER BY s.number LIMIT :limit"
    );
    let limit = ROWS_PER_COMMIT_MAX;
    sql.all(text, named![session, after, limit])
}

/// Returns the snippet of a session: the last reply of its own turns, or of the turn that it was
/// forked from.
fn last_shown(sql: &Sql<'_>, session: SessionId, head: Digest) -> sql::Result<Option<String>> {
    let mut at = Some(head);
    while let Some(turn) = at {
        let text = "SELECT run, session, parent FROM turns WHERE id = ?1";
        let found: Option<(RunId, Option<SessionId>, Option<Digest>)> = sql.one(text, [turn])?;
        let Some((run, made_in, parent)) = found else {
            return Ok(None);
        };
        let shown = needs_snippet(sql, run)?;
        if shown.is_some() || made_in != Some(session) {
            return Ok(shown);
        }
        at = parent;
    }
    Ok(None)
}

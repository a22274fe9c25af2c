//! Snippets of other deleted sessions: they may be the beginning of an erased message.

use super::{ROWS_PER_COMMIT_MAX, Store};
use crate::commit::CommitError;
use crate::projections::needs_snippet;
use crate::sql::{self, Sql, args, named, row, select};
use domain::digest::Digest;
use domain::id::{RunId, SessionId, Stream};

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

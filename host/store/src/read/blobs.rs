//! Reads of the threads and streams that name a blob.

use super::ReadError;
use super::turns::{holder, node};
use crate::EMPTY_STATE;
use crate::sql::{self, Sql, args};
use crate::store::Store;
use domain::digest::Digest;
use domain::id::TurnId;
use domain::turn::TurnNode;

impl Store {
    /// Returns whether a message of the thread that ends in `head` names a blob. Each turn of any
    /// thread that shows this very content costs a walk of logarithmic length; the length of the
    /// thread does not matter.
    pub async fn mentions(&self, head: TurnId, digest: Digest) -> Result<bool, ReadError> {
        Ok(self.shown_in(head, digest).await?.is_some())
    }

    /// Returns the turn of the thread ending in `head` whose messages name a blob; none if no turn
    /// does.
    pub async fn shown_in(
        &self,
        head: TurnId,
        digest: Digest,
    ) -> Result<Option<TurnNode>, ReadError> {
        self.read(move |sql| {
            let turns = sql.all::<(TurnId, u64)>(
                "SELECT t.id, t.last_message FROM blob_references b JOIN streams s ON \
                 s.number = b.stream AND s.stream_kind = 'run' JOIN runs r ON r.id = s.stream_id JOIN turns t ON t.id = r.turn WHERE b.digest \
                 = ?1 AND b.shown = 1",
                [digest],
            )?;
            for (turn, last_message) in turns {
                if holder(sql, head, last_message)?.is_some_and(|holder| holder.id == turn) {
                    return node(sql, turn);
                }
            }
            Ok(None)
        })
        .await
    }

    /// Blobs that no event names, at most `limit`: for tests. Looks at every blob.
    pub async fn unnamed_blobs(&self, limit: usize) -> Result<Vec<Digest>, ReadError> {
        self.read(move |sql| {
            sql.all::<Digest>(
                "SELECT digest FROM blobs WHERE digest NOT IN (SELECT digest FROM blob_references) \
                 AND digest <> ?1 LIMIT ?2",
                args![Digest::of(EMPTY_STATE).0, limit],
            )
        })
        .await
    }
}

/// Reads the bytes of a blob, unchecked.
pub(super) fn content(sql: &Sql<'_>, digest: Digest) -> sql::Result<Option<Vec<u8>>> {
    sql.one("SELECT bytes FROM blobs WHERE digest = ?1", [digest])
}

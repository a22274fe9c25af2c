//! The files of a session.

use super::ReadError;
use crate::sql::{Columns, int};
use crate::store::Store;
use domain::digest::Digest;
use domain::file::{File, SESSION_FILES_MAX};
use domain::id::SessionId;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};

/// A file that a client handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// The file's description.
    pub file: File,
    /// The user who uploaded it.
    pub user_id: UserId,
    /// Time of the upload.
    pub time: Timestamp,
}

impl Store {
    /// The files of a session, in the order in which they came: all of them, because a session has
    /// few.
    pub async fn files(&self, session: SessionId) -> Result<Vec<FileRow>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT digest, name, media_type, bytes, user_id, time FROM files WHERE \
                        session = ?1 ORDER BY sequence LIMIT ?2";
            sql.rows(
                text,
                params![session.to_string(), int(SESSION_FILES_MAX)],
                read,
            )
        })
        .await
    }

    /// Returns the number of a session's files.
    pub async fn file_count(&self, session: SessionId) -> Result<u64, ReadError> {
        let text = "SELECT coalesce(max(sequence), 0) FROM files WHERE session = ?1";
        self.point_read(move |sql| sql.number(text, [session.to_string()]))
            .await
    }

    /// Returns whether a blob is one of the first `count` files of a session.
    pub async fn is_file(
        &self,
        session: SessionId,
        digest: Digest,
        count: u64,
    ) -> Result<bool, ReadError> {
        let text = "SELECT 1 FROM files WHERE session = ?1 AND digest = ?2 AND sequence <= ?3";
        self.point_read(move |sql| {
            sql.exists(text, params![session.to_string(), digest.0, int(count)])
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let file = File {
        digest: row.digest(0)?,
        name: row.get(1)?,
        media_type: row.get(2)?,
        bytes: row.uint(3)?,
    };
    Ok(FileRow {
        file,
        user_id: row.id(4)?,
        time: Timestamp(row.uint(5)?),
    })
}

//! The files of a session.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, args, named, select};
use crate::store::Store;
use domain::digest::Digest;
use domain::file::{File, SESSION_FILES_MAX};
use domain::id::SessionId;
use domain::time::Timestamp;
use domain::user::UserId;

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

impl FileRow {
    const COLUMNS: &str = "digest, name, media_type, bytes, user_id, time";
    const FROM: &str = "files";
}

impl FromRow for FileRow {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            file: File {
                digest: cells.next("digest")?,
                name: cells.next("name")?,
                media_type: cells.next("media_type")?,
                bytes: cells.next("bytes")?,
            },
            user_id: cells.next("user_id")?,
            time: cells.next("time")?,
        })
    }
}

impl Store {
    /// The files of a session in the order of their uploads. All of them, because a session has
    /// few.
    pub async fn files(&self, session: SessionId) -> Result<Vec<FileRow>, ReadError> {
        self.read(move |sql| {
            let text = select!(FileRow, "WHERE session = ?1 ORDER BY sequence LIMIT ?2");
            sql.all(text, args![session, SESSION_FILES_MAX])
        })
        .await
    }

    /// Returns the number of a session's files.
    pub async fn file_count(&self, session: SessionId) -> Result<u64, ReadError> {
        let text = "SELECT coalesce(max(sequence), 0) FROM files WHERE session = ?1";
        self.point_read(move |sql| sql.number(text, [session]))
            .await
    }

    /// Returns whether a blob is one of the first `count` files of a session.
    pub async fn is_file(
        &self,
        session: SessionId,
        digest: Digest,
        count: u64,
    ) -> Result<bool, ReadError> {
        let text = "SELECT 1 FROM files WHERE session = :session AND digest = :digest AND sequence \
                    <= :sequence";
        self.point_read(move |sql| sql.exists(text, named![session, digest, sequence = count]))
            .await
    }
}

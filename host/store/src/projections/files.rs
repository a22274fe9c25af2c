//! Files that clients handed over, numbered in each session.

use crate::sql::{Sql, int};
use domain::event::FileUploaded;
use rusqlite::params;

/// A file was handed over. The same content under the same name is the file that is there already.
pub(super) fn uploaded(sql: &Sql<'_>, it: &FileUploaded) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO files (session, sequence, digest, name, media_type, bytes, user_id, time) \
         VALUES (?1, (SELECT coalesce(max(sequence), 0) + 1 FROM files WHERE session = ?1), ?2, \
         ?3, ?4, ?5, ?6, ?7) ON CONFLICT (session, digest, name) DO NOTHING",
        params![
            it.session.to_string(),
            it.digest.0,
            it.name,
            it.media_type,
            int(it.bytes),
            it.user_id.as_str(),
            int(it.time.0)
        ],
    )
}

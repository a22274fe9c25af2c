//! Files that clients handed over, numbered in each session.

use crate::sql::{self, Sql, named};
use domain::event::FileUploaded;

/// A file was handed over. The same content under the same name is the file that is there already.
pub(super) fn uploaded(sql: &Sql<'_>, it: &FileUploaded) -> sql::Result<()> {
    sql.write(
        "INSERT INTO files (session, sequence, digest, name, media_type, bytes, user_id, time) \
         VALUES (:session, (SELECT coalesce(max(sequence), 0) + 1 FROM files WHERE session = \
         :session), :digest, :name, :media_type, :bytes, :user_id, :time) ON CONFLICT (session, \
         digest, name) DO NOTHING",
        named![
            session = it.session,
            digest = it.digest,
            name = it.name,
            media_type = it.media_type,
            bytes = it.bytes,
            user_id = it.user_id,
            time = it.time
        ],
    )
}

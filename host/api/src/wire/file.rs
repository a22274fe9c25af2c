//! Files of a session in public form.

use super::{ContentDigest, Time};
use domain::user::UserId;
use serde::Serialize;
use store::FileRow;

/// A file that was uploaded to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = UploadedFile)]
pub(crate) struct FileView {
    /// The digest of its bytes: `sha256:` and 64 hexadecimal digits. Use it to download the file
    /// and to answer with it.
    pub(crate) digest: ContentDigest,
    /// The file name.
    pub(crate) name: String,
    /// The media type, as declared at the upload.
    pub(crate) media_type: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// The user who uploaded it.
    pub(crate) user_id: UserId,
    /// The time of the upload, ISO 8601.
    pub(crate) uploaded_at: Time,
}

/// A file.
pub(crate) fn file(row: &FileRow) -> FileView {
    FileView {
        digest: ContentDigest(row.file.digest),
        name: row.file.name.clone(),
        media_type: row.file.media_type.clone(),
        bytes: row.file.bytes,
        user_id: row.user_id.clone(),
        uploaded_at: Time(row.time),
    }
}

//! Files of a session in public form.

use serde::Serialize;
use store::FileRow;

/// A file that was handed over in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = File)]
pub struct FileView {
    /// What it is asked for and answered with: `sha256:` and 64 hexadecimal digits, the digest of its bytes.
    pub digest: String,
    /// What it is called.
    pub name: String,
    /// What it is, as it was handed over.
    pub media_type: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Who handed it over.
    pub user_id: String,
    /// When, ISO 8601.
    pub uploaded_at: String,
}

/// A file.
#[must_use]
pub fn file(row: &FileRow) -> FileView {
    FileView {
        digest: row.file.digest.reference(),
        name: row.file.name.clone(),
        media_type: row.file.media_type.clone(),
        bytes: row.file.bytes,
        user_id: row.user_id.to_string(),
        uploaded_at: row.time.to_string(),
    }
}

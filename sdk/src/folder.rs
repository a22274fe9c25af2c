//! Folders that the operator granted, for [`std::fs`].

use std::path::PathBuf;

/// Returns the path of a granted folder, by its mount point: `at` in the grant, such as `/notes`.
///
/// In a component that is the mount point itself. In a native test it is the temporary folder that
/// the test granted with [`harness::grant_folder`](crate::harness::grant_folder). What a call that
/// fails wrote to a folder stays there, unlike what it wrote to a bucket.
///
/// # Panics
/// In a native test alone: when the test granted no such folder, or the tool of the call declares
/// neither `files.read` nor `files.write`. In a component, [`std::fs`] fails below a path that is
/// not granted.
#[must_use]
pub fn folder(at: &str) -> PathBuf {
    #[cfg(target_family = "wasm")]
    return PathBuf::from(at);
    #[cfg(not(target_family = "wasm"))]
    crate::harness::granted_folder(at)
}

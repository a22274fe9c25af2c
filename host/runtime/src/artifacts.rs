//! The components themselves, by content: a turn that began with one version ends with it, also
//! when the operator has replaced it.

use crate::cache::write_unfinished;
use domain::digest::Digest;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

fn path(folder: &Path, digest: Digest) -> PathBuf {
    folder.join(format!("{}.wasm", digest.hex()))
}

/// Returns true if a component is kept already.
pub(crate) fn is_kept(folder: &Path, digest: Digest) -> bool {
    path(folder, digest).exists()
}

/// Keeps a component. After this returns, a crash loses nothing; before, it leaves nothing. Blocks.
pub(crate) fn keep(folder: &Path, digest: Digest, wasm: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{}.{}.tmp", digest.hex(), std::process::id()));
    write_unfinished(&unfinished, &[wasm])?;
    fs::rename(&unfinished, path(folder, digest))?;
    File::open(folder)?.sync_all()
}

/// A component that was kept; none when it is not there or not what its name says. Blocks.
pub(crate) fn read(folder: &Path, digest: Digest) -> Option<Vec<u8>> {
    let wasm = fs::read(path(folder, digest)).ok()?;
    (Digest::of(&wasm) == digest).then_some(wasm)
}

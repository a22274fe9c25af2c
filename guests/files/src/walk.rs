//! Goes through a folder and what is below it, in the order of names, without following links.

use crate::folders::{Folders, GrantedPath};
use agent_host_sdk::ToolError;
use std::fs::{self, FileType};

/// Entries that one call looks at.
const VISITED_MAX: usize = 20_000;
/// Folders within folders.
pub(crate) const DEPTH_MAX: u32 = 64;

/// Something that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its place in a granted folder.
    pub(crate) place: GrantedPath,
    /// Its path from the folder where the walk began, with `/` between names.
    pub(crate) relative: String,
    pub(crate) kind: FileType,
}

/// The completeness of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walked {
    All,
    /// It was stopped by the visitor, or there was too much.
    Part,
}

/// Shows everything below a folder to a visitor, `depth` levels deep, until the visitor returns
/// false. A folder further down that cannot be read is passed over.
pub(crate) fn walk(
    folders: &Folders,
    start: &GrantedPath,
    depth: u32,
    mut visit: impl FnMut(&Found) -> bool,
) -> Result<Walked, ToolError> {
    let mut ahead = entries(start, "").map_err(|error| folders.error(start, &error))?;
    ahead.reverse();
    let mut visited = 0;
    while let Some(found) = ahead.pop() {
        visited += 1;
        if visited > VISITED_MAX || !visit(&found) {
            return Ok(Walked::Part);
        }
        let level = u32::try_from(found.relative.matches('/').count()).unwrap_or(u32::MAX);
        if found.kind.is_dir() && level.saturating_add(1) < depth.min(DEPTH_MAX) {
            let below = entries(&found.place, &format!("{}/", found.relative)).unwrap_or_default();
            ahead.extend(below.into_iter().rev());
        }
    }
    Ok(Walked::All)
}

/// The entries of one folder by name; at most as many as a walk may look at.
fn entries(folder: &GrantedPath, prefix: &str) -> std::io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder.path)?.take(VISITED_MAX + 1) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push(Found {
            place: folder.below(&name),
            relative: format!("{prefix}{name}"),
            kind: entry.file_type()?,
        });
    }
    found.sort_by(|a, b| a.relative.cmp(&b.relative));
    Ok(found)
}

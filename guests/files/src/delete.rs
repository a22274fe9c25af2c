//! `delete_file`.

use crate::disk::{self, Kind};
use crate::folders::Folders;
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::Path;

/// The arguments of `delete_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    /// True for a folder that is not empty.
    recursive: Option<bool>,
}

pub(crate) fn delete(
    folders: &Folders,
    _: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    let fails = |error: io::Error| folders.error(&place, &error);
    if place.is_root {
        return Err(ToolError::invalid(
            "path",
            format_args!(
                "is the granted folder `{}` itself, which stays",
                place.shown
            ),
        ));
    }
    // Of a link, the link is deleted and not what it leads to.
    let meta = fs::symlink_metadata(&place.path).map_err(fails)?;
    if !meta.is_dir() {
        fs::remove_file(&place.path).map_err(fails)?;
        return Ok(format!("deleted `{}`", place.shown));
    }
    if arguments.recursive != Some(true) {
        return Err(ToolError::invalid(
            "recursive",
            format_args!("must be true to delete the folder `{}`", place.shown),
        ));
    }
    let stays = delete_all(&place.path).map_err(fails)?;
    if stays == 0 {
        return Ok(format!("deleted `{}` and all that was in it", place.shown));
    }
    Ok(format!(
        "deleted what was in `{}`, which stays\n[passed over {stays} entries whose names are not \
         UTF-8: no call can name them]",
        place.shown
    ))
}

/// Deletes a folder with all that is in it. Returns the number of entries in it that no call can
/// name; they stay, and with them the folders that they are in.
fn delete_all(folder: &Path) -> io::Result<usize> {
    let mut stays = 0;
    let mut found = Vec::new();
    disk::entries(folder, |entry| {
        match entry {
            Some(entry) => found.push(entry),
            None => stays += 1,
        }
        true
    })?;
    for entry in found {
        let path = folder.join(&entry.name);
        if entry.kind == Kind::Folder {
            stays += delete_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    if stays == 0 {
        fs::remove_dir(folder)?;
    }
    Ok(stays)
}

//! `delete_file`.

use crate::folders::Folders;
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::io;

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
    fs::remove_dir_all(&place.path).map_err(fails)?;
    Ok(format!("deleted `{}` and all that was in it", place.shown))
}

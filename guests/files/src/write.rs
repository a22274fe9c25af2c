//! `write_file`.

use crate::folders::{Folders, GrantedPath};
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Bytes of text that one call writes.
const WRITE_BYTES_MAX: usize = 4 << 20;
/// Characters of the call's id in the name of the unfinished file.
const MARK_LENGTH: usize = 16;

/// The arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    /// The whole new text.
    content: String,
    /// True to make folders that are missing.
    create_parents: Option<bool>,
}

pub(crate) fn write(
    folders: &Folders,
    context: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let content = &arguments.content;
    let place = folders.place(&arguments.path)?;
    let fails = |error: io::Error| folders.error(&place, &error);
    let is_folder = || {
        let fix = format_args!("must name a file: `{}` is a folder", place.shown);
        ToolError::invalid("path", fix)
    };
    let (Some(folder), Some(name), false) = (
        place.path.parent(),
        place.path.file_name(),
        place.is_root || arguments.path.ends_with('/'),
    ) else {
        return Err(is_folder());
    };
    if content.len() > WRITE_BYTES_MAX {
        return Err(ToolError::invalid(
            "content",
            format_args!("has {} bytes; {WRITE_BYTES_MAX} is the most", content.len()),
        ));
    }
    if fs::metadata(&place.path).is_ok_and(|meta| meta.is_dir()) {
        return Err(is_folder());
    }
    if arguments.create_parents == Some(true) {
        fs::create_dir_all(folder).map_err(fails)?;
    }
    let unfinished = folder.join(format!(
        ".{}.{}.part",
        name.to_string_lossy(),
        mark_of(&context.call_id)
    ));
    match replace(&unfinished, &place, content.as_bytes()) {
        Ok(()) => Ok(format!(
            "wrote {} bytes to `{}`",
            content.len(),
            place.shown
        )),
        Err(error) => {
            // What is left behind must not be taken for a file of the user's; that it cannot be
            // removed either changes nothing.
            let _ = fs::remove_file(&unfinished);
            if error.kind() == io::ErrorKind::NotFound {
                let hint = "its folder is missing; set createParents to make it";
                return Err(ToolError::NotFound(format!(
                    "`{}` cannot be written: {hint}",
                    place.shown
                )));
            }
            Err(fails(error))
        }
    }
}

/// Replaces a file in one step: a reader sees the old text or the new one, never a part. The new
/// text is complete in a file beside it before it takes its name.
fn replace(unfinished: &Path, place: &GrantedPath, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(unfinished, &place.path)
}

/// A mark that is the same for every attempt of a call. A second attempt thus takes up the file
/// that a first left behind.
fn mark_of(call_id: &str) -> String {
    call_id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(MARK_LENGTH)
        .collect()
}

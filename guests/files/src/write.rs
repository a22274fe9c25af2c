//! `write_file`.

use crate::disk;
use crate::folders::{Folders, GrantedPath};
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of text that one call writes.
const WRITE_BYTES_MAX: usize = 4 << 20;
/// Characters of the call's id in the name of the unfinished file.
const MARK_LENGTH: usize = 16;
/// Bytes of the end of a name that the unfinished file has too.
const EXTENSION_BYTES_MAX: usize = 16;

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
    if content.len() > WRITE_BYTES_MAX {
        return Err(ToolError::invalid(
            "content",
            format_args!("has {} bytes; {WRITE_BYTES_MAX} is the most", content.len()),
        ));
    }
    let target = target(folders, &place, arguments)?;
    if arguments.create_parents == Some(true)
        && let Some(folder) = target.path.parent()
    {
        fs::create_dir_all(folder).map_err(fails)?;
    }
    match put(&target, &context.call_id, content.as_bytes()) {
        Ok(()) => Ok(format!(
            "wrote {} bytes to `{}`",
            content.len(),
            place.shown
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let hint = "its folder is missing; set createParents to make it";
            Err(ToolError::NotFound(format!(
                "`{}` cannot be written: {hint}",
                place.shown
            )))
        }
        Err(error) => Err(fails(error)),
    }
}

/// The file that is written: the one that is read under this path.
fn target(
    folders: &Folders,
    place: &GrantedPath,
    arguments: &Arguments,
) -> Result<GrantedPath, ToolError> {
    let is_no_file = |why: &str| {
        let fix = format_args!("must name a file: `{}` is {why}", place.shown);
        Err(ToolError::invalid("path", fix))
    };
    if place.is_root || arguments.path.ends_with('/') || place.path.file_name().is_none() {
        return is_no_file("a folder");
    }
    let target = folders.followed(place)?;
    let is_link = target.path != place.path;
    match fs::metadata(&place.path) {
        Ok(meta) if meta.is_dir() => is_no_file("a folder"),
        Ok(meta) if !meta.is_file() => is_no_file("a pipe or a device"),
        // Where a link may not be read through, it may not be written through.
        Err(error) if is_link && error.kind() != io::ErrorKind::NotFound => {
            Err(folders.error(place, &error))
        }
        Ok(_) | Err(_) => Ok(target),
    }
}

/// Writes the whole text of a file. What is refused beside the file, by the patterns or the quota
/// of its folder, say, is written over what is in it.
fn put(target: &GrantedPath, call_id: &str, content: &[u8]) -> io::Result<()> {
    let path = &target.path;
    let there = fs::metadata(path).ok();
    // Its other names would keep the old text.
    if there.is_some() && disk::names(path).is_ok_and(|names| names > 1) {
        return write_over(path, there.as_ref(), content);
    }
    match replace(&unfinished(path, call_id), path, there.as_ref(), content) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(_) => write_over(path, there.as_ref(), content),
    }
}

/// Replaces a file in one step: a reader sees the old text or the new one, never a part. The new
/// text is complete in a file beside it before it takes its name.
fn replace(
    unfinished: &Path,
    path: &Path,
    there: Option<&Metadata>,
    content: &[u8],
) -> io::Result<()> {
    let make = || {
        let mut how = OpenOptions::new();
        how.write(true).create_new(true).open(unfinished)
    };
    let mut file = match make() {
        // What an earlier attempt left is of no use: of a file that this call makes the host knows
        // that it takes over owner and permissions.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(unfinished)?;
            make()?
        }
        made => made?,
    };
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| there.map_or(Ok(()), |there| keep_permissions(unfinished, there)))
        .and_then(|()| fs::rename(unfinished, path));
    if written.is_err() {
        // What is left behind must not be taken for a file of the user's; that it cannot be removed
        // either changes nothing.
        let _ = fs::remove_file(unfinished);
    }
    written
}

/// Natively nobody else does it.
#[cfg(not(target_os = "wasi"))]
fn keep_permissions(unfinished: &Path, there: &Metadata) -> io::Result<()> {
    fs::set_permissions(unfinished, there.permissions())
}

/// The host does it when the file takes its name.
#[cfg(target_os = "wasi")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "it has the same form as the native one"
)]
fn keep_permissions(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Writes over what is in a file. The part by which it grows comes first and is taken back when
/// there is no room for it: a full disk leaves the old text.
fn write_over(path: &Path, there: Option<&Metadata>, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(there.is_none())
        .open(path)?;
    let length = there.map_or(0, Metadata::len);
    let old = usize::try_from(length).unwrap_or(usize::MAX);
    let (beginning, growth) = content.split_at(old.min(content.len()));
    let grown = file
        .seek(SeekFrom::Start(beginning.len() as u64))
        .and_then(|_| file.write_all(growth))
        .and_then(|()| file.sync_all());
    if let Err(error) = grown {
        // The first error is the one to tell of.
        let _ = match there {
            Some(_) if growth.is_empty() => Ok(()),
            Some(_) => file.set_len(length),
            None => fs::remove_file(path),
        };
        return Err(error);
    }
    file.rewind()?;
    file.write_all(beginning)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// The name of the unfinished file. It ends like that of the file, so that patterns which allow the
/// one mostly allow the other, and is short, so that no name is too long. It is the same for every
/// attempt of a call: a second attempt removes what a first left behind.
fn unfinished(path: &Path, call_id: &str) -> PathBuf {
    let mark: String = call_id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(MARK_LENGTH)
        .collect();
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.filter(|extension| extension.len() <= EXTENSION_BYTES_MAX);
    let dot = if extension.is_some() { "." } else { "" };
    let name = format!(".{mark}.part{dot}{}", extension.unwrap_or_default());
    path.with_file_name(name)
}

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
    let mut deletion = Deletion::default();
    let refused = deletion.delete_all(&place.path).err();
    match refused {
        None if deletion.unnamed == 0 => {
            Ok(format!("deleted `{}` and all that was in it", place.shown))
        }
        None => Ok(format!(
            "deleted what was in `{}`, which stays\n[passed over {} entries that no call can name]",
            place.shown, deletion.unnamed
        )),
        Some(error) if deletion.gone == 0 => Err(fails(error)),
        // Whoever hears of the error alone takes everything to be there still.
        Some(error) => Err(ToolError::Failed(format!(
            "`{}` is deleted in part: {} entries are gone, and the next one is not ({error})",
            place.shown, deletion.gone
        ))),
    }
}

/// The deletion of a folder with all that is in it, as far as it has come.
#[derive(Debug, Default)]
struct Deletion {
    /// Entries that are deleted.
    gone: usize,
    /// Entries that no call can name: their names are not UTF-8, or the patterns of the folder hide
    /// them. They stay, and with them the folders that they are in.
    unnamed: usize,
}

impl Deletion {
    fn delete_all(&mut self, folder: &Path) -> io::Result<()> {
        let before = self.unnamed;
        let mut found = Vec::new();
        disk::entries(folder, |entry| {
            match entry {
                Some(entry) => found.push(entry),
                None => self.unnamed += 1,
            }
            true
        })?;
        for entry in found {
            let path = folder.join(&entry.name);
            if entry.kind == Kind::Folder {
                self.delete_all(&path)?;
            } else {
                fs::remove_file(&path)?;
                self.gone += 1;
            }
        }
        if self.unnamed > before {
            return Ok(());
        }
        match fs::remove_dir(folder) {
            Ok(()) => self.gone += 1,
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => self.unnamed += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

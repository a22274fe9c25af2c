//! `list_files`.

use crate::disk::Kind;
use crate::disk::{DEPTH_MAX, Extent, Found, Stopwatch, Walked, walk};
use crate::folders::{Folders, GrantedPath};
use crate::glob::Glob;
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;

/// Entries that one call returns.
pub(crate) const LISTED_MAX: usize = 500;

/// The arguments of `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    #[schemars(description = "Such as `*.md` for names, or `src/**/*.{rs,md}` for paths.")]
    pattern: Option<String>,
    /// Levels of folders; 1 by default, all for a pattern of paths.
    #[schemars(range(min = 1))]
    max_depth: Option<u32>,
}

pub(crate) fn list(
    folders: &Folders,
    context: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    let given = arguments.pattern.as_deref().filter(|it| !it.is_empty());
    let pattern = given
        .map(|given| Glob::parse(given, &place, folders))
        .transpose()?;
    let is_deep = pattern.as_ref().is_some_and(Glob::is_deep);
    let extent = Extent {
        depth: match arguments.max_depth {
            Some(depth) => depth,
            None if is_deep => DEPTH_MAX,
            None => 1,
        },
        stopwatch: Stopwatch::start(context),
        wants: |path: &str, kind| {
            let matches = |pattern: &Glob| pattern.matches(path, kind == Kind::Folder);
            pattern.as_ref().is_none_or(matches)
        },
    };
    let mut lines = Vec::new();
    let walk = walk(folders, &place, &extent, |found| {
        if lines.len() == LISTED_MAX {
            return false;
        }
        lines.push(line_of(&place, found));
        true
    })?;
    if lines.is_empty() {
        lines.push(format!(
            "[nothing in `{}`{}]",
            place.shown,
            if pattern.is_some() { " matches" } else { "" }
        ));
    }
    if walk.walked == Walked::Part {
        lines.push("[there is more; narrow the path or the pattern]".to_owned());
    }
    lines.extend(walk.notes());
    Ok(lines.join("\n"))
}

/// `folder/`, `file (12 bytes)` or `link@`, from the folder that was asked for.
fn line_of(folder: &GrantedPath, found: &Found) -> String {
    let relative = &found.relative;
    match found.kind {
        Kind::Folder => format!("{relative}/"),
        Kind::Link => format!("{relative}@"),
        Kind::File | Kind::Other => match fs::symlink_metadata(folder.below(relative).path) {
            Ok(meta) => format!("{relative} ({} bytes)", meta.len()),
            Err(_) => relative.clone(),
        },
    }
}

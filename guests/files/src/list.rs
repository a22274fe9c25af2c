//! `list_files`.

use crate::folders::Folders;
use crate::glob::{self, PATTERN_BYTES_MAX};
use crate::walk::{DEPTH_MAX, Found, Walked, walk};
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
    #[schemars(description = "Such as `*.md` for names, or `src/**/*.rs` for paths.")]
    pattern: Option<String>,
    /// Levels of folders; 1 by default, all for a pattern of paths.
    #[schemars(range(min = 1))]
    max_depth: Option<u32>,
}

pub(crate) fn list(
    folders: &Folders,
    _: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    let pattern = arguments.pattern.as_deref();
    let pattern_bytes = pattern.map_or(0, str::len);
    if pattern_bytes > PATTERN_BYTES_MAX {
        return Err(ToolError::invalid(
            "pattern",
            format_args!("has {pattern_bytes} bytes; {PATTERN_BYTES_MAX} is the most"),
        ));
    }
    let is_deep = |pattern: &str| pattern.contains('/') || pattern.contains("**");
    let depth = match arguments.max_depth {
        Some(depth) => depth,
        None if pattern.is_some_and(is_deep) => DEPTH_MAX,
        None => 1,
    };
    let mut lines = Vec::new();
    let walked = walk(folders, &place, depth, |found| {
        if pattern.is_none_or(|pattern| glob::matches(pattern, &found.relative)) {
            if lines.len() == LISTED_MAX {
                return false;
            }
            lines.push(line_of(found));
        }
        true
    })?;
    if lines.is_empty() {
        lines.push(format!(
            "[nothing in `{}`{}]",
            place.shown,
            if pattern.is_some() { " matches" } else { "" }
        ));
    }
    if walked == Walked::Part {
        lines.push("[there is more; narrow the path or the pattern]".to_owned());
    }
    Ok(lines.join("\n"))
}

/// `folder/`, `file (12 bytes)` or `link@`, from the folder that was asked for.
fn line_of(found: &Found) -> String {
    if found.kind.is_dir() {
        return format!("{}/", found.relative);
    }
    if found.kind.is_symlink() {
        return format!("{}@", found.relative);
    }
    match fs::symlink_metadata(&found.place.path) {
        Ok(meta) => format!("{} ({} bytes)", found.relative, meta.len()),
        Err(_) => found.relative.clone(),
    }
}

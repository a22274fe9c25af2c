//! Files below `/skills`, which are texts in memory: looking one up is all that can be done.

use agent_host_shapes::shown::visible;
use agent_host_shell::{CommandLine, ROOT};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Bytes of a path.
pub(crate) const PATH_BYTES_MAX: usize = 4 << 10;

/// Returns the whole path that a path means, without `.`, `..` and empty parts. A path that does
/// not begin with `/` is one below `/skills`. `..` stays at the top, as it does elsewhere. One that
/// is too long is that of no file.
pub(crate) fn whole(path: &str) -> String {
    if path.len() > PATH_BYTES_MAX {
        return String::new();
    }
    let from = if path.starts_with('/') { "" } else { ROOT };
    let mut parts: Vec<&str> = Vec::new();
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns the text of a file.
///
/// # Errors
/// The reason, for people.
pub(crate) fn read<'a>(line: &'a CommandLine<'_>, path: &str) -> Result<&'a str, String> {
    let whole = whole(path);
    if let Some(text) = line.files.get(whole.as_str()) {
        return Ok(text);
    }
    if is_folder(line, &whole) {
        return Err(format!("{path}: Is a directory"));
    }
    Err(missing(path))
}

/// Returns the text for a path of nothing.
pub(crate) fn missing(path: &str) -> String {
    if path.len() > PATH_BYTES_MAX {
        let path = visible(path, 80);
        return format!("{path}: File name too long");
    }
    format!("{path}: No such file or directory")
}

/// Returns whether a whole path is that of a folder.
pub(crate) fn is_folder(line: &CommandLine<'_>, whole: &str) -> bool {
    whole == "/" || whole == ROOT || (!whole.is_empty() && below(line, whole).next().is_some())
}

/// Returns the whole paths of the files below a folder.
pub(crate) fn below<'a>(
    line: &'a CommandLine<'_>,
    folder: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = format!("{}/", folder.trim_end_matches('/'));
    let from = (Bound::Included(start.as_str()), Bound::Unbounded);
    let files = line.files.range::<str, _>(from);
    files
        .map(|(path, _)| &**path)
        .take_while(move |path| path.starts_with(&start))
}

/// Returns the names in a folder, those of folders with `/` at the end.
pub(crate) fn names(line: &CommandLine<'_>, folder: &str) -> BTreeSet<String> {
    let start = format!("{}/", folder.trim_end_matches('/'));
    let mut names = BTreeSet::new();
    for path in below(line, folder) {
        let rest = path.strip_prefix(&start).unwrap_or(path);
        names.insert(match rest.split_once('/') {
            Some((name, _)) => format!("{name}/"),
            None => rest.to_owned(),
        });
    }
    if folder == "/" {
        names.insert(format!("{}/", ROOT.trim_start_matches('/')));
    }
    names
}

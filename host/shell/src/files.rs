//! Files below `/skills`, which are texts in memory: looking one up is all that can be done.

use domain::skill::{ROOT, SkillSet};
use std::collections::BTreeSet;

/// Returns the whole path that a path means, without `.`, `..` and empty parts. A path that does
/// not begin with `/` is one below `/skills`. `..` stays at the top, as it does elsewhere.
pub(crate) fn whole(path: &str) -> String {
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
pub(crate) fn read<'a>(skills: &'a SkillSet, path: &str) -> Result<&'a str, String> {
    let whole = whole(path);
    if let Some(text) = skills.files().get(&whole) {
        return Ok(text);
    }
    if is_folder(skills, &whole) {
        return Err(format!("{path}: Is a directory"));
    }
    Err(format!("{path}: No such file or directory"))
}

/// Returns whether a whole path is that of a folder.
pub(crate) fn is_folder(skills: &SkillSet, whole: &str) -> bool {
    whole == "/" || whole == ROOT || below(skills, whole).next().is_some()
}

/// Returns the whole paths of the files below a folder.
pub(crate) fn below<'a>(
    skills: &'a SkillSet,
    folder: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = format!("{}/", folder.trim_end_matches('/'));
    skills
        .files()
        .keys()
        .map(String::as_str)
        .filter(move |path| path.starts_with(&start))
}

/// Returns the names in a folder, those of folders with `/` at the end.
pub(crate) fn names(skills: &SkillSet, folder: &str) -> BTreeSet<String> {
    let start = format!("{}/", folder.trim_end_matches('/'));
    let mut names: BTreeSet<String> = below(skills, folder)
        .filter_map(|path| path.strip_prefix(&start))
        .map(|rest| match rest.split_once('/') {
            Some((name, _)) => format!("{name}/"),
            None => rest.to_owned(),
        })
        .collect();
    if folder == "/" {
        names.insert(format!("{}/", ROOT.trim_start_matches('/')));
    }
    names
}

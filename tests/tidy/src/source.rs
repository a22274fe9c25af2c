//! Rules on single files of source: the sentence they open with, and texts that must not be there.

use crate::tree::TextFile;

/// Everything that is wrong with one Rust file.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |what: String| findings.push(format!("{}: {what}", file.path));
    if file.name() == "mod.rs" {
        find("modules are `foo.rs` beside `foo/`, never `mod.rs`".to_owned());
    }
    if let Some(what) = opening(&file.text) {
        find(what);
    }
    for (number, line) in (1_usize..).zip(file.text.lines()) {
        for (mark, instead) in unwanted() {
            if line.contains(&mark) {
                find(format!("line {number}: `{mark}`: {instead}"));
            }
        }
    }
    findings
}

/// Returns the fault in a file's opening, if any. A file that opens with an included document
/// passes.
fn opening(text: &str) -> Option<String> {
    if text.starts_with("#![doc = include_str!(") {
        return None;
    }
    let paragraph: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//! "))
        .collect();
    match paragraph.last() {
        None => Some("it must open with a `//!` sentence that says what it is".to_owned()),
        Some(last) if !last.trim_end().ends_with(['.', ':']) => {
            Some("its opening `//!` paragraph must be a sentence".to_owned())
        }
        Some(_) => None,
    }
}

/// Text forbidden in source, with the remedy for each. It is assembled from chunks so that this
/// file can be checked too.
fn unwanted() -> [(String, &'static str); 6] {
    let instead = "finish it, or leave it out";
    [
        (
            format!("#[{}(", "allow"),
            "`#[expect(…, reason = \"…\")]` says why and goes away when it is no longer true",
        ),
        (
            format!("#![{}(", "allow"),
            "`#![expect(…, reason = \"…\")]` says why and goes away when it is no longer true",
        ),
        (format!("{}!(", "todo"), instead),
        (format!("{}!(", "unimplemented"), instead),
        (format!("FIX{}", "ME"), instead),
        (format!("XX{}", "X"), instead),
    ]
}

/// Paths of somebody's machine, in any file.
#[must_use]
pub fn machine_paths(file: &TextFile) -> Vec<String> {
    let folders = ["work", "root", "farm"].map(|folder| format!("/{folder}/"));
    (1_usize..)
        .zip(file.text.lines())
        .flat_map(|(number, line)| {
            folders
                .iter()
                .filter(move |&folder| names_folder(line, folder))
                .map(move |folder| (number, folder))
        })
        .map(|(number, folder)| {
            format!(
                "{}: line {number}: the path of a machine: `{folder}`",
                file.path
            )
        })
        .collect()
}

/// Returns whether a line has an absolute path that starts with the folder. Its occurrence inside a
/// longer path does not count.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line
            .get(..at)
            .unwrap_or_default()
            .ends_with(|c: char| c.is_alphanumeric() || "._-})".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&TextFile::new(path, text)).len()
    }

    #[test]
    fn a_file_opens_with_a_sentence() {
        for (text, expected) in [
            ("//! What it is.\n", 0),
            ("//! What it is,\n//! at length.\n//!\n//! More of it\n", 0),
            ("//! For example:\n", 0),
            ("//! What it is\n", 1),
            ("#![doc = include_str!(\"../README.md\")]\n", 0),
            ("use std::fs;\n", 1),
            ("\n//! What it is.\n", 1),
            ("", 1),
        ] {
            assert_eq!(findings("host/a.rs", text), expected, "{text:?}");
        }
    }

    #[test]
    fn unfinished_work_and_bare_exceptions_are_found() {
        for chunk in ["allow(dead_code)", "allow(dead_code)]"] {
            assert_eq!(findings("host/a.rs", &format!("//! A.\n#[{chunk}")), 1);
            assert_eq!(findings("host/a.rs", &format!("//! A.\n#![{chunk}")), 1);
        }
        assert_eq!(findings("host/a.rs", &format!("//! A.\n{}!()", "todo")), 1);
        assert_eq!(findings("host/a/mod.rs", "//! A.\n"), 1);
    }

    #[test]
    fn a_path_of_a_machine_is_found_and_a_path_that_only_looks_like_one_is_not() {
        let found = |line: String| machine_paths(&TextFile::new("README.md", &line)).len();
        let folder = format!("/{}/", "work");
        assert_eq!(found(format!("cd {folder}main")), 1);
        assert_eq!(found(format!("\"{folder}x\"")), 1);
        assert_eq!(found(format!("examples{folder}x")), 0);
        assert_eq!(found("/workspace/x".to_owned()), 0);
    }
}

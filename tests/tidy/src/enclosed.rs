//! The rule on crates whose code reaches nothing outside of its process: they name no module of
//! the standard library that leads there.

use crate::masked::{Masked, behind_bracket, first_word, line_at, parts, words};
use crate::tree::TextFile;

/// The folders of the crates.
pub const FOLDERS: [&str; 1] = ["interpreters/shell/"];

/// The modules that lead outside: to files, processes, networks, and what the host's own process
/// was given. `self` and `*` are names for all of them.
const OUTSIDE: [&str; 7] = ["fs", "process", "net", "os", "env", "self", "*"];

/// Returns the places at which one Rust file of such a crate names a module that leads outside.
///
/// Tests do not count.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let is_enclosed = FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    if !is_enclosed || file.is_only_tests() {
        return Vec::new();
    }
    let code = Masked::new(&file.text).without_tests();
    words(&code, "std")
        .flat_map(|at| {
            let named = named(code.get(at..).unwrap_or_default());
            named.into_iter().map(move |module| (at, module))
        })
        .filter(|(_, module)| OUTSIDE.contains(module))
        .map(|(at, module)| {
            format!(
                "{}: line {}: `std::{module}` leads outside, and this crate must not",
                file.path,
                line_at(&code, at)
            )
        })
        .collect()
}

/// Returns the modules that a path which begins with `std` names; `self` where it names all of
/// `std`.
fn named(path: &str) -> Vec<&str> {
    let behind = path.strip_prefix("std").unwrap_or(path).trim_start();
    let Some(rest) = behind.strip_prefix("::").map(str::trim_start) else {
        return vec!["self"];
    };
    if rest.starts_with('{') {
        let end = behind_bracket(rest, 0);
        let group = rest.get(1..end.saturating_sub(1)).unwrap_or_default();
        return parts(group).into_iter().map(module).collect();
    }
    vec![module(rest)]
}

/// Returns the module with which the rest of a path begins.
fn module(rest: &str) -> &str {
    match rest.strip_prefix('*') {
        Some(_) => "*",
        None => first_word(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_leads_outside_is_found_however_it_is_named() {
        for (path, text, expected) in [
            ("line.rs", "use std::fs;", 1),
            ("line.rs", "use std::process::Command;", 1),
            (
                "line.rs",
                "fn f() { ::std::net::TcpStream::connect(a); }",
                1,
            ),
            ("line.rs", "use std::{collections::BTreeMap, fs::File};", 1),
            (
                "line.rs",
                "use std::{\n    env,\n    os::fd::OwnedFd,\n};",
                2,
            ),
            ("line.rs", "use std :: fs;", 1),
            ("line.rs", "use std::*;", 1),
            ("line.rs", "use std as s;", 1),
            ("line.rs", "use std::{self, mem};", 1),
            ("line.rs", "use std::collections::BTreeMap;", 0),
            ("line.rs", "use std::{fmt::Write, mem::{self, take}};", 0),
            ("line.rs", "// std::fs\nlet a = \"std::fs\";", 0),
            (
                "line.rs",
                "#[cfg(test)]\nmod tests { use std::process::Command; }",
                0,
            ),
            ("tests/attacks.rs", "use std::process::Command;", 0),
        ] {
            let file = TextFile::new(&format!("interpreters/shell/src/{path}"), text);
            assert_eq!(check(&file).len(), expected, "{path}: {text}");
        }
        let elsewhere = TextFile::new("host/store/src/a.rs", "use std::fs;");
        assert_eq!(check(&elsewhere).len(), 0);
    }
}

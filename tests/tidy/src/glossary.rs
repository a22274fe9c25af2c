//! The rule on the glossary: every word of ours is defined once, with a type that exists.

use crate::masked::{Masked, first_word, words};
use crate::tree::TextFile;
use std::collections::BTreeSet;

/// Words that the glossary must define. Others may stand there too.
pub const WORDS: [&str; 21] = [
    "account",
    "available",
    "basis",
    "ceiling",
    "driver",
    "effective authority",
    "input",
    "ledger",
    "limit",
    "memo",
    "news",
    "operation",
    "reserved",
    "run",
    "session",
    "slot",
    "spent",
    "step",
    "thread",
    "tree",
    "turn",
];

/// One word and the types that carry it.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The word.
    pub word: &'a str,
    /// The names of the types, without their paths.
    pub types: Vec<&'a str>,
}

/// Returns the entries of a glossary: paragraphs that open with a word in bold, and with the types
/// that carry it as code spans in parentheses.
#[must_use]
pub fn entries(document: &str) -> Vec<Entry<'_>> {
    document.lines().filter_map(entry).collect()
}

/// Returns the entry that a line opens, if it opens one.
fn entry(line: &str) -> Option<Entry<'_>> {
    let (word, rest) = line.strip_prefix("**")?.split_once("** (")?;
    let (carriers, _) = rest.split_once(')')?;
    let paths = carriers.split('`').skip(1).step_by(2);
    Some(Entry {
        word,
        types: paths
            .map(|path| path.rsplit("::").next().unwrap_or(path))
            .collect(),
    })
}

/// Returns the names of all types that the production source of the host declares.
#[must_use]
pub fn declared(files: &[TextFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let host = |file: &&TextFile| file.path.starts_with("host/") && !file.is_only_tests();
    for file in files.iter().filter(host) {
        let code = Masked::new(&file.text).code;
        for keyword in ["struct", "enum", "trait", "type"] {
            let behind = words(&code, keyword).filter_map(|at| code.get(at + keyword.len()..));
            names.extend(behind.map(|rest| first_word(rest).to_owned()));
        }
    }
    names
}

/// Returns what is wrong with a glossary.
#[must_use]
pub fn check(document: &str, declared: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for Entry { word, types } in entries(document) {
        if !seen.insert(word) {
            findings.push(format!("`{word}` is defined twice"));
        }
        if types.is_empty() {
            findings.push(format!("`{word}` names no type that carries it"));
        }
        for name in types.iter().filter(|name| !declared.contains(**name)) {
            findings.push(format!("`{word}`: there is no type `{name}`"));
        }
    }
    let missing = WORDS.iter().filter(|word| !seen.contains(**word));
    findings.extend(missing.map(|word| format!("`{word}` is not defined")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glossary(words: &[&str]) -> String {
        words
            .iter()
            .map(|word| format!("**{word}** (`domain::a::Run`). Says what.\nAnd more.\n\n"))
            .collect()
    }

    #[test]
    fn every_word_is_defined_once_with_a_type_that_exists() {
        let source = [TextFile::new(
            "host/a.rs",
            "pub struct Run;\n// struct No;\n",
        )];
        let declared = declared(&source);
        let check = |text: &str| check(text, &declared).len();
        assert_eq!(check(&glossary(&WORDS)), 0);
        assert_eq!(check(&glossary(&WORDS[1..])), 1);
        assert_eq!(check(&(glossary(&WORDS) + &glossary(&["run"]))), 1);
        assert_eq!(check(&(glossary(&WORDS) + "**more** (`No`). It is.\n")), 1);
        assert_eq!(check(&(glossary(&WORDS) + "**more** (none). It is.\n")), 1);
        assert_eq!(check(&(glossary(&WORDS) + "Some **bold** text.\n")), 0);
    }

    #[test]
    fn an_entry_names_its_types_without_their_paths() {
        assert_eq!(
            entries("**run** (`domain::run::Run`, `Driver`). It `is`.\n"),
            [Entry {
                word: "run",
                types: vec!["Run", "Driver"]
            }]
        );
    }
}

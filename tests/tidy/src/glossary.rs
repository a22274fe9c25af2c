//! The rule on the glossary: every word of ours is defined once, with a link to the file that
//! declares its type.

use crate::docs::resolve;
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
    /// The types that carry it.
    pub types: Vec<Carrier<'a>>,
}

/// A type that carries a word, and the file that the entry links to.
#[derive(Debug, PartialEq, Eq)]
pub struct Carrier<'a> {
    /// The path of the type, such as `domain::run::Run`.
    pub path: &'a str,
    /// The target of the link, relative to the glossary; empty without a link.
    pub target: &'a str,
}

/// Returns the entries of a glossary: paragraphs that open with a word in bold, and with the types
/// that carry it, each a link to its file, in parentheses.
#[must_use]
pub fn entries(document: &str) -> Vec<Entry<'_>> {
    document.lines().filter_map(entry).collect()
}

/// Returns the entry that a line opens, if it opens one.
fn entry(line: &str) -> Option<Entry<'_>> {
    let (word, rest) = line.strip_prefix("**")?.split_once("** (")?;
    let (carriers, _) = rest.split_once(").")?;
    Some(Entry {
        word,
        types: carriers.split(", ").map(carrier).collect(),
    })
}

/// Returns the type that one element of the list in parentheses names.
fn carrier(text: &str) -> Carrier<'_> {
    let (path, target) = text.split_once("](").unwrap_or((text, ""));
    Carrier {
        path: path.trim_matches(['[', '`']),
        target: target.trim_end_matches(')'),
    }
}

/// Returns whether the production code of a file declares a type of this name.
fn declares(file: &TextFile, name: &str) -> bool {
    let code = Masked::new(&file.text).without_tests();
    ["struct", "enum", "trait", "type"]
        .into_iter()
        .any(|keyword| {
            words(&code, keyword)
                .filter_map(|at| code.get(at + keyword.len()..))
                .any(|rest| first_word(rest) == name)
        })
}

/// Returns whether a file of the host may hold what stands at this path of Rust: it is in the
/// source of the crate, and the modules of the path are among its folders and its own name.
fn fits(path: &str, file: &str) -> bool {
    let mut segments = path.split("::");
    let package = segments.next().unwrap_or_default().replace('_', "-");
    let Some(inside) = file
        .strip_prefix(&format!("host/{package}/src/"))
        .and_then(|inside| inside.strip_suffix(".rs"))
    else {
        return false;
    };
    let mut components = inside.split('/');
    let modules: Vec<&str> = segments.collect();
    let (_, modules) = modules.split_last().unwrap_or((&"", &[]));
    modules
        .iter()
        .all(|module| components.any(|component| component == *module))
}

/// Returns what is wrong with one type of an entry, if something is.
fn fault(carrier: &Carrier<'_>, files: &[TextFile]) -> Option<String> {
    let Carrier { path, target } = carrier;
    let place = resolve("docs", target);
    let Some(file) = files.iter().find(|file| file.path == place) else {
        return Some(format!(
            "`{path}` has no link to its file: there is no `{place}`"
        ));
    };
    if !fits(path, &file.path) {
        return Some(format!("`{path}` cannot be in `{place}`"));
    }
    let name = path.rsplit("::").next().unwrap_or(path);
    (!declares(file, name)).then(|| format!("`{place}` declares no type `{name}`"))
}

/// Returns what is wrong with a glossary in `docs/`, given the files of the repository.
#[must_use]
pub fn check(document: &str, files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for Entry { word, types } in entries(document) {
        if !seen.insert(word) {
            findings.push(format!("`{word}` is defined twice"));
        }
        let faults = types.iter().filter_map(|carrier| fault(carrier, files));
        findings.extend(faults.map(|fault| format!("`{word}`: {fault}")));
    }
    let missing = WORDS.iter().filter(|word| !seen.contains(**word));
    findings.extend(missing.map(|word| format!("`{word}` is not defined")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "[`domain::run::Run`](../host/domain/src/events/run.rs)";

    fn glossary(words: &[&str]) -> String {
        words
            .iter()
            .map(|word| format!("**{word}** ({RUN}). Says what.\nAnd more.\n\n"))
            .collect()
    }

    #[test]
    fn every_word_is_defined_once_with_a_type_that_its_file_declares() {
        let source = [
            TextFile::new(
                "host/domain/src/events/run.rs",
                "pub struct Run;\n// struct No;\n#[cfg(test)]\nmod tests {\nstruct Test;\n}\n",
            ),
            TextFile::new("host/store/src/run.rs", "pub struct Run;\n"),
        ];
        let check = |text: &str| check(text, &source).len();
        assert_eq!(check(&glossary(&WORDS)), 0);
        assert_eq!(check(&glossary(&WORDS[1..])), 1);
        assert_eq!(check(&(glossary(&WORDS) + &glossary(&["run"]))), 1);
        for carriers in [
            "[`domain::run::No`](../host/domain/src/events/run.rs)",
            "[`domain::run::Test`](../host/domain/src/events/run.rs)",
            "[`domain::step::Run`](../host/domain/src/events/run.rs)",
            "[`domain::run::Run`](../host/domain/src/run.rs)",
            "[`domain::run::Run`](../host/store/src/run.rs)",
            "`domain::run::Run`",
            "none",
        ] {
            let more = format!("**more** ({carriers}). It is.\n");
            assert_eq!(check(&(glossary(&WORDS) + &more)), 1, "{carriers}");
        }
        assert_eq!(check(&(glossary(&WORDS) + "Some **bold** text.\n")), 0);
    }

    #[test]
    fn an_entry_names_its_types_with_their_files() {
        let line = "**run** ([`domain::run::Run`](../a.rs), `Driver`). It `is`.\n";
        let run = Carrier {
            path: "domain::run::Run",
            target: "../a.rs",
        };
        let driver = Carrier {
            path: "Driver",
            target: "",
        };
        assert_eq!(
            entries(line),
            [Entry {
                word: "run",
                types: vec![run, driver]
            }]
        );
    }
}

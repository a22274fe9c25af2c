//! Names that this repository has given up for the terms of the field.

use crate::docs::spans;
use crate::masked::{Masked, first_word, functions, is_of_word, line_at, words};
use crate::tree::TextFile;

/// Types that have another name by now.
const TYPES: [(&str, &str); 12] = [
    ("Outfit", "resolved config"),
    ("Beside", "commit extras"),
    ("Shelf", "write overlay"),
    ("Book", "audit recorder"),
    ("Dossier", "call audit"),
    ("Senses", "clock and randomness"),
    ("Glances", "point reads"),
    ("Ballast", "reserved space"),
    ("Veil", "log redaction"),
    ("Trouble", "driver error"),
    ("Mishap", "attempt error"),
    ("Became", "turn outcome"),
];

/// Functions that are no verbs.
const FUNCTIONS: [(&str, &str); 3] = [
    ("told", "`told` is no verb: say what it returns or does"),
    ("word", "a string of a value is `as_str`"),
    ("words", "what waits is `messages` or `inputs`"),
];

/// The beginning of functions' names that say no more than that something happened.
const CAME: &str = "came_";

/// Returns the names of one Rust file that are not used any more.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let code = Masked::new(&file.text).without_tests();
    let types = ["struct", "enum", "trait", "type", "union"]
        .into_iter()
        .flat_map(|keyword| words(&code, keyword).map(move |at| at + keyword.len()))
        .filter_map(|at| {
            let name = first_word(code.get(at..)?);
            let (_, instead) = TYPES.iter().find(|(banned, _)| *banned == name)?;
            Some((
                line_at(&code, at),
                format!("`{name}` is called {instead} here"),
            ))
        });
    let functions = functions(&code).into_iter().filter_map(|function| {
        let listed = FUNCTIONS.iter().find(|(name, _)| *name == function.name);
        let what = match listed {
            Some((_, what)) => (*what).to_owned(),
            None if function.name.starts_with(CAME) => {
                format!("`{}` says nothing of what it does", function.name)
            }
            None => return None,
        };
        Some((function.line, what))
    });
    types
        .chain(functions)
        .map(|(line, what)| format!("{}: line {line}: {what}", file.path))
        .collect()
}

/// Returns the names of types in a document's code spans that are not used any more.
#[must_use]
pub fn check_document(document: &TextFile) -> Vec<String> {
    let spans = spans(&document.text);
    let names = spans
        .iter()
        .flat_map(|span| span.split(|c: char| !is_of_word(c)));
    names
        .filter_map(|name| TYPES.iter().find(|(banned, _)| *banned == name))
        .map(|(name, instead)| format!("{}: `{name}` is called {instead} here", document.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_given_up_is_found_in_the_code_spans_of_a_document() {
        let text = "A Book of `broker::Outfit` and\n`Ballast`, `ballast`.\n```\n`Veil`\n```\n";
        assert_eq!(check_document(&TextFile::new("a.md", text)).len(), 2);
    }

    #[test]
    fn a_name_that_was_given_up_is_found_where_it_is_declared() {
        for (text, expected) in [
            ("pub(crate) struct Outfit {", 1),
            ("enum Became { A }", 1),
            ("type Book = Vec<u8>;", 1),
            ("struct Bookmark;", 0),
            ("let book: Book = x;", 0),
            ("// struct Outfit", 0),
            ("fn told(&self) -> String {}", 1),
            ("pub async fn came_of(x: u8) {}", 1),
            ("fn words(&self) {}", 1),
            ("fn word_count() {}", 0),
            ("fn overcame_it() {}", 0),
            ("#[cfg(test)]\nmod tests { fn told() {} }", 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }
}

//! Names that this repository has given up for the terms of the field.

use crate::docs::spans;
use crate::masked::{Masked, first_word, functions, is_of_word, line_at, words};
use crate::tree::TextFile;
use std::collections::BTreeMap;

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

/// Words that a name has at most where it is looked at. A longer one is a sentence, as a test's is.
const NAME_WORDS_MAX: usize = 4;

/// Files that speak of the frozen interface, in its words.
const FROZEN: [&str; 2] = ["host/runtime/src/exports/", "tests/programs/older-"];

/// Names with a word that was given up, in its plain English sense or from elsewhere.
const NAMES: [&str; 4] = ["carried_out", "carry_out", "look_up", "HirKind::Look"];

/// A word that had a meaning of its own here, and the term of the field that has its place.
#[derive(Debug, PartialEq, Eq)]
pub struct GivenUp<'a> {
    /// The word.
    pub word: &'a str,
    /// The term.
    pub term: &'a str,
    /// True if it is refused in texts too, and not in names alone.
    pub in_texts: bool,
}

/// Returns the words that a glossary gives up: the rows of its table.
#[must_use]
pub fn given_up(glossary: &str) -> Vec<GivenUp<'_>> {
    let rows = glossary.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [word, term, place, ..] = cells[..] else {
            return None;
        };
        let in_texts = place == "names and texts";
        (in_texts || place == "names").then_some(GivenUp {
            word,
            term,
            in_texts,
        })
    });
    rows.collect()
}

/// Returns the words of a name, in lower case: of `snake_case`, of `CamelCase` and of constants.
fn words_of(name: &str) -> Vec<String> {
    let is_camel = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let mut parts: Vec<String> = vec![String::new()];
    for c in name.chars() {
        if c == '_' || (is_camel && c.is_uppercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns whether a word is this one, or the plural of it.
fn is_word(word: &str, given_up: &str) -> bool {
    let stem = given_up.strip_suffix('y');
    let plural = stem.is_some_and(|stem| word.strip_suffix("ies") == Some(stem));
    plural || word == given_up || word.strip_suffix('s') == Some(given_up)
}

/// Returns the names of one Rust file that have a word which was given up, each with its first
/// line, and the words in its comments that are refused there.
#[must_use]
pub fn check_words(file: &TextFile, given_up: &[GivenUp<'_>]) -> Vec<String> {
    if FROZEN.iter().any(|path| file.path.starts_with(path)) {
        return Vec::new();
    }
    let masked = Masked::new(&file.text);
    let code = &masked.code;
    let mut names: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut at = 0;
    for name in code.split(|c: char| !is_of_word(c)) {
        let begin = at;
        at += name.len() + code.get(at + name.len()..).map_or(0, first_length);
        let before = code.get(..begin).unwrap_or_default();
        let is_known = NAMES.iter().any(|known| match known.rsplit_once("::") {
            Some((path, last)) => last == name && before.ends_with(&format!("{path}::")),
            None => *known == name,
        });
        let parts = words_of(name);
        let is_camel = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        if name.is_empty() || is_known || (!is_camel && parts.len() > NAME_WORDS_MAX) {
            continue;
        }
        let found = given_up
            .iter()
            .find(|it| parts.iter().any(|part| is_word(part, it.word)));
        if let Some(found) = found {
            names.entry(name).or_insert((begin, found.term));
        }
    }
    let in_comments = masked.comments.iter().filter_map(|range| {
        let found = first_in_text(file.text.get(range.clone())?, given_up)?;
        Some((
            range.start,
            format!("`{}` is {} here", found.word, found.term),
        ))
    });
    let in_names = names
        .into_iter()
        .map(|(name, (at, term))| (at, format!("`{name}` has a word for which there is {term}")));
    in_names
        .chain(in_comments)
        .map(|(at, what)| format!("{}: line {}: {what}", file.path, line_at(&file.text, at)))
        .collect()
}

/// Returns the length of the first character of a text.
fn first_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Returns the first word of a text that is refused in texts.
fn first_in_text<'a>(text: &str, given_up: &'a [GivenUp<'a>]) -> Option<&'a GivenUp<'a>> {
    // A header such as `X-GitHub-Delivery` is one word.
    let mut words = text.split(|c: char| !is_of_word(c) && c != '-');
    words.find_map(|word| {
        let word = word.to_lowercase();
        let mut refused = given_up.iter().filter(|it| it.in_texts);
        refused.find(|it| is_word(&word, it.word))
    })
}

/// Returns the lines of a document with a word that is refused in texts.
#[must_use]
pub fn check_text(document: &TextFile, given_up: &[GivenUp<'_>]) -> Vec<String> {
    (1_usize..)
        .zip(document.text.lines())
        .filter_map(|(number, line)| {
            let GivenUp { word, term, .. } = first_in_text(line, given_up)?;
            let path = &document.path;
            Some(format!("{path}: line {number}: `{word}` is {term} here"))
        })
        .collect()
}

/// Returns how often each of these words stands in the comments of Rust files and in documents.
#[must_use]
pub fn habits(files: &[TextFile], habits: &[(&str, usize)]) -> Vec<usize> {
    let mut counts = vec![0; habits.len()];
    let mut count = |text: &str| {
        for word in text.split(|c: char| !is_of_word(c)) {
            if let Some(at) = habits.iter().position(|(habit, _)| *habit == word)
                && let Some(count) = counts.get_mut(at)
            {
                *count += 1;
            }
        }
    };
    for file in files {
        if file.is("md") {
            count(&file.text);
        } else if file.is("rs") {
            let comments = Masked::new(&file.text).comments;
            let texts = comments
                .into_iter()
                .filter_map(|range| file.text.get(range));
            texts.for_each(&mut count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: &str = "| word | term | refused in |\n|---|---|---|\n\
        | delivery | outbound message | names and texts |\n| told | reported | names |\n";

    #[test]
    fn a_word_that_was_given_up_is_found_in_names_and_texts() {
        let words = given_up(GLOSSARY);
        assert_eq!(words.len(), 2);
        for (text, expected) in [
            ("struct DeliveryRow;", 1),
            ("let deliveries = 1;", 1),
            ("const TOLD_MAX: u8 = 1;", 1),
            ("fn is_told() {} fn is_told() {}", 1),
            ("fn a_reply_is_told_to_nobody() {}", 0),
            ("// it is told", 0),
            ("// a delivery of `X-GitHub-Delivery`", 1),
            ("// `X-GitHub-Delivery`", 0),
            ("let undelivered = \"delivery\";", 0),
        ] {
            let file = TextFile::new("host/a.rs", text);
            assert_eq!(check_words(&file, &words).len(), expected, "{text}");
        }
        let older = TextFile::new("host/runtime/src/exports/a.rs", "struct Delivery;");
        assert_eq!(check_words(&older, &words).len(), 0);
        let document = TextFile::new("a.md", "Deliveries.\nIt is told.\n");
        assert_eq!(check_text(&document, &words).len(), 1);
    }

    #[test]
    fn habits_are_counted_in_comments_and_documents() {
        let files = [
            TextFile::new("a.md", "It is told and told."),
            TextFile::new("a.rs", "// told\nfn told() {}"),
        ];
        assert_eq!(habits(&files, &[("told", 0), ("came", 0)]), [3, 0]);
    }

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

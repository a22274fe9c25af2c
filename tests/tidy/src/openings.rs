//! The rule on doc comments: each opens with a noun phrase or with a verb in the third person.

use crate::tree::TextFile;

/// Words that open a question, a clause or a leftover of a sentence, and no description.
const REFUSED: [&str; 24] = [
    "What",
    "Whatever",
    "How",
    "However",
    "Whether",
    "Which",
    "Whichever",
    "Where",
    "Wherever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
    "When",
    "Whenever",
    "Of",
    "Those",
    "That",
    "If",
    "Because",
    "Than",
    "Then",
    "And",
];

/// Returns the doc comments of one Rust file that open with a refused word.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    let mut before = None;
    for (number, line) in (1_usize..).zip(file.text.lines()) {
        let doc = doc(line);
        let mark = doc.map(|(mark, _)| mark);
        if let Some((_, text)) = doc
            && mark != before
            && let Some(word) = refused(text)
        {
            findings.push(format!(
                "{}: line {number}: a doc comment that opens with `{word}`: open it with a noun \
                 phrase or a verb",
                file.path
            ));
        }
        before = mark;
    }
    findings
}

/// Returns the mark of a doc comment's line and the text behind it.
fn doc(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//!"].into_iter().find_map(|mark| {
        let text = line.strip_prefix(mark)?;
        (!text.starts_with('/')).then_some((mark, text))
    })
}

fn refused(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(text.len());
    text.get(..end).filter(|word| REFUSED.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_that_opens_with_a_question_is_found() {
        for (text, expected) in [
            ("/// What it is.\n", 1),
            ("    /// How many; none for no limit.\n", 1),
            ("//! Where it stands.\n", 1),
            ("/// Those that are left.\n", 1),
            ("/// Who's there.\n", 1),
            ("/// A run.\n///\n/// What it is.\n", 0),
            ("/// A run.\nstruct Run;\n/// When it began.\n", 1),
            ("// What it is.\n", 0),
            ("/// Whatsoever.\n", 0),
            ("/// Offers it.\n", 0),
            ("/// Returns whether it is open.\n", 0),
            ("//// What.\n", 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }
}

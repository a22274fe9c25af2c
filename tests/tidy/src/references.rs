//! The rule on references: ids of requirements and designs stay in docs/requirements.md.

use crate::masked::{Masked, is_of_word, line_at};
use crate::tree::TextFile;

/// Letters of the ids that must not stand in a comment.
const LETTERS: [char; 2] = ['S', 'B'];

/// Returns the comments of one Rust file that refer to an id, such as `S1.15` or `B3`.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let masked = Masked::new(&file.text);
    let ids = masked.comments.iter().flat_map(|range| {
        let comment = file.text.get(range.clone()).unwrap_or_default();
        comment
            .split(|c: char| !is_of_word(c) && c != '.' && c != '%')
            .map(|word| word.trim_end_matches('.'))
            .filter(|word| is_id(word))
            .map(move |word| (line_at(&file.text, range.start), word))
    });
    ids.map(|(line, id)| {
        format!(
            "{}: line {line}: `{id}`: say it in words, the id stays in docs/requirements.md",
            file.path
        )
    })
    .collect()
}

fn is_id(word: &str) -> bool {
    let Some(number) = word.strip_prefix(LETTERS) else {
        return false;
    };
    let parts: Vec<&str> = number.split('.').collect();
    let is_number = |part: &&str| {
        (1..=2).contains(&part.len()) && part.chars().all(|digit| digit.is_ascii_digit())
    };
    parts.len() <= 2 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_in_a_comment_only() {
        for (text, expected) in [
            ("/// A call (S3.3, S3.18–S3.20).\n", 3),
            ("//! The agent, as in design S0.\n", 1),
            ("// Against B12.\n", 1),
            ("let x = \"S3.3\";\n", 0),
            ("struct S3;\n", 0),
            ("/// Stored in S3Bucket, SHA1 or B.\n", 0),
            ("/// `%C3%B6`, S2025.\n", 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }
}

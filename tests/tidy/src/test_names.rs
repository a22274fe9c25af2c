//! The rule on names of tests: a longer sentence is the doc comment of its test.

use crate::masked::{Masked, first_word, line_at, words};
use crate::tree::TextFile;

/// Characters of a test's name.
pub const CHARACTERS_MAX: usize = 80;

/// Returns the tests of one Rust file whose names are too long.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let code = Masked::new(&file.text).code;
    let marks = ["#[test]", "#[tokio::test"];
    let tests = marks
        .into_iter()
        .flat_map(|mark| code.match_indices(mark).map(|(at, _)| at))
        .filter_map(|at| {
            let rest = code.get(at..)?;
            let function = words(rest, "fn").next()? + "fn".len();
            Some((line_at(&code, at), first_word(rest.get(function..)?)))
        });
    tests
        .filter(|(_, name)| name.chars().count() > CHARACTERS_MAX)
        .map(|(line, name)| {
            format!(
                "{}: line {line}: `{name}` has more than {CHARACTERS_MAX} characters",
                file.path
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_found_on_a_test_only() {
        let long = "a".repeat(CHARACTERS_MAX + 1);
        let short = "a".repeat(CHARACTERS_MAX);
        for (text, expected) in [
            (format!("#[test]\nfn {long}() {{}}"), 1),
            (format!("#[test]\n#[ignore]\nfn {long}() {{}}"), 1),
            (
                format!("#[tokio::test(flavor = \"x\")]\nasync fn {long}() {{}}"),
                1,
            ),
            (format!("#[test]\nfn {short}() {{}}\nfn {long}() {{}}"), 0),
            (format!("fn {long}() {{}}"), 0),
            (format!("// #[test]\nfn {long}() {{}}"), 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", &text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }
}

//! Matches of patterns, the same as globset's wherever letters are bytes.

use super::*;
use globset::GlobBuilder;
use proptest::prelude::*;

fn matches(pattern: &str, path: &str) -> bool {
    let pattern = Pattern::parse(pattern).unwrap_or_else(|error| panic!("`{pattern}` {error}"));
    pattern.matches(&names(path))
}

fn names(path: &str) -> Vec<Vec<char>> {
    path.split('/').map(|name| name.chars().collect()).collect()
}

fn by_globset(pattern: &str, path: &str) -> bool {
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).empty_alternates(true);
    builder.backslash_escape(false);
    builder.build().unwrap().compile_matcher().is_match(path)
}

#[test]
fn groups_classes_stars_and_question_marks_match_as_globset_has_them() {
    for (pattern, path, expected) in [
        ("*.{js,ts}", "a.ts", true),
        ("*.{js,ts}", "a.rs", false),
        ("{a,b{c,d}}.x", "bd.x", true),
        ("a{,.bak}", "a", true),
        ("a{,.bak}", "a.bak", true),
        ("{src,tests}/**/*.rs", "tests/a/b.rs", true),
        ("b[12].*", "b2.ts", true),
        ("b[!12].*", "b2.ts", false),
        ("b[^12].*", "b3.ts", true),
        ("[]x]", "]", true),
        ("[!]]", "]", false),
        ("[a-c-]", "-", true),
        ("[{]", "{", true),
        ("a[*]", "a*", true),
        ("a[*]", "ab", false),
        ("src/*", "src/a/b", false),
        ("**/x", "x", true),
        ("a**c", "abc", true),
    ] {
        assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        assert_eq!(
            by_globset(pattern, path),
            expected,
            "globset: {pattern} on {path}"
        );
    }
}

/// The reason why globset itself does not decide: what an operator denies by one letter would not
/// be denied.
#[test]
fn a_letter_is_one_letter_in_every_script_and_is_not_for_globset() {
    for (pattern, path) in [("?.key", "ü.key"), ("[äö].md", "ö.md"), ("[!x]", "日")] {
        assert!(matches(pattern, path), "{pattern} on {path}");
        assert!(!by_globset(pattern, path), "globset: {pattern} on {path}");
    }
}

#[test]
fn what_is_no_pattern_names_the_sign() {
    for (wrong, said) in [
        ("a[b", "`[`"),
        ("a[", "`[`"),
        ("{a,b", "`{`"),
        ("a}", "`}`"),
        ("[z-a]", "`[z-a]`"),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "64"),
    ] {
        let error = Pattern::parse(wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

proptest! {
    #[test]
    fn globset_says_the_same_of_letters_that_are_bytes(
        parts in prop::collection::vec("[ab*?]{1,3}|\\*\\*|[ab]\\{[ab*]{0,2},[ab]\\}|\\[!?[ab]\\]", 1..4),
        path in "[abc]{1,3}(/[abc]{1,3}){0,3}",
    ) {
        let pattern = parts.join("/");
        // Within a name, and at its end, the two differ on purpose: see the docs of the grants.
        prop_assume!(!parts.iter().any(|part| part != "**" && part.contains("**")));
        prop_assume!(parts.last().is_none_or(|last| last != "**"));
        prop_assert_eq!(matches(&pattern, &path), by_globset(&pattern, &path), "{} on {}", pattern, path);
    }
}

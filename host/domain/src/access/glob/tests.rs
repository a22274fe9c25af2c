//! Patterns and paths in tables, and that no spelling of a path gets another answer.

mod fuzz;

use super::*;
use crate::access::grant::{Access, Barred, DirectoryGrant};
use proptest::prelude::*;

fn glob(text: &str) -> Glob {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn globs(texts: &[&str]) -> Vec<Glob> {
    texts.iter().map(|text| glob(text)).collect()
}

fn grant(allow: Option<&[&str]>, deny: &[&str]) -> DirectoryGrant {
    DirectoryGrant {
        allow: allow.map(globs),
        deny: globs(deny),
        ..DirectoryGrant::whole("/f", "/f", Access::ReadWrite)
    }
}

fn inside(path: &str) -> Inside {
    grant(None, &[]).reach(&Inside::default(), path).unwrap()
}

#[test]
fn patterns_match_whole_paths_from_the_folder_on() {
    for (pattern, path, expected) in [
        ("a.md", "a.md", true),
        ("a.md", "deep/a.md", false),
        ("*.md", "a.md", true),
        ("*.md", "deep/a.md", false),
        ("*.md", ".md", true),
        ("*.md", "a.mdx", false),
        ("**/*.md", "a.md", true),
        ("**/*.md", "b/c/a.md", true),
        ("?.txt", "ü.txt", true),
        ("?.txt", ".txt", false),
        ("?.txt", "ab.txt", false),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "axxbyy", false),
        ("src/*.rs", "src/lib.rs", true),
        ("src/*.rs", "src/deep/lib.rs", false),
        ("src/**/*.rs", "src/lib.rs", true),
        ("src/**/*.rs", "src/a/b/lib.rs", true),
        ("src/**", "src/a/b", true),
        ("src/**", "src", true),
        ("src/**", "srcs/a", false),
        ("**", "a/b/c", true),
        ("**", "", false),
        ("*", "", false),
        ("*", ".hidden", true),
        ("*", "a/b", false),
        ("A", "a", false),
        ("**/x/**/y", "x/y", true),
        ("**/x/**/y", "a/x/b/c/y", true),
        ("**/x/**/y", "a/b/y", false),
    ] {
        assert_eq!(
            glob(pattern).matches(&inside(path)),
            expected,
            "{pattern} on {path}"
        );
    }
}

#[test]
fn a_pattern_has_one_spelling_and_what_is_none_says_what_to_write() {
    for (given, normal) in [
        ("./a", "a"),
        ("a//b", "a/b"),
        ("a/", "a"),
        ("a/./b/", "a/b"),
        ("**/**/a", "**/a"),
        ("a b", "a b"),
    ] {
        assert_eq!(glob(given).to_string(), normal);
        assert_eq!(glob(given), glob(normal));
    }
    for (wrong, fix) in [
        ("", "write `**`"),
        (".", "write `**`"),
        ("./", "write `**`"),
        ("/etc", "write `etc`"),
        ("a/../b", "without"),
        ("..", "without"),
        ("a\\b", "write `/`"),
        ("a**", "write `*`"),
        ("***", "write `*`"),
        ("*.{pem,key}", "one pattern for each"),
        ("[ab]", "one pattern for each"),
        ("!a", "one pattern for each"),
        (".//!a", "one pattern for each"),
        ("a\0", "write `?`"),
        (&"a".repeat(PATTERN_BYTES_MAX + 1), "1024 is the most"),
    ] {
        let error = wrong.parse::<Glob>().unwrap_err().to_string();
        assert!(error.contains(fix), "{wrong}: {error}");
    }
    assert_eq!(serde_json::to_string(&glob("./a//b")).unwrap(), r#""a/b""#);
    assert!(serde_json::from_str::<Glob>(r#""../a""#).is_err());
}

#[test]
fn a_deny_wins_and_takes_all_that_is_inside_with_it() {
    let some: Option<&[&str]> = Some(&["**/*.md", "notes/*"]);
    for (allow, deny, path, expected) in [
        (None, [].as_slice(), "a/b", Ok(true)),
        (None, &["secret"], "secret", Err(Barred::Denied)),
        (None, &["secret"], "secret/deep/er", Err(Barred::Denied)),
        (None, &["secret"], "secrets", Ok(true)),
        (None, &["**/.env"], "a/.env/x", Err(Barred::Denied)),
        (None, &["a/**"], "a", Err(Barred::Denied)),
        (None, &["a/*"], "a", Ok(true)),
        (None, &["a/*"], "a/b", Err(Barred::Denied)),
        (some, &[], "x.md", Ok(true)),
        (some, &[], "x.txt", Ok(false)),
        (some, &[], "notes", Ok(false)),
        (some, &[], "notes/x.txt", Ok(true)),
        (some, &[], "notes/deep/x.txt", Ok(false)),
        (some, &["notes"], "notes/x.md", Err(Barred::Denied)),
        (some, &["**/x.md"], "a/x.md", Err(Barred::Denied)),
        (None, &["secret"], "secret/../a", Err(Barred::Denied)),
        (None, &["secret"], "a/../secret", Err(Barred::Denied)),
        (None, &[], "..", Err(Barred::Outside)),
        (None, &[], "a/../../b", Err(Barred::Outside)),
        (None, &[], "/a", Err(Barred::Outside)),
        (None, &[], "//a", Err(Barred::Outside)),
    ] {
        let grant = grant(allow, deny);
        let found = grant
            .reach(&Inside::default(), path)
            .map(|reached| grant.allows_file(&reached));
        assert_eq!(found, expected, "{allow:?} {deny:?} on {path}");
    }
}

#[test]
fn nothing_leads_out_of_the_folder_that_was_opened() {
    let grant = grant(None, &[]);
    let from = inside("a/b");
    assert_eq!(grant.reach(&from, "c").unwrap().to_string(), "a/b/c");
    assert_eq!(grant.reach(&from, "c/..").unwrap(), from);
    assert_eq!(grant.reach(&from, "../b"), Err(Barred::Outside));
}

#[test]
fn one_pattern_covers_another_when_that_is_plain_to_see() {
    for (pattern, other, expected) in [
        ("**", "a/*.md", true),
        ("*", "**/*.md", true),
        ("*", "a", true),
        ("src", "src/**/*.rs", true),
        ("src/**", "src/*.rs", true),
        ("**/*.rs", "src/*.rs", true),
        ("*.r?", "*.rs", true),
        ("*.?", "*.*", false),
        ("src/*.rs", "src/**", false),
        ("src/a", "src", false),
        ("a", "b", false),
        ("*/b", "**/b", false),
    ] {
        assert_eq!(
            glob(pattern).covers(&glob(other)),
            expected,
            "{pattern} over {other}"
        );
    }
}

/// A path, and another way to write it.
fn spellings() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec!["a", "b", "ab", "secret", ".env", "x.md"]);
    prop::collection::vec((name, 0..5_u8), 1..6).prop_map(|names| {
        let normal: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let odd = names.iter().map(|(name, way)| match way {
            0 => format!("{name}/"),
            1 => format!("./{name}//"),
            2 => format!("{name}/../{name}/"),
            3 => format!("././././{name}/./"),
            _ => format!("{name}///"),
        });
        (normal.join("/"), odd.collect())
    })
}

fn patterns() -> impl Strategy<Value = Vec<Glob>> {
    let part = prop::sample::select(vec!["a", "b", "*", "**", "?b", "s*t", ".env", "*.md"]);
    let pattern = prop::collection::vec(part, 1..4).prop_map(|parts| glob(&parts.join("/")));
    prop::collection::vec(pattern, 0..3)
}

proptest! {
    #[test]
    fn every_spelling_of_a_path_gets_the_same_answer((normal, odd) in spellings(), allow in patterns(), deny in patterns()) {
        let whole = DirectoryGrant::whole("/f", "/f", Access::ReadWrite);
        let grant = DirectoryGrant { allow: Some(allow), deny, ..whole };
        let answer = |path: &str| grant.reach(&Inside::default(), path).map(|reached| (grant.allows_file(&reached), reached));
        prop_assert_eq!(answer(&normal), answer(&odd));
    }

    #[test]
    fn what_a_pattern_covers_it_denies(cover in patterns(), (path, _) in spellings(), other in patterns()) {
        let path = inside(&path);
        for (cover, other) in cover.iter().zip(&other) {
            if cover.covers(other) && other.matches(&path) {
                prop_assert!(path.is_within_any(std::slice::from_ref(cover)), "{cover} over \
                    {other} on {path}");
            }
        }
    }
}

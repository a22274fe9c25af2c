//! Fuzz target: patterns and paths of any letters get the answer that a slow and plain matcher
//! gives.

use super::super::*;
use crate::access::grant::{Access, Barred, DirectoryGrant};

const CHUNKS: [&str; 16] = [
    "a", "b", "*", "?", "**", "/", "/", ".", "..", "A", ".env", "ü", "\\", "[", "\0", "!",
];
/// Chunks of a pattern and of a path. The plain matcher takes time that grows as a power of them.
const CHUNKS_MAX: usize = 12;

fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(CHUNKS_MAX)
        .filter_map(|byte| CHUNKS.get(usize::from(byte % 16)))
        .copied()
        .collect()
}

fn letters(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) if letters(rest, name) => true,
        (['*', ..], [_, further @ ..]) => letters(pattern, further),
        ([wanted, rest @ ..], [letter, further @ ..]) => {
            (*wanted == '?' || wanted == letter) && letters(rest, further)
        }
        _ => false,
    }
}

fn names(pattern: &[Vec<char>], path: &[Vec<char>]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([any, rest @ ..], _) if any == &['*', '*'] => {
            names(rest, path)
                || path
                    .split_first()
                    .is_some_and(|(_, path)| names(pattern, path))
        }
        ([wanted, rest @ ..], [name, further @ ..]) => {
            letters(wanted, name) && names(rest, further)
        }
        _ => false,
    }
}

fn split(text: &str) -> Vec<Vec<char>> {
    text.split('/')
        .filter(|name| !name.is_empty())
        .map(|name| name.chars().collect())
        .collect()
}

#[test]
fn any_pattern_and_path_get_the_answer_of_a_plain_matcher() {
    bolero::check!()
        .with_type::<([Vec<u8>; 3], Vec<u8>)>()
        .for_each(|(patterns, path)| {
            let [allow, deny, other] = patterns
                .each_ref()
                .map(|pattern| text(pattern).parse::<Glob>());
            for pattern in [&allow, &deny, &other].into_iter().flatten() {
                assert_eq!(
                    pattern.to_string().parse().as_ref(),
                    Ok(pattern),
                    "it reads as itself again"
                );
            }
            let (Ok(allow), Ok(deny)) = (allow, deny) else {
                return;
            };
            let path = text(path);
            let grant = DirectoryGrant {
                allow: Some(vec![allow.clone()]),
                deny: vec![deny.clone()],
                ..DirectoryGrant::whole("/f", "/f", Access::ReadOnly)
            };
            let is = |pattern: &Glob, path: &[Vec<char>]| {
                !path.is_empty() && names(&split(&pattern.to_string()), path)
            };
            match grant.reach(&Inside::default(), &path) {
                Ok(reached) => {
                    let plain = split(&reached.to_string());
                    assert!(
                        plain
                            .iter()
                            .all(|name| name != &['.'] && name != &['.', '.']),
                        "{path} is {reached}"
                    );
                    assert!(
                        (1..=plain.len()).all(|end| !is(&deny, &plain[..end])),
                        "{deny} denies {path}"
                    );
                    assert_eq!(
                        grant.allows_file(&reached),
                        is(&allow, &plain),
                        "{allow} on {path}"
                    );
                    assert_eq!(
                        grant.reach(&Inside::default(), &reached.to_string()),
                        Ok(reached.clone())
                    );
                    if let Ok(other) = &other
                        && other.covers(&allow)
                        && allow.matches(&reached)
                    {
                        assert!(
                            reached.is_within_any(std::slice::from_ref(other)),
                            "{other} covers {allow} and not {reached}"
                        );
                    }
                }
                Err(Barred::Outside) => {
                    assert!(path.starts_with('/') || path.contains(".."), "{path}")
                }
                Err(Barred::Denied) => assert!(!path.starts_with('/'), "{path}"),
            }
        });
}

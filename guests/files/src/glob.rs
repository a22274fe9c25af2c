//! Glob patterns: `*` and `?` within a name, `**` for any number of folders.

/// Bytes of a pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 256;

/// Returns true if a path, with `/` between its names, matches. A pattern without a slash is about
/// the name alone, wherever it is.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    if !pattern.contains('/') && pattern != "**" {
        let name = path.rsplit('/').next().unwrap_or(path);
        return name_matches(pattern, name);
    }
    let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let path: Vec<&str> = path.split('/').collect();
    sequence_matches(
        &pattern,
        &path,
        |part| *part == "**",
        |part, name| name_matches(part, name),
    )
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    sequence_matches(&pattern, &name, |c| *c == '*', |p, c| *p == '?' || p == c)
}

/// Matches a sequence where some elements of the pattern stand for any run. Trying again only from
/// the last such element is enough, so the work is at most the product of both lengths.
fn sequence_matches<P, T>(
    pattern: &[P],
    items: &[T],
    is_any: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let mut p = 0;
    let mut i = 0;
    let mut retry: Option<(usize, usize)> = None;
    while let Some(item) = items.get(i) {
        match pattern.get(p) {
            Some(part) if is_any(part) => {
                retry = Some((p, i));
                p += 1;
            }
            Some(part) if one(part, item) => {
                p += 1;
                i += 1;
            }
            Some(_) | None => {
                let Some((any, from)) = retry else {
                    return false;
                };
                retry = Some((any, from + 1));
                p = any + 1;
                i = from + 1;
            }
        }
    }
    pattern.iter().skip(p).all(is_any)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "deep/a.md", true),
            ("*.md", "a.mdx", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "ab.txt", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/deep/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("src/**/*.rs", "src/a/b/lib.rs", true),
            ("**/lib.rs", "lib.rs", true),
            ("**", "a/b/c", true),
            ("src/**", "src/a", true),
            ("src/**", "other/a", false),
            ("*", "ü", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }
}

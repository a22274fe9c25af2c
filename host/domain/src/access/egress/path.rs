//! Paths: the normal form in which a path is compared and sent, and operators' patterns for paths.

use crate::values::text::serde_as_text;
use agent_host_glob::{name_matches, run_matches};
use std::fmt;

/// Writes a path or a query so that equivalent spellings become one (RFC 3986, section 6.2.2).
/// Escapes of characters that need none are undone; the others get upper-case digits. None if an
/// escape is cut short or invalid.
pub(super) fn normalised(text: &str) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        written.push_str(before);
        let digits = after
            .get(..2)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let byte = u8::from_str_radix(digits, 16).ok()?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(byte.into());
        } else {
            written.push('%');
            written.push_str(&digits.to_ascii_uppercase());
        }
        rest = after.get(2..)?;
    }
    written.push_str(rest);
    Some(written)
}

/// The paths that a grant covers.
///
/// It is compared part by part: `*` is any run of characters inside a part, a part `**` is any
/// number of parts, including none. `/**` is every path, `/v1/**` is `/v1` and all below it,
/// `/v1/*` is one part below it. Every other pattern than `/**` refuses a path that servers
/// interpret differently: with an empty part in the middle, an escaped separator, control character
/// or percent sign, a backslash, or a part such as `..;x`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct PathPattern(String);

/// Text that is not a pattern for paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a path such as `/v1/**`: it begins with `/`, has no part that is empty, \
         `.` or `..`, and `**` stands alone in its part"
)]
pub struct PathPatternError {
    /// The text as it was written.
    pub text: String,
}

/// Characters of a pattern.
const PATTERN_BYTES_MAX: usize = 1_024;
/// The pattern for every path.
const EVERY_PATH: &str = "/**";

impl Default for PathPattern {
    fn default() -> Self {
        Self(EVERY_PATH.to_owned())
    }
}

impl PathPattern {
    /// Reads a pattern. Its escapes are normalised like those of a URL.
    ///
    /// # Errors
    /// It is no absolute path, or can never match.
    pub fn parse(text: &str) -> Result<Self, PathPatternError> {
        let refused = || PathPatternError {
            text: text.chars().take(PATTERN_BYTES_MAX).collect(),
        };
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"?#\\\"<>`{}".contains(&b));
        let pattern = normalised(text)
            .filter(|_| plain && text.len() <= PATTERN_BYTES_MAX)
            .ok_or_else(refused)?;
        let parts: Vec<&str> = pattern
            .strip_prefix('/')
            .ok_or_else(refused)?
            .split('/')
            .collect();
        let sound = |part: &str| {
            part == "**"
                || (!part.contains("**") && !is_ambiguous(part) && part != "." && part != "..")
        };
        let empty_inside = parts.iter().rev().skip(1).any(|part| part.is_empty());
        if empty_inside || !parts.iter().all(|part| sound(part)) {
            Err(refused())
        } else {
            Ok(Self(pattern))
        }
    }

    /// Returns whether the pattern covers a path. The path must be normalised, like that of a
    /// target.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        if self.0 == EVERY_PATH {
            return true;
        }
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let parts: Vec<&str> = path.split('/').collect();
        let empty_inside = parts.iter().rev().skip(1).any(|part| part.is_empty());
        if empty_inside || parts.iter().any(|part| is_ambiguous(part)) {
            return false;
        }
        let pattern: Vec<&str> = self.0.trim_start_matches('/').split('/').collect();
        run_matches(
            &pattern,
            &parts,
            |wanted| *wanted == "**",
            |wanted, part| name_matches(wanted, part),
        )
    }
}

/// Returns whether servers interpret a part differently.
fn is_ambiguous(part: &str) -> bool {
    let escape = |digits: &str| {
        matches!(digits, "2F" | "5C" | "25" | "7F") || digits.starts_with(['0', '1'])
    };
    let dots = part
        .split(';')
        .next()
        .is_some_and(|name| name != part && (name == "." || name == ".."));
    dots || part.contains('\\')
        || part
            .split('%')
            .skip(1)
            .any(|after| after.get(..2).is_none_or(escape))
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(PathPattern::parse);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compared_part_by_part() {
        for (pattern, path, expected) in [
            ("/**", "/", true),
            ("/**", "//a/%2Fb", true),
            ("/", "/", true),
            ("/", "/a", false),
            ("/v1/**", "/v1", true),
            ("/v1/**", "/v1/", true),
            ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v10", false),
            ("/v1/**", "/v2/v1/a", false),
            ("/v1/*", "/v1/a", true),
            ("/v1/*", "/v1/a/b", false),
            ("/v1/*", "/v1", false),
            ("/repos/*/issues", "/repos/x/issues", true),
            ("/repos/*/issues", "/repos/x/y/issues", false),
            ("/repos/**/issues", "/repos/x/y/issues", true),
            ("/a/*.json", "/a/b.json", true),
            ("/a/*.json", "/a/b.jsonx", false),
            ("/**/x/**/y", "/a/x/b/x/c/y", true),
            ("/**/x/**/y", "/a/x/b/x/c/z", false),
        ] {
            assert_eq!(
                PathPattern::parse(pattern).unwrap().matches(path),
                expected,
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn a_path_that_servers_read_in_more_than_one_way_matches_only_the_pattern_for_all() {
        for path in [
            "/v1//admin",
            "/v1/..;/admin",
            "/v1/.;x/a",
            "/v1/%2Fadmin",
            "/v1/%5Cadmin",
            "/v1/%252e%252e/a",
            "/v1/a%00",
            "/v1/a%0D",
            "/v1/%7F",
        ] {
            assert!(
                !PathPattern::parse("/v1/**").unwrap().matches(path),
                "{path}"
            );
            assert!(PathPattern::default().matches(path), "{path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "", "v1", "/a/../b", "/a/./b", "/a//b", "/a**", "/a/**b", "/a?b", "/a#b", "/a%2Fb",
            "/a%2", "/a b", "/ä", "/a\\b", "/%2e%2e",
        ] {
            assert!(PathPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn equivalent_spellings_become_one() {
        for (text, expected) in [
            ("/%61%2d%7E", Some("/a-~")),
            ("/%c3%a4", Some("/%C3%A4")),
            ("/%2561", Some("/%2561")),
            ("/%2%65", None),
            ("/%", None),
            ("/%zz", None),
        ] {
            assert_eq!(normalised(text).as_deref(), expected, "{text}");
        }
    }
}

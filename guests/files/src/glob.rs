//! The patterns of `list_files`. What means something in other languages of patterns is refused
//! with the fix: a pattern that matches nothing looks as if there were nothing.

use crate::folders::{Folders, GrantedPath};
use agent_host_glob::Pattern;
use agent_host_sdk::ToolError;

/// Bytes of a pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 256;

/// A pattern for what is in a folder.
#[derive(Debug)]
pub(crate) struct Glob {
    pattern: Pattern,
    subject: Subject,
    /// True if it ended with `/`.
    is_about_folders: bool,
}

/// The part of a path that is compared.
#[derive(Debug, PartialEq, Eq)]
enum Subject {
    /// The name alone, wherever it is.
    Name,
    /// The path from the folder on.
    Relative,
    /// The whole path; that of the folder is this.
    Absolute(Vec<Vec<char>>),
}

impl Glob {
    /// Reads a pattern for what is in a folder.
    ///
    /// # Errors
    /// It has a sign without a meaning here, or is about what is in no granted folder.
    pub(crate) fn parse(
        text: &str,
        folder: &GrantedPath,
        folders: &Folders,
    ) -> Result<Self, ToolError> {
        let invalid = |why: String| ToolError::invalid("pattern", why);
        if text.len() > PATTERN_BYTES_MAX {
            return Err(invalid(format!(
                "has {} bytes; {PATTERN_BYTES_MAX} is the most",
                text.len()
            )));
        }
        if let Some((sign, fix)) = foreign_sign(text) {
            return Err(invalid(format!(
                "has `{sign}` in it, which means nothing here; {fix}"
            )));
        }
        let pattern = Pattern::parse(text).map_err(|error| invalid(error.to_string()))?;
        let subject = if text.starts_with('/') {
            folders.check_pattern(text)?;
            Subject::Absolute(names_of(&folder.shown))
        } else if pattern.is_one_name() && !text.trim_end_matches('/').contains('/') {
            Subject::Name
        } else {
            Subject::Relative
        };
        Ok(Self {
            pattern,
            subject,
            is_about_folders: text.ends_with('/'),
        })
    }

    /// Returns true if it can match what is in folders of the folder.
    pub(crate) fn is_deep(&self) -> bool {
        self.subject != Subject::Name
    }

    /// Returns true if a path from the folder on matches.
    pub(crate) fn matches(&self, path: &str, is_folder: bool) -> bool {
        if self.is_about_folders && !is_folder {
            return false;
        }
        match &self.subject {
            Subject::Name => self.pattern.matches(&names_of(last_name(path))),
            Subject::Relative => self.pattern.matches(&names_of(path)),
            Subject::Absolute(folder) => {
                let mut whole = folder.clone();
                whole.extend(names_of(path));
                self.pattern.matches(&whole)
            }
        }
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn names_of(path: &str) -> Vec<Vec<char>> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(|name| name.chars().collect())
        .collect()
}

/// A sign that has no meaning, and the fix.
fn foreign_sign(text: &str) -> Option<(String, &'static str)> {
    let found = |sign: &str, fix| Some((sign.to_owned(), fix));
    if text.contains('\\') {
        return found("\\", "write `/` between names, and `[*]` for a plain `*`");
    }
    if text.starts_with('!') {
        return found("!", "write what is wanted, and `?` for a plain `!`");
    }
    if text == "~" || text.starts_with("~/") {
        return found("~", "write the path from the folder on");
    }
    if text.split('/').any(|name| name == "..") {
        return found("..", "give the folder as `path`");
    }
    if text.contains("[[:") {
        return found("[:", "write the letters, as in `[a-z]`");
    }
    if let Some(sign) = text.chars().find(|sign| sign.is_control()) {
        return found(&sign.escape_default().to_string(), "write `?` for it");
    }
    several(text).map(|sign| (sign.to_string(), "write `{a,b}` for one of several"))
}

/// The sign between several patterns in one, as other tools take them.
fn several(text: &str) -> Option<char> {
    let has_stars = |part: &str| part.contains(['*', '?', '[', '(']);
    let mut depth = 0_i32;
    for (at, sign) in text.char_indices() {
        match sign {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '|' if depth == 0 && has_stars(text) => return Some(sign),
            ',' | ';' if depth == 0 => {
                let (before, after) = text.split_at(at);
                if has_stars(before) && has_stars(after) {
                    return Some(sign);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Folders, Glob};
    use std::path::PathBuf;

    fn parsed(pattern: &str) -> Result<Glob, String> {
        let folders = Folders::new(vec![PathBuf::from("/workspace")]);
        let folder = folders.place("sub").unwrap();
        Glob::parse(pattern, &folder, &folders).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "deep/a.md", true),
            ("*.md", "a.mdx", false),
            ("./*.md", "a.md", true),
            ("./*.md", "deep/a.md", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "ü.txt", true),
            ("?.txt", "ab.txt", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("*.{js,ts}", "deep/a.ts", true),
            ("{src,lib}/*.rs", "lib/a.rs", true),
            ("b[12].*", "b1.js", true),
            ("b[!12].*", "b1.js", false),
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/deep/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("src/**/*.rs", "src/a/b/lib.rs", true),
            ("**/lib.rs", "lib.rs", true),
            ("**", "a/b/c", true),
            ("src/**", "src/a", true),
            ("src/**", "other/a", false),
            ("/workspace/sub/*.js", "a.js", true),
            ("/workspace/**/*.js", "a/b.js", true),
            ("/workspace/*.js", "a.js", false),
            ("a, b.txt", "a, b.txt", true),
            ("*(1).txt", "x (1).txt", true),
            ("*", "ü", true),
        ] {
            let glob = parsed(pattern).unwrap();
            assert_eq!(glob.matches(path, false), expected, "{pattern} on {path}");
        }
        let folders = parsed("s*/").unwrap();
        assert!(folders.matches("src", true) && !folders.matches("sum", false));
    }

    #[test]
    fn a_sign_without_a_meaning_is_named_with_the_fix() {
        for (pattern, sign) in [
            ("!*.js", "`!`"),
            ("src\\*.js", "`\\\\`"),
            ("../*.js", "`..`"),
            ("~/*.js", "`~`"),
            ("[[:alpha:]]*", "`[:`"),
            ("*.js,*.ts", "`,`"),
            ("*.js;*.ts", "`;`"),
            ("@(a|b).js", "`|`"),
            ("a[b", "`[`"),
            ("*.{js", "`{`"),
            ("/etc/*.conf", "/workspace"),
        ] {
            let error = parsed(pattern).unwrap_err();
            assert!(error.contains(sign), "{pattern}: {error}");
        }
    }
}

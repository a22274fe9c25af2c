//! Globs: patterns for paths below a granted folder, and the normal form of those paths.
//!
//! A pattern is names with `/` between them, relative to the granted folder. `*` and `?` stand for
//! letters within a name, `**` for any number of folders, including none. Other wildcards do not
//! exist. Those of other tools, `[a-z]`, `{a,b}`, `!a`, are refused rather than read literally: a
//! deny that matches nothing protects nothing. Letters are compared exactly, case included.

#[cfg(test)]
mod tests;

use crate::values::text::serde_as_text;
use agent_host_glob::Pattern;
use std::fmt;
use std::str::FromStr;

/// Bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// A pattern for paths below a granted folder. It serializes as its text, normalised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    text: String,
    pattern: Pattern,
}

/// The reason why a text is no pattern, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It has no name in it.
    #[error("an empty pattern matches nothing; write `**` for everything")]
    Empty,
    /// It is long.
    #[error("the pattern has {bytes} bytes; {PATTERN_BYTES_MAX} is the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It begins with `/`.
    #[error("`{0}` begins with `/`; patterns start from the granted folder: write `{rest}`", rest = .0.trim_start_matches('/'))]
    Absolute(String),
    /// It has `..` in it.
    #[error("`{0}` has `..` in it; write the path without")]
    Parent(String),
    /// It has a backslash in it.
    #[error("`{0}` has a backslash in it; write `/` between names")]
    Backslash(String),
    /// `**` is combined with other letters in a name.
    #[error(
        "`{0}` has `**` beside other letters; write `*` within a name, and `**` alone between `/`"
    )]
    Stars(String),
    /// It has a character that is special in other pattern languages.
    #[error(
        "`{text}` has `{sign}` in it, which means nothing here; write one pattern for each \
             case, or `?` for the sign itself"
    )]
    Sign {
        /// The pattern.
        text: String,
        /// The sign.
        sign: char,
    },
    /// It contains a control character.
    #[error("the pattern {0:?} has a control character in it; write `?` for it")]
    Control(String),
}

impl Glob {
    /// Returns whether it matches the whole path. No pattern matches the granted folder itself.
    #[must_use]
    pub fn matches(&self, path: &Inside) -> bool {
        self.covers_names(&path.0)
    }

    fn covers_names(&self, names: &[Name]) -> bool {
        !names.is_empty() && self.pattern.matches(names)
    }

    /// Returns whether it covers another pattern: each path that the other matches is one that it
    /// matches, or is inside one. In unclear cases the answer is no.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.pattern.covers(&other.pattern)
    }
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(given: &str) -> Result<Self, GlobError> {
        let text = || given.to_owned();
        if given.len() > PATTERN_BYTES_MAX {
            return Err(GlobError::TooLong { bytes: given.len() });
        }
        if given.starts_with('/') {
            return Err(GlobError::Absolute(text()));
        }
        if given.contains('\\') {
            return Err(GlobError::Backslash(text()));
        }
        if given.chars().any(char::is_control) {
            return Err(GlobError::Control(text()));
        }
        let strange = |sign: &char| matches!(sign, '[' | ']' | '{' | '}');
        if let Some(sign) = given.chars().find(strange) {
            return Err(GlobError::Sign { text: text(), sign });
        }
        let mut names: Vec<&str> = Vec::new();
        for name in given.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(GlobError::Parent(text())),
                // A repeated `**` has the same meaning as one.
                "**" if names.last() == Some(&"**") => {}
                name if name != "**" && name.contains("**") => {
                    return Err(GlobError::Stars(text()));
                }
                name => names.push(name),
            }
        }
        let Some(first) = names.first() else {
            return Err(GlobError::Empty);
        };
        if first.starts_with('!') {
            return Err(GlobError::Sign {
                text: text(),
                sign: '!',
            });
        }
        let normal = names.join("/");
        match Pattern::parse(&normal) {
            Ok(pattern) => Ok(Self {
                text: normal,
                pattern,
            }),
            // The characters that could cause this are refused above.
            Err(_) => Err(GlobError::Sign {
                text: text(),
                sign: '[',
            }),
        }
    }
}

serde_as_text!(Glob::from_str);

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl schemars::JsonSchema for Glob {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Glob".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A pattern for paths below the granted folder, such as `src/**/*.rs`: \
                            `*` and `?` within a name, `**` for any \
                            number of folders. A name alone is about the granted folder's own \
                            entries; `**/name` is about those anywhere.",
            "type": "string",
            "minLength": 1,
            "maxLength": PATTERN_BYTES_MAX,
        })
    }
}

/// A path below a granted folder in its normal form: names, without `.`, `..` and empty ones.
/// Without a name it is the folder itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inside(Vec<Name>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    text: String,
    letters: Vec<char>,
}

impl AsRef<[char]> for Name {
    fn as_ref(&self) -> &[char] {
        &self.letters
    }
}

impl Inside {
    /// Appends a name. The caller has split the path, so it is a single name.
    pub fn push(&mut self, name: &str) {
        self.0.push(Name {
            text: name.to_owned(),
            letters: name.chars().collect(),
        });
    }

    /// Removes the last name; false if there is none.
    pub fn pop(&mut self) -> bool {
        self.0.pop().is_some()
    }

    /// Returns the number of names.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Returns whether one of the patterns matches it or a folder that it is in.
    pub(crate) fn is_within_any(&self, patterns: &[Glob]) -> bool {
        let mut beginnings = (1..=self.0.len()).filter_map(|length| self.0.get(..length));
        !patterns.is_empty()
            && beginnings.any(|names| patterns.iter().any(|pattern| pattern.covers_names(names)))
    }
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Name { text, .. }) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "/" };
            write!(f, "{between}{text}")?;
        }
        Ok(())
    }
}

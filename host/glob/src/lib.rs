//! The one matcher of patterns: for the lists of names, the patterns of grants and the file tools.
//!
//! It stands apart because components link it too. The syntax is that of the crate globset, with
//! which the tests compare it. globset itself matches bytes: `?` is not `ü` there, and a deny that
//! says so protects nothing. A user of this crate refuses more, as its patterns need it.

mod syntax;

pub use syntax::{ALTERNATIVES_MAX, SyntaxError};

/// A pattern for paths: names with `/` between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The patterns without `{a,b}` for which it stands.
    alternatives: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    /// `**`
    Folders,
    Name(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Token {
    /// `*`
    Any,
    /// `?`
    One,
    Letter(char),
    /// `[a-z]`, or `[!a-z]`.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Pattern {
    /// Reads a pattern: `*` and `?` for letters within a name, `[a-z]` and `[!a-z]` for one of
    /// some, `**` for any number of folders, none too, `{a,b}` for one of several. Empty names and
    /// `.` are left out; without a name it is `**`.
    ///
    /// # Errors
    /// A class or a group that does not end, or too many alternatives.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut alternatives = Vec::new();
        for expanded in syntax::expanded(text)? {
            alternatives.push(syntax::parts_of(&expanded)?);
        }
        Ok(Self { alternatives })
    }

    /// Returns whether it matches all the names of a path.
    #[must_use]
    pub fn matches<N: AsRef<[char]>>(&self, path: &[N]) -> bool {
        let one = |parts: &Vec<Part>| run_matches(parts, path, Part::is_folders, Part::is);
        self.alternatives.iter().any(one)
    }

    /// Returns whether it has one name, which is not `**`, in each of its alternatives.
    #[must_use]
    pub fn is_one_name(&self) -> bool {
        self.alternatives
            .iter()
            .all(|parts| matches!(parts.as_slice(), [Part::Name(_)]))
    }

    /// Returns whether it covers another pattern. It does if each path that the other matches is
    /// one that it matches, or is inside one. The answer is no where that is not plain to see.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other
            .alternatives
            .iter()
            .all(|other| self.alternatives.iter().any(|parts| covers(parts, other)))
    }
}

fn covers(parts: &[Part], other: &[Part]) -> bool {
    let everything = matches!(parts, [Part::Name(tokens)] if tokens == &[Token::Any]);
    let mut beginnings = (1..=other.len()).filter_map(|length| other.get(..length));
    everything || beginnings.any(|other| run_matches(parts, other, Part::is_folders, Part::covers))
}

impl Part {
    fn is_folders(&self) -> bool {
        *self == Self::Folders
    }

    fn is<N: AsRef<[char]>>(&self, name: &N) -> bool {
        match self {
            Self::Folders => false,
            Self::Name(tokens) => run_matches(tokens, name.as_ref(), Token::is_any, Token::is),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        let (Self::Name(tokens), Self::Name(others)) = (self, other) else {
            return false;
        };
        run_matches(tokens, others, Token::is_any, |wanted, other| {
            wanted == other || (*wanted == Token::One && *other != Token::Any)
        })
    }
}

impl Token {
    fn is_any(&self) -> bool {
        *self == Self::Any
    }

    fn is(&self, letter: &char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Letter(wanted) => wanted == letter,
            Self::Class { negated, ranges } => {
                let is_in = |(from, to): &(char, char)| (from..=to).contains(&letter);
                ranges.iter().any(is_in) != *negated
            }
        }
    }
}

/// Returns whether a name matches a pattern in which `*` stands for any run of characters, and
/// everything else for itself.
#[must_use]
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    run_matches(
        &pattern,
        &name,
        |wanted| *wanted == '*',
        |wanted, letter| wanted == letter,
    )
}

/// Returns whether a pattern covers a whole text. `any` says of an element of the pattern whether
/// it stands for a run of elements, none too. `one` says whether an element of the pattern covers
/// one of the text. The search is greedy, with one place to come back to: at most pattern times
/// text comparisons.
pub fn run_matches<P, T>(
    pattern: &[P],
    text: &[T],
    any: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let mut p = 0;
    let mut t = 0;
    let mut retry = None;
    while let Some(element) = text.get(t) {
        match pattern.get(p) {
            Some(wanted) if any(wanted) => {
                retry = Some((p, t));
                p += 1;
            }
            Some(wanted) if one(wanted, element) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((run, from)) = retry else {
                    return false;
                };
                retry = Some((run, from + 1));
                p = run + 1;
                t = from + 1;
            }
        }
    }
    pattern.iter().skip(p).all(any)
}

#[cfg(test)]
mod tests;

//! Reading a pattern: the groups are written out, then names and letters are told apart.

use crate::{Part, Token};
use std::iter::Peekable;
use std::str::Chars;

/// Patterns that one pattern with `{a,b}` may stand for.
pub const ALTERNATIVES_MAX: usize = 64;

/// The reason why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// `[` or `{` without its end, or an end without it.
    #[error("has `{sign}` in it without its other half; write `[{sign}]` for a plain one")]
    Unclosed {
        /// The sign that is there.
        sign: char,
    },
    /// `[z-a]`.
    #[error("has `[{from}-{to}]` in it, and no letter is there between the two")]
    Backwards {
        /// The letter before the hyphen.
        from: char,
        /// The letter after it.
        to: char,
    },
    /// Groups that stand for more than [`ALTERNATIVES_MAX`] patterns.
    #[error("has groups with `{{` for more than {ALTERNATIVES_MAX} patterns; write fewer")]
    Alternatives,
}

/// A pattern around its first group.
struct Group<'a> {
    before: &'a str,
    options: Vec<&'a str>,
    after: &'a str,
}

/// The patterns without groups that a pattern stands for.
pub(crate) fn expanded(text: &str) -> Result<Vec<String>, SyntaxError> {
    let mut ahead = vec![text.to_owned()];
    let mut done = Vec::new();
    while let Some(pattern) = ahead.pop() {
        if let Some(group) = first_group(&pattern)? {
            let Group { before, after, .. } = group;
            let options = group.options.iter().rev();
            ahead.extend(options.map(|option| format!("{before}{option}{after}")));
        } else {
            done.push(pattern);
        }
        if ahead.len() + done.len() > ALTERNATIVES_MAX {
            return Err(SyntaxError::Alternatives);
        }
    }
    Ok(done)
}

fn first_group(pattern: &str) -> Result<Option<Group<'_>>, SyntaxError> {
    let mut depth = 0_usize;
    let mut begins = 0;
    let mut option = 0;
    let mut options = Vec::new();
    let mut ahead = pattern.char_indices().peekable();
    while let Some((at, sign)) = ahead.next() {
        match sign {
            '[' => {
                // A sign in a class is a letter; the first of them, `]` too.
                ahead.next_if(|(_, sign)| matches!(sign, '!' | '^'));
                ahead.next();
                let ends = ahead.find(|(_, sign)| *sign == ']');
                ends.ok_or(SyntaxError::Unclosed { sign: '[' })?;
            }
            '{' => {
                depth += 1;
                if depth == 1 {
                    begins = at;
                    option = at + 1;
                }
            }
            ',' if depth == 1 => {
                options.push(pattern.get(option..at).unwrap_or_default());
                option = at + 1;
            }
            '}' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or(SyntaxError::Unclosed { sign: '}' })?;
                if depth == 0 {
                    options.push(pattern.get(option..at).unwrap_or_default());
                    return Ok(Some(Group {
                        before: pattern.get(..begins).unwrap_or_default(),
                        options,
                        after: pattern.get(at + 1..).unwrap_or_default(),
                    }));
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        Err(SyntaxError::Unclosed { sign: '{' })
    } else {
        Ok(None)
    }
}

pub(crate) fn parts_of(pattern: &str) -> Result<Vec<Part>, SyntaxError> {
    let mut parts = Vec::new();
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            // Twice in a row says no more than once.
            "**" if parts.last() == Some(&Part::Folders) => {}
            "**" => parts.push(Part::Folders),
            name => parts.push(Part::Name(tokens_of(name)?)),
        }
    }
    if parts.is_empty() {
        parts.push(Part::Folders);
    }
    Ok(parts)
}

fn tokens_of(name: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' if tokens.last() == Some(&Token::Any) => {}
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::One),
            '[' => tokens.push(class(&mut letters)?),
            letter => tokens.push(Token::Letter(letter)),
        }
    }
    Ok(tokens)
}

/// Reads a class behind its `[`.
fn class(letters: &mut Peekable<Chars<'_>>) -> Result<Token, SyntaxError> {
    let unclosed = SyntaxError::Unclosed { sign: '[' };
    let negated = letters.next_if(|sign| matches!(sign, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let from = letters.next().ok_or_else(|| unclosed.clone())?;
        if from == ']' && !ranges.is_empty() {
            return Ok(Token::Class { negated, ranges });
        }
        let mut ahead = letters.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                *letters = ahead;
                to
            }
            _ => from,
        };
        if to < from {
            return Err(SyntaxError::Backwards { from, to });
        }
        ranges.push((from, to));
    }
}

//! Patterns of what was said before, in which words of the last message may stand.
//!
//! `${name}` in such a pattern stands for what the group of that name in the rule's `user` pattern
//! matched, letter by letter: nothing in it is an operator.

use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// The beginning of a place for words of the last message.
const PLACE: &str = "${";

/// A regular expression for what was said before.
#[derive(Debug)]
pub(super) enum SaidPattern {
    /// It is the same whatever the last message is.
    Fixed(Regex),
    /// It has places for words of the last message, and is compiled when they are known.
    Open(String),
}

impl SaidPattern {
    /// Returns the groups whose words it needs.
    pub(super) fn groups(&self) -> Vec<&str> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Open(template) => template
                .split(PLACE)
                .skip(1)
                .filter_map(|chunk| Some(chunk.split_once('}')?.0))
                .collect(),
        }
    }

    /// Returns the expression for a last message of which this was caught: values under the names
    /// and numbers of their groups. None if a group that it needs caught nothing.
    pub(super) fn expression(&self, caught: &[(String, String)]) -> Option<Cow<'_, Regex>> {
        let template = match self {
            Self::Fixed(expression) => return Some(Cow::Borrowed(expression)),
            Self::Open(template) => template,
        };
        let words = |group: &str| {
            let found = caught.iter().find(|(known, _)| known == group);
            found
                .map(|(_, words)| words.clone())
                .filter(|words| !words.is_empty())
        };
        Regex::new(&filled(template, words)?).ok().map(Cow::Owned)
    }
}

impl<'de> Deserialize<'de> for SaidPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Any letter will do for a mistake to be found when the file is read.
        let tried = filled(&text, |_| Some("x".to_owned()));
        let tried = tried.ok_or_else(|| D::Error::custom("a `${` has no `}`"))?;
        let expression = Regex::new(&tried).map_err(D::Error::custom)?;
        Ok(if text.contains(PLACE) {
            Self::Open(text)
        } else {
            Self::Fixed(expression)
        })
    }
}

/// Fills the places of a template with the words of their groups. None if a group has none.
fn filled(template: &str, words: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut chunks = template.split(PLACE);
    let mut text = chunks.next().unwrap_or_default().to_owned();
    for chunk in chunks {
        let (group, rest) = chunk.split_once('}')?;
        // In a group of its own, so that what follows is about all of it.
        text.push_str(&format!("(?:{})", regex::escape(&words(group)?)));
        text.push_str(rest);
    }
    Some(text)
}

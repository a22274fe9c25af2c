//! Personas: an identity and its permissions, put over threads. Which model answers is none of theirs.

use crate::grant::PatternList;
use crate::path::PathRules;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of a persona's id.
const ID_BYTES_MAX: usize = 64;

/// A persona's id: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PersonaId(String);

/// A text that is no persona's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no id of a persona: 1 to {ID_BYTES_MAX} of `a-z`, `0-9`, `-` and `_`")]
pub struct NotAPersona {
    given: String,
}

impl PersonaId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PersonaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PersonaId {
    type Err = NotAPersona;
    fn from_str(text: &str) -> Result<Self, NotAPersona> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let is_id = (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits);
        if is_id { Ok(Self(text.to_owned())) } else { Err(NotAPersona { given: text.chars().take(ID_BYTES_MAX).collect() }) }
    }
}

impl TryFrom<String> for PersonaId {
    type Error = NotAPersona;
    fn try_from(text: String) -> Result<Self, NotAPersona> {
        text.parse()
    }
}

impl From<PersonaId> for String {
    fn from(PersonaId(text): PersonaId) -> Self {
        text
    }
}

/// One entry of the config's `personas` array.
///
/// It narrows what agents may do that work as it, and never widens it: deny lists win, and an allow list that is there is one more that has to
/// allow. It names no model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Persona {
    /// 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub id: PersonaId,
    /// Its name for people.
    pub display_name: String,
    /// Who it is, in words that go into the system prompt of its turns.
    #[serde(default)]
    pub identity: String,
    /// The definition whose agents lead its main sessions.
    pub agent: String,
    /// Users who may write to it; all users without.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    /// Tools that its turns may use.
    #[serde(default)]
    pub tool_allowlist: Option<PatternList>,
    /// Tools that they may not use.
    #[serde(default)]
    pub tool_denylist: Option<PatternList>,
    /// Which agents, by their paths, its turns may reach.
    #[serde(default)]
    pub paths: PathRules,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_persona_is_a_short_word() {
        for (text, is) in [("home", true), ("a-b_9", true), ("", false), ("A", false), ("a/b", false), (&"x".repeat(65), false)] {
            assert_eq!(text.parse::<PersonaId>().is_ok(), is, "{text}");
        }
    }
}

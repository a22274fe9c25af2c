//! Messages and their parts: what a conversation is made of.

pub use crate::bindings::agent_plugin::agent_host::plugin::types::{
    Blob, Message, MessageId, ModelCall, Part, Role,
};

impl Message {
    /// Its text parts, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The calls that the model made in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Text(_) | Part::Blob(_) | Part::Opaque(_) => None,
        })
    }
}

/// The text parts of some content, joined by line breaks.
#[must_use]
pub fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Blob(_) | Part::Call(_) | Part::Opaque(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// Text of others, for a model to read and not to obey: between fences of backticks, longer than
/// any run of backticks in it, so that nothing in it can look like its end.
///
/// ```
/// assert_eq!(agent_host_sdk::fenced("a ``` b"), "````\na ``` b\n````");
/// ```
#[must_use]
pub fn fenced(text: &str) -> String {
    let longest = text
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

/// The beginning of some text, of at most so many bytes; what is left out is marked by `…`.
///
/// ```
/// assert_eq!(agent_host_sdk::shortened("abcdef", 5), "ab…");
/// ```
#[must_use]
pub fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub('…'.len_utf8()));
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Content in any accepted form: text, one part, or several.
pub trait IntoParts {
    /// The parts.
    fn into_parts(self) -> Vec<Part>;
}

impl IntoParts for &str {
    fn into_parts(self) -> Vec<Part> {
        vec![Part::Text(self.to_owned())]
    }
}

impl IntoParts for String {
    fn into_parts(self) -> Vec<Part> {
        vec![Part::Text(self)]
    }
}

impl IntoParts for Part {
    fn into_parts(self) -> Vec<Part> {
        vec![self]
    }
}

impl IntoParts for Vec<Part> {
    fn into_parts(self) -> Vec<Part> {
        self
    }
}

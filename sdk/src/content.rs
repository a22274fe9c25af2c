//! Messages and their parts: what a conversation is made of, and the mark of replies that are not
//! whole.

pub use crate::bindings::agent_plugin::agent_host::plugin::types::{
    Blob, Message, MessageId, ModelCall, Part, Role,
};
use crate::news::Outcome;
use crate::turn::Turn;

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

/// Bytes of a reason that is shown to the user.
const REASON_BYTES_MAX: usize = 300;

/// The reason why a model's reply is not whole. [`Message::cut_off`] reads it of a message, and
/// [`CutOff::of`] of the result of a hidden request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// It reached the limit of its tokens, or filled the model's window.
    Length,
    /// The provider withheld the rest, or all of it.
    ContentFilter,
    /// The model declined to answer. What it said is its refusal.
    Refusal,
}

impl CutOff {
    const ALL: [Self; 3] = [Self::Length, Self::ContentFilter, Self::Refusal];

    /// Returns the mark among the parts of a reply; none if the reply is whole.
    #[must_use]
    pub fn of(parts: &[Part]) -> Option<Self> {
        parts.iter().find_map(|part| match part {
            Part::Opaque(handle) => Self::ALL.into_iter().find(|mark| mark.handle() == handle),
            Part::Text(_) | Part::Blob(_) | Part::Call(_) => None,
        })
    }

    /// Says it to the user in a few words, as [`Agent::on_answer`](crate::Agent::on_answer) does.
    #[must_use]
    pub fn notice(self) -> &'static str {
        match self {
            Self::Length => "[cut off at the length limit]",
            Self::ContentFilter => "[cut off by the provider's content filter]",
            Self::Refusal => "[the model declined to answer]",
        }
    }

    /// The part that the host adds to such a reply.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn part(self) -> Part {
        Part::Opaque(self.handle().to_owned())
    }

    /// The handle of the host's mark: the digest of a JSON object with the field `stop`.
    fn handle(self) -> &'static str {
        match self {
            // {"stop":"length"}
            Self::Length => {
                "sha256:ff0d7bb5d6830b3911ab0b77fdc9fc7124bc43701db8c577c5212cedaff8f1cc"
            }
            // {"stop":"content_filter"}
            Self::ContentFilter => {
                "sha256:5f45039a0052fc17290afc1a9b3436a8aa2aa0d8807e4d47f2eeb0edeac48fa4"
            }
            // {"stop":"refusal"}
            Self::Refusal => {
                "sha256:b600c81641609188416647a4c8039c43ac6294525e0e49c076fe1c8e1ddd539f"
            }
        }
    }
}

impl Message {
    /// Returns why it is not whole, of a model's reply; none if it is.
    #[must_use]
    pub fn cut_off(&self) -> Option<CutOff> {
        CutOff::of(&self.parts)
    }
}

impl Outcome {
    /// Returns whether the user reads the reply of a model whose request ended so, with the mark of
    /// one that breaks off at the limit of its length.
    ///
    /// # Errors
    /// There is no reply. The reason is in words for the user.
    pub fn replied(&self, turn: Turn<'_>) -> Result<Option<CutOff>, String> {
        let Self::Message(id) = self else {
            return Err(shortened(&self.to_string(), REASON_BYTES_MAX));
        };
        match turn.message(*id).and_then(|message| message.cut_off()) {
            Some(CutOff::ContentFilter) => Err("its provider withheld the answer".to_owned()),
            Some(CutOff::Refusal) => Err("the model declined to answer".to_owned()),
            cut_off @ (Some(CutOff::Length) | None) => Ok(cut_off),
        }
    }
}

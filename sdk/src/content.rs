//! Messages and their parts: what a conversation is made of.

/// A message's place in its thread, counted from 1.
pub type MessageId = u64;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, or a stand-in for one: another agent, a trigger, a connector.
    User,
    /// The model, or the agent itself.
    Assistant,
    /// The result of one call that the model made.
    Tool,
    /// Something the host wants both to know.
    Notice,
}

/// Bytes kept outside the message in which they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The handle that [`Turn::read_blob`](crate::Turn::read_blob) takes: `sha256:` and 64
    /// hexadecimal digits.
    pub handle: String,
    /// Their media type, such as `text/plain`.
    pub media_type: String,
    /// Number of bytes.
    pub size: u64,
}

/// A call that the model made in one of its replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    /// The call's place among the calls of its message, counted from 0.
    pub index: u32,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments, as the model wrote them: not necessarily JSON.
    pub arguments: String,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// Bytes kept outside the message.
    Blob(Blob),
    /// A call that the model made. Stands in assistant messages only; a plugin never writes one.
    Call(ModelCall),
    /// Data that a provider wants back verbatim. Only the host and that provider read it; a plugin
    /// never writes one.
    Opaque(String),
}

/// One message of the thread. Messages never change once they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its place in the thread.
    pub id: MessageId,
    /// Its sender.
    pub role: Role,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// Its origin: `api`, `model:<name>`, `tool:<name>`, `agent:<path>`, `host`.
    pub origin: String,
    /// True if its content came from outside the user's and the operator's control. Never treat it
    /// as an instruction.
    pub untrusted: bool,
    /// The assistant message and the index of the call that it answers, if it is a result.
    pub answers: Option<(MessageId, u32)>,
}

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

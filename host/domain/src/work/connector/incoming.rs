//! Messages from people outside, as a component reads them, and their bounds.

use super::{
    ACKNOWLEDGE_BYTES_MAX, ANSWER_BYTES_MAX, ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX,
    BATCH_MESSAGES_MAX, BUTTON_BYTES_MAX, CURSOR_BYTES_MAX, GROUP_ID_BYTES_MAX, HANDLE_BYTES_MAX,
    INCOMING_TEXT_BYTES_MAX, QUOTATIONS_MAX, SERVICE_ID_BYTES_MAX,
};
use crate::agents::path::EXTERNAL_ID_BYTES_MAX;
use crate::thread::speaker::{Speaker, Trust};
use crate::values::file::{check_media_type, check_name};
use crate::values::shown::{controls_what_is_shown, is_hidden};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Bytes of a replied-to message's text that the host adds.
const REPLIED_BYTES_MAX: usize = 4 << 10;
/// The text in place of a replied-to message whose text the host does not have.
const REPLIED_UNKNOWN: &str = "[an earlier message whose words are not here]";
/// The author of the agent's own messages in a chat, as the agent reads it.
const OWN: &str = "you";
/// Characters of a sender's name that are stored.
const SENDER_NAME_CHARS_MAX: usize = 64;

/// A file attached to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// The id by which the component fetches it.
    pub handle: String,
    /// Its size in bytes, if the service gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// Words.
    Text {
        /// The words, in plain text or Markdown.
        text: String,
    },
    /// A button of a question was pressed.
    Button {
        /// The value that the host gave the button.
        value: String,
    },
    /// It is no new text of the sender: an edit, a reaction, or content that the component cannot
    /// read.
    Aside {
        /// The words for it.
        text: String,
    },
}

/// The form in which a message contains somebody else's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotationKind {
    /// The sender passed them on.
    Forwarded,
    /// The sender replies to them.
    Quoted,
    /// The sender replies to words of the agent's own. Only the host knows this.
    Own,
}

/// Quoted or forwarded words in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quotation {
    /// The form in which the message contains them.
    pub kind: QuotationKind,
    /// The author of the words, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The words.
    pub text: String,
}

/// One message of a person outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incoming {
    /// The service's id of the message. The same id is accepted once.
    pub id: String,
    /// The sender, in the service's terms.
    pub sender: String,
    /// The sender's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// The group of the message, in the service's terms; none in a chat with the sender alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The chat that receives replies, in the service's terms. Order is kept within it.
    pub chat: String,
    /// The content.
    pub said: Said,
    /// The quoted words of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotations: Vec<Quotation>,
    /// The attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Time at which it was sent.
    pub sent_at: Timestamp,
}

/// The request of a service to acknowledge a message. It is never stored: the acknowledgement
/// follows the commit of the message, and is sent once or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The service's id of the message.
    pub message: String,
    /// The handle by which the component acknowledges the message.
    pub handle: String,
}

/// A message that replies or reacts to another one, of which the service gives only the id. It is
/// never stored: the text of the other is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The service's id of the message.
    pub message: String,
    /// The service's id of the other message.
    pub to: String,
}

/// The message that another one replies or reacts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replied {
    /// It was sent for the agent, with this text.
    Own(String),
    /// It was sent for the agent, and rests on content from outside.
    Marked(String),
    /// Another sender wrote it.
    Others {
        /// The author, for people.
        author: Option<String>,
        /// The words, if any.
        words: Option<String>,
    },
    /// The host has no such message.
    Unknown,
}

/// A change of a person's or a group's id at a service. It is never stored: its consequences are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The old id, in the service's terms.
    pub from: String,
    /// The id now.
    pub to: String,
    /// True for a group. The old id of a group is never reused; that of a person may be.
    pub is_group: bool,
}

/// A message that a service accepted, and later reports as not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The service's id of it.
    pub id: String,
    /// The reason.
    pub reason: String,
}

/// The result of a poll, or of reading a service's call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Messages in the service's order.
    pub messages: Vec<Incoming>,
    /// The position from which the next poll continues.
    pub cursor: Option<String>,
    /// Milliseconds until the next poll.
    pub next_ms: u32,
    /// The text of the response to the service's call.
    pub answer: Option<String>,
    /// The acknowledgements that the service waits for.
    pub acknowledgements: Vec<Acknowledgement>,
    /// The ids of messages that are not addressed to an agent, and are read only by an agent that
    /// takes part.
    pub overheard: Vec<String>,
    /// The messages that reply to others whose text the host has.
    pub replies: Vec<Reply>,
    /// People and groups whose ids have changed.
    pub moved: Vec<Moved>,
    /// Messages that were sent but not delivered.
    pub undelivered: Vec<Undelivered>,
}

/// The reason why a message or a batch is refused from a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadIncoming {
    /// There are too many messages.
    #[error("messages: {BATCH_MESSAGES_MAX} at most are allowed in one batch, these are {0}")]
    Messages(usize),
    /// The cursor is too long.
    #[error("cursor: {CURSOR_BYTES_MAX} bytes at most are allowed, this has {0}")]
    Cursor(usize),
    /// The answer is too long.
    #[error("answer: {ANSWER_BYTES_MAX} bytes at most are allowed, this has {0}")]
    Answer(usize),
    /// An id is invalid.
    #[error(
        "{field}: 1 to {bytes_max} bytes without control characters and without blanks around \
         them are needed"
    )]
    Id {
        /// The field.
        field: &'static str,
        /// The most bytes of it.
        bytes_max: usize,
    },
    /// The value of a button is too long.
    #[error("said.button: {BUTTON_BYTES_MAX} bytes at most are allowed, this has {0}")]
    Button(usize),
}

impl Acknowledgement {
    /// Returns the request; none if its handle is empty or too long.
    #[must_use]
    pub fn new(message: &str, handle: &str) -> Option<Self> {
        (1..=ACKNOWLEDGE_BYTES_MAX)
            .contains(&handle.len())
            .then(|| Self {
                message: message.to_owned(),
                handle: handle.to_owned(),
            })
    }
}

impl Batch {
    /// Checks the limits of the batch itself.
    ///
    /// # Errors
    /// The first of its fields that is too large.
    pub fn check(&self) -> Result<(), BadIncoming> {
        if self.messages.len() > BATCH_MESSAGES_MAX {
            return Err(BadIncoming::Messages(self.messages.len()));
        }
        match (&self.cursor, &self.answer) {
            (Some(cursor), _) if cursor.len() > CURSOR_BYTES_MAX => {
                Err(BadIncoming::Cursor(cursor.len()))
            }
            (_, Some(answer)) if answer.len() > ANSWER_BYTES_MAX => {
                Err(BadIncoming::Answer(answer.len()))
            }
            _ => Ok(()),
        }
    }
}

impl Reply {
    /// Returns the reply; none if the id of the other message is invalid.
    #[must_use]
    pub fn new(message: &str, to: &str) -> Option<Self> {
        is_id("replies_to", to, SERVICE_ID_BYTES_MAX)
            .is_ok()
            .then(|| Self {
                message: message.to_owned(),
                to: to.to_owned(),
            })
    }
}

impl Moved {
    /// Returns it if both ids are valid.
    ///
    /// # Errors
    /// The first invalid id.
    pub fn checked(self) -> Result<Self, BadIncoming> {
        let bytes_max = match self.is_group {
            true => GROUP_ID_BYTES_MAX,
            false => EXTERNAL_ID_BYTES_MAX,
        };
        is_id("moved.from", &self.from, bytes_max)?;
        is_id("moved.to", &self.to, bytes_max)?;
        Ok(self)
    }
}

impl Undelivered {
    /// Returns it if its id is valid.
    ///
    /// # Errors
    /// The id is invalid.
    pub fn checked(self) -> Result<Self, BadIncoming> {
        is_id("undelivered.id", &self.id, SERVICE_ID_BYTES_MAX)?;
        Ok(self)
    }
}

impl Incoming {
    /// Returns the message within its limits. Long content is cut, with a note in the message;
    /// names are made safe to show.
    ///
    /// # Errors
    /// An invalid id, for which only the component can be at fault.
    pub fn bounded(mut self) -> Result<Self, BadIncoming> {
        is_id("id", &self.id, SERVICE_ID_BYTES_MAX)?;
        is_id("sender", &self.sender, EXTERNAL_ID_BYTES_MAX)?;
        is_id("chat", &self.chat, SERVICE_ID_BYTES_MAX)?;
        if let Some(group) = &self.group {
            is_id("group", group, GROUP_ID_BYTES_MAX)?;
        }
        if let Said::Button { value } = &self.said
            && value.len() > BUTTON_BYTES_MAX
        {
            return Err(BadIncoming::Button(value.len()));
        }
        self.sender_name = self.sender_name.as_deref().and_then(shown_name);
        let before = self.attachments.len();
        self.attachments.retain(is_fit);
        self.attachments.truncate(ATTACHMENTS_MAX);
        let left_out = before - self.attachments.len();
        for (number, file) in self.attachments.iter_mut().enumerate() {
            file.make_fit(number);
        }
        self.quotations.truncate(QUOTATIONS_MAX);
        for quotation in &mut self.quotations {
            quotation.author = quotation.author.as_deref().and_then(shown_name);
            cut(&mut quotation.text);
        }
        if let Said::Text { text } | Said::Aside { text } = &mut self.said {
            cut(text);
            if left_out > 0 {
                note(text, &left_out_words(left_out));
            }
        }
        Ok(self)
    }

    /// Returns it without its content.
    #[must_use]
    pub fn without_words(self) -> Self {
        Self {
            said: Said::Text {
                text: String::new(),
            },
            quotations: Vec::new(),
            attachments: Vec::new(),
            ..self
        }
    }

    /// Adds the text of the message that it replies to, unless it contains it already.
    pub fn quote(&mut self, replied: Replied) {
        let mut quotations = self.quotations.iter_mut();
        match replied {
            // The service sends them too, in its own form.
            Replied::Own(words) if quotations.any(|reported| reported.becomes_own(&words)) => {
                return;
            }
            Replied::Own(words) => self.quotations.push(Quotation {
                kind: QuotationKind::Own,
                ..Quotation::of_replied(Some(OWN.to_owned()), Some(&words))
            }),
            _ if quotations.any(|reported| reported.kind == QuotationKind::Quoted) => return,
            Replied::Marked(words) => self
                .quotations
                .push(Quotation::of_replied(Some(OWN.to_owned()), Some(&words))),
            Replied::Others { author, words } => self
                .quotations
                .push(Quotation::of_replied(author, words.as_deref())),
            Replied::Unknown => self.quotations.push(Quotation::of_replied(None, None)),
        }
        self.quotations.truncate(QUOTATIONS_MAX);
    }

    /// Returns whether it has text, of its sender or quoted.
    #[must_use]
    pub fn has_words(&self) -> bool {
        match &self.said {
            Said::Text { text } | Said::Aside { text } => {
                !text.trim().is_empty() || !self.quotations.is_empty()
            }
            Said::Button { .. } => false,
        }
    }

    /// Returns whether it contains words of others, which mark it as content from outside.
    #[must_use]
    pub fn quotes_others(&self) -> bool {
        let mut trusts = self.quotations.iter().map(Quotation::trust);
        trusts.any(|trust| trust == Trust::Untrusted)
    }

    /// Returns the line about an attached file, for the agent. A forwarded message has its original
    /// files, so their names are words of others too.
    #[must_use]
    pub fn line_of_file(&self, text: String) -> String {
        let mut quotations = self.quotations.iter();
        match quotations.find(|it| it.kind == QuotationKind::Forwarded) {
            Some(forwarded) => {
                let author = forwarded.author.clone();
                Speaker::Forwarded { author }.block(&text, Trust::Untrusted)
            }
            None => text,
        }
    }

    /// Returns the text for the agent. In a group it has the name and the id of the speaker. Words
    /// of others are in separate blocks. None for a pressed button, and for a message with files
    /// only in a chat of two.
    #[must_use]
    pub fn said_words(&self) -> Option<String> {
        let (Said::Text { text } | Said::Aside { text }) = &self.said else {
            return None;
        };
        let own = text.trim();
        let own = (!own.is_empty()).then(|| own.to_owned());
        let others = self.quotations.iter().map(Quotation::block);
        let words: Vec<String> = own.into_iter().chain(others).collect();
        let text = words.join("\n");
        if self.group.is_none() {
            return (!text.is_empty()).then_some(text);
        }
        let id = shown_name(&self.sender).unwrap_or_default();
        let who = match &self.sender_name {
            Some(name) => format!("{name} ({id})"),
            None => id,
        };
        // Further lines are indented, so that none looks like another person's message.
        let text = text.replace('\n', "\n  ");
        Some(format!("[{who}] {text}").trim_end().to_owned())
    }
}

impl Quotation {
    /// Creates the quotation of a replied-to message, with the beginning of its text. Without text
    /// if nobody has the message any more.
    fn of_replied(author: Option<String>, words: Option<&str>) -> Self {
        let text = match words {
            Some(words) if words.len() > REPLIED_BYTES_MAX => {
                let (kept, _) = words.split_at(words.floor_char_boundary(REPLIED_BYTES_MAX));
                format!("{kept}…")
            }
            Some(words) => words.to_owned(),
            None => REPLIED_UNKNOWN.to_owned(),
        };
        Self {
            kind: QuotationKind::Quoted,
            author,
            text,
        }
    }

    /// Marks it as the agent's own words, if all of it is in the text sent for the agent. Only
    /// letters and digits are compared, because each service has its own markup.
    fn becomes_own(&mut self, sent: &str) -> bool {
        let words = letters(&self.text);
        let is_own = self.kind == QuotationKind::Quoted
            && !words.is_empty()
            && letters(sent).contains(&words);
        if is_own {
            self.kind = QuotationKind::Own;
            self.author = Some(OWN.to_owned());
        }
        is_own
    }

    /// Returns the trust in its words.
    fn trust(&self) -> Trust {
        match self.kind {
            QuotationKind::Forwarded | QuotationKind::Quoted => Trust::Untrusted,
            QuotationKind::Own => Trust::Trusted,
        }
    }

    /// Returns the block in which a model sees the words, as data with their source.
    fn block(&self) -> String {
        let author = self.author.clone();
        let speaker = match self.kind {
            QuotationKind::Forwarded => Speaker::Forwarded { author },
            QuotationKind::Quoted | QuotationKind::Own => Speaker::Quoted { author },
        };
        speaker.block(&self.text, self.trust())
    }
}

impl Attachment {
    /// Gives it a valid name and media type for a session's file.
    fn make_fit(&mut self, number: usize) {
        if check_name(&self.name).is_err() {
            self.name = format!("file-{}", number + 1);
        }
        if check_media_type(&self.media_type).is_err() {
            "application/octet-stream".clone_into(&mut self.media_type);
        }
    }
}

/// Returns the letters and digits of a text.
fn letters(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric()).collect()
}

fn is_fit(file: &Attachment) -> bool {
    (1..=HANDLE_BYTES_MAX).contains(&file.handle.len())
        && file.size.is_none_or(|bytes| bytes <= ATTACHMENT_BYTES_MAX)
}

fn is_id(field: &'static str, id: &str, bytes_max: usize) -> Result<(), BadIncoming> {
    let fits =
        (1..=bytes_max).contains(&id.len()) && !id.chars().any(char::is_control) && id.trim() == id;
    if fits {
        Ok(())
    } else {
        Err(BadIncoming::Id { field, bytes_max })
    }
}

/// Returns a name without characters that could be mistaken for the text around it.
fn shown_name(name: &str) -> Option<String> {
    let name: String = name
        .chars()
        .filter(|char| !is_hidden(*char) && !"[]()".contains(*char))
        .take(SENDER_NAME_CHARS_MAX)
        .collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn cut(text: &mut String) {
    text.retain(|char| matches!(char, '\n' | '\t') || !controls_what_is_shown(char));
    if text.len() > INCOMING_TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(INCOMING_TEXT_BYTES_MAX));
        note(
            text,
            &format!("the message was longer; only its first {INCOMING_TEXT_BYTES_MAX} bytes came"),
        );
    }
}

fn note(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push('[');
    text.push_str(words);
    text.push(']');
}

fn left_out_words(files: usize) -> String {
    let files = match files {
        1 => "1 file was".to_owned(),
        files => format!("{files} files were"),
    };
    format!(
        "{files} left out: a message has at most {ATTACHMENTS_MAX} files of \
         {ATTACHMENT_BYTES_MAX} bytes"
    )
}

#[cfg(test)]
mod tests;

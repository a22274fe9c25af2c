//! Messages and calls that arrive from a service.

/// A call of the service, whose signature the host has verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Headers without credentials, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The query, decoded, without credentials.
    pub query: Vec<(String, String)>,
    /// The body as received.
    pub body: Vec<u8>,
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// The id by which [`Connector::fetch`](crate::Connector::fetch) gets it.
    pub handle: String,
    /// Its size in bytes, as far as the service says.
    pub size: Option<u64>,
}

/// The content of an incoming message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Words, in plain text or Markdown.
    Text(String),
    /// A button of a question was pressed: the value that the host gave the button.
    Button(String),
    /// Anything but new words of its sender: an edit of a message, a reaction to one, one that
    /// cannot be read, each told in words. It answers no question, and is no command.
    Aside(String),
}

/// The way in which words of somebody else stand in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotationKind {
    /// The sender passed a message of somebody else's on.
    Forwarded,
    /// The sender replies to them.
    Quoted,
}

/// Words in a message that its sender did not write there and then. The agent is shown them as data
/// with their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotation {
    /// The way in which they stand in it.
    pub kind: QuotationKind,
    /// The one whose words they are, for people, as far as the service says.
    pub author: Option<String>,
    /// The words.
    pub text: String,
}

/// One incoming message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The service's id of it. The same id is taken once within seven days.
    pub id: String,
    /// The one it is from, in the service's terms. The host maps it to a user.
    pub sender: String,
    /// The sender's name for people, as far as the service says.
    pub sender_name: Option<String>,
    /// The group that it was said in; none in a chat with the sender alone.
    pub group: Option<String>,
    /// The chat to reply in. Order is kept within it.
    pub chat: String,
    /// The content of it, in its sender's own words. A message that was passed on is a
    /// [`Quotation`], and no part of this.
    pub said: Said,
    /// The words of others in it: 10 at most.
    pub quotations: Vec<Quotation>,
    /// The files that came with it: 10 at most.
    pub attachments: Vec<Attachment>,
    /// Time at which it was sent, in milliseconds since the Unix epoch.
    pub sent_ms: u64,
    /// The handle by which [`Body::Acknowledgement`](crate::Body::Acknowledgement) tells the
    /// service that the message was taken: 1 to 16,384 bytes; none where the service does not wait
    /// for that.
    pub acknowledge: Option<String>,
    /// True if it is not said to the bot, such as words in a thread that do not mention it. It is
    /// heard only in a chat in which an agent says something, or is about to. With `replies_to` it
    /// is heard only where that is a message that [`Connector::send`](crate::Connector::send) sent,
    /// into the chat itself or into one below it, whose name begins with this one and `/`.
    pub overheard: bool,
    /// The service's id of the message that it replies or reacts to, where the service does not
    /// tell what that says. The host adds its words as a quotation, as far as it has them. Those of
    /// what [`Connector::send`](crate::Connector::send) sent count as the agent's own.
    pub replies_to: Option<String>,
}

/// Somebody, or a group, whom the service knows by another id from now on. The host binds the new
/// id to the user to whom the one before is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The id before, as [`Incoming::group`] or [`Incoming::sender`] has it.
    pub from: String,
    /// The id now.
    pub to: String,
    /// True of a group. Its old id stays bound; that of a person counts no longer.
    pub is_group: bool,
}

impl Incoming {
    /// Creates a message of a chat with its sender alone, without files. The other fields are
    /// empty: `Incoming { sent_ms, ..Incoming::new(…) }` sets those that the service gives, and
    /// goes on compiling when there are more.
    pub fn new(
        id: impl Into<String>,
        sender: impl Into<String>,
        chat: impl Into<String>,
        said: Said,
    ) -> Self {
        Self {
            id: id.into(),
            sender: sender.into(),
            sender_name: None,
            group: None,
            chat: chat.into(),
            said,
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_ms: 0,
            acknowledge: None,
            overheard: false,
            replies_to: None,
        }
    }
}

/// A message that the service took, and of which it says later that it did not deliver it. The host
/// gives it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The service's id of it, as `send` returned it.
    pub id: String,
    /// The reason, without secrets and without names of people: an operator is told it.
    pub reason: String,
}

/// The messages that a call of the service or a poll brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The messages in the service's order: 1,000 at most.
    pub messages: Vec<Incoming>,
    /// People and groups that have other ids now: 1,000 at most. They may be told again.
    pub moved: Vec<Moved>,
    /// Messages that were sent and not delivered after all: 1,000 at most. They may be told again.
    pub undelivered: Vec<Undelivered>,
    /// The position that the next poll goes on from; stored with the messages in one commit.
    /// 4 KiB at most.
    pub cursor: Option<String>,
    /// Milliseconds until the next poll. Not read after `receive`.
    pub next_ms: u32,
    /// The answer to the service, such as a challenge: 4 KiB of text at most. Not read after
    /// `poll`.
    pub answer: Option<String>,
}

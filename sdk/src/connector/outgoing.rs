//! Messages that are sent to a service.

/// One choice of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The text that it shows.
    pub label: String,
    /// The value that the service is to send back when it is chosen: 64 bytes at most.
    pub value: String,
}

/// The content to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text in Markdown (CommonMark), within the text limit. The component translates it into what
    /// the service shows.
    Text(String),
    /// A question with choices, as many as there may be buttons.
    Question {
        /// The question, in Markdown.
        text: String,
        /// The choices.
        choices: Vec<Choice>,
    },
    /// Shows that somebody is typing. Lost without harm.
    Typing,
    /// Another text for a message that was sent before. One that changes nothing succeeds: where
    /// the answer to the last edit of a reply was lost, the host makes it again. An edit that is
    /// rejected means that the message is gone, and the host sends the text as a message of its own
    /// unless an edit before may have been made.
    Edit {
        /// The service's id of it.
        id: String,
        /// The text, in Markdown.
        text: String,
    },
    /// Tells the service that a message was taken: the handle of
    /// [`Incoming::acknowledge`](crate::Incoming::acknowledge). It comes soon after the
    /// message is stored, once or not at all, and is stopped after 5 seconds. Lost without harm.
    Acknowledgement(String),
}

/// One outgoing message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The chat that it goes to, as [`Incoming::chat`](crate::Incoming::chat) said.
    pub chat: String,
    /// The content of it.
    pub body: Body,
    /// The same for every attempt.
    pub idempotency_key: String,
}

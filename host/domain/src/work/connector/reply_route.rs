//! Reply routes: the chats of messaging services that receive replies, and the recipient of a
//! turn's results.

use crate::agents::path::ConnectorName;
use crate::work::operation::ReplyTo;
use crate::work::trigger::Quiet;
use serde::{Deserialize, Serialize};

/// The chat that receives replies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRoute {
    /// The connector.
    pub connector: ConnectorName,
    /// The chat, in the service's terms.
    pub chat: String,
}

/// A chat that receives the results of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The chat.
    pub route: ReplyRoute,
    /// True if a person wrote from it, and waits for the result.
    pub is_awaited: bool,
    /// The rule for replies that are not sent, in a turn that only a heartbeat began.
    pub quiet: Option<Quiet>,
}

/// The recipient of a turn's results, in addition to the viewers of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nobody: the request was sent over the API, or by another agent that does not wait.
    Nobody,
    /// The chat of the latest message to its session: the turn continues work requested there.
    Session,
    /// Another agent, which waits for it. Its questions reach the chat that this agent answers.
    Caller(ReplyTo),
    /// A chat.
    Chat(Recipient),
}

//! Reply routes: the chats of messaging services into which replies go, and who hears what comes
//! of a turn.

use crate::agents::path::ConnectorName;
use crate::work::operation::ReplyTo;
use crate::work::trigger::Quiet;
use serde::{Deserialize, Serialize};

/// The chat into which replies go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRoute {
    /// The connector.
    pub connector: ConnectorName,
    /// The chat, in the service's terms.
    pub chat: String,
}

/// A chat that hears what comes of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The chat.
    pub route: ReplyRoute,
    /// True if somebody wrote from it, and waits for what comes of that.
    pub is_awaited: bool,
    /// The replies that it does not hear, of a turn that nobody but a heartbeat began.
    pub quiet: Option<Quiet>,
}

/// The subscribers of what comes of a turn, besides those who look at its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nobody: it was asked for over the API, or by another agent that does not wait.
    Nobody,
    /// The chat from which its session was last written to: it goes on with what was asked for
    /// there.
    Session,
    /// Another agent, which waits for it. Questions of it reach the chat that this one answers.
    Caller(ReplyTo),
    /// A chat.
    Chat(Recipient),
}

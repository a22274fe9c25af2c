//! A user's return from another agent: the notice to the session that they return to, and its
//! answer.

use domain::id::{AgentId, RunId, SessionId, TurnId};
use domain::message::MessageId;
use domain::user::UserId;
use serde::{Deserialize, Serialize};

/// The conversation that a user returns from.
#[derive(Debug, Clone)]
pub(crate) struct ComeBack {
    /// The user.
    pub(crate) by: UserId,
    /// The session that they were in.
    pub(crate) session: SessionId,
    /// Its agent.
    pub(crate) agent: AgentId,
    /// The definition of that agent.
    pub(crate) definition: String,
    /// The last turn there.
    pub(crate) head: TurnId,
    /// The last message of that conversation.
    pub(crate) last_message: MessageId,
    /// The first message since the switch.
    pub(crate) first_message: MessageId,
    /// The attribute of that session that records where the user came from.
    pub(crate) attribute: &'static str,
}

/// The session to which a user returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The run that brings the summary; none when nothing was said meanwhile.
    pub run: Option<RunId>,
}

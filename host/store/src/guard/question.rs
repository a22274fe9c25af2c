//! Questions that guards ask the store, as data, and the answers.

use crate::query::{Query, Rows, Value};
use domain::id::{AgentId, ConversationId, InputId, OutboundMessageId, RunId, SessionId, TurnId};
use domain::key::KeyId;
use domain::path::{ConnectorKey, ConnectorName};
use domain::trigger::TriggerName;
use domain::user::UserId;

/// Number of questions that one guard asks, at most.
const QUESTIONS_MAX: usize = 2;

/// The questions of one guard. They do not depend on each other's answers, so that a batch can ask
/// all of its questions at once.
pub(crate) type Questions<'g> = [Option<Question<'g>>; QUESTIONS_MAX];

/// The rows that answer the questions of one guard, question by question.
pub(crate) type Answers = [Rows; QUESTIONS_MAX];

/// A question of a guard. The questions of every acceptance are named, because a writer may know
/// their answers without a query.
#[derive(Debug)]
pub(crate) enum Question<'g> {
    /// The status of a session; see [`super::AcceptanceStatus`].
    AcceptanceStatus(SessionId),
    /// The role of a user with an agent.
    Role {
        /// The agent.
        agent: AgentId,
        /// The user.
        user: &'g UserId,
    },
    /// The number of bytes that a user has brought and that are still there.
    StoredBytes(&'g UserId),
    /// The number of those bytes that were stored under an API key.
    StoredBytesWith(&'g KeyId),
    /// The status of a trigger; see [`super::TriggerStatus`].
    TriggerStatus(&'g TriggerName),
    /// Any other query.
    Other(Query<'g>),
}

pub(super) fn ask<'g, const N: usize>(
    text: &'static str,
    parameters: [Value<'g>; N],
) -> Questions<'g> {
    [Some(Question::Other(Query::new(text, parameters))), None]
}

/// The resources that the judgement of a guard depends on.
pub type Footprint = Vec<Resource>;

/// A resource that the judgement of a guard depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A session with its stream, its runs and inputs, and the agent that it belongs to.
    Session(SessionId),
    /// A conversation: whose its sessions are.
    Conversation(ConversationId),
    /// An input with its session.
    Input(InputId),
    /// A turn, which only a purge takes away.
    Turn(TurnId),
    /// The turns that follow a turn directly, with their messages.
    TurnsAfter(TurnId),
    /// A run with its stream.
    Run(RunId),
    /// An agent with its stream, and those above it.
    Agent(AgentId),
    /// The agents that a user has sessions with: whether they are active.
    AgentsOf(UserId),
    /// The dispatches of a tree of agents, by the topmost one.
    Dispatches(AgentId),
    /// An account, by its address, with all runs that draw on it.
    Account(String),
    /// A user with their sessions, triggers, connector keys and bytes.
    User(UserId),
    /// A path with the active agent that lives at it.
    Path(String),
    /// An API key, with the bytes stored under it.
    ApiKey(KeyId),
    /// A connector key, with the pairing that is offered for it.
    ConnectorKey(ConnectorKey),
    /// The connector keys of a connector: how many there are.
    KeysOfConnector(ConnectorName),
    /// The triggers of the host: how many there are.
    Triggers,
    /// A trigger with its trigger events.
    Trigger(TriggerName),
    /// A connector with its inbound messages.
    Connector(ConnectorName),
    /// A message to people outside.
    OutboundMessage(OutboundMessageId),
    /// The operations of all sessions that wait for another session.
    Waits,
}

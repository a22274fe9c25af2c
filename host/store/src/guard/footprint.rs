//! The footprint of a guard: the resources that its judgement depends on.

use domain::id::{AgentId, ConversationId, InputId, OutboundMessageId, RunId, SessionId, TurnId};
use domain::key::KeyId;
use domain::path::{ConnectorKey, ConnectorName};
use domain::trigger::TriggerName;
use domain::user::UserId;

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

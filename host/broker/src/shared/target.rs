//! The agent that a request names, and the one that is found or made for it.

use domain::definition::DefinitionId;
use domain::event::AgentCreated;
use domain::id::AgentId;
use domain::path::PathKind;
use domain::role::AgentRole;
use store::AgentRow;

/// The agent that a path parameter names: by a UUID, a path or a definition.
///
/// A definition is taken only where a command may create the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An agent's id.
    Agent(AgentId),
    /// An agent's path.
    Path(String),
    /// A definition's id: the caller's agent of that definition.
    Definition(DefinitionId),
}

impl Target {
    /// Returns the name by which the request addressed it. A request that addresses the same agent
    /// by another name is another request.
    pub(crate) fn named(&self) -> String {
        match self {
            Self::Agent(agent) => agent.to_string(),
            Self::Path(path) => path.clone(),
            Self::Definition(id) => id.to_string(),
        }
    }
}

/// The agent with which a session or a chat begins.
pub(crate) enum Whom {
    /// An existing agent, and the user's role with it.
    There(Box<AgentRow>, AgentRole),
    /// An agent that is made in the same commit.
    New(Box<AgentCreated>),
}

impl Whom {
    /// Returns the kind of the agent.
    pub(crate) fn kind(&self) -> PathKind {
        match self {
            Self::There(row, _) => row.kind,
            Self::New(created) => created.kind,
        }
    }
}

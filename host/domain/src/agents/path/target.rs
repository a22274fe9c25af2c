//! Post targets: an agent as a caller names it, by its id or by its path.

use super::{AgentPath, PathError};
use crate::values::id::AgentId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The recipient of a post. In JSON `{"agent_id": "…"}` or `{"path": "/…"}`, as text the id or the
/// path alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "TargetInput")]
pub enum PostTarget {
    /// The agent with this id, at any path, active or not.
    #[serde(rename = "agent_id")]
    Agent(AgentId),
    /// The active agent at this path.
    #[serde(rename = "path")]
    Path(AgentPath),
}

/// The reason why a post target names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostTargetError {
    /// It begins with `/` and is no path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It does not begin with `/` and is no UUID.
    #[error(
        "`{0}` names no agent: write its id, which is a UUID, or its path, which begins with `/`"
    )]
    NotAnId(String),
    /// Both keys are there.
    #[error("`agent_id` and `path` both name an agent; leave one of them out")]
    Both,
    /// Neither key is there.
    #[error("nothing names an agent; say `agent_id` or `path`")]
    Neither,
}

/// A target as a client sends it. A key with `null` counts as omitted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetInput {
    agent_id: Option<AgentId>,
    path: Option<AgentPath>,
}

impl TryFrom<TargetInput> for PostTarget {
    type Error = PostTargetError;

    fn try_from(given: TargetInput) -> Result<Self, PostTargetError> {
        match (given.agent_id, given.path) {
            (Some(id), None) => Ok(Self::Agent(id)),
            (None, Some(path)) => Ok(Self::Path(path)),
            (Some(_), Some(_)) => Err(PostTargetError::Both),
            (None, None) => Err(PostTargetError::Neither),
        }
    }
}

impl FromStr for PostTarget {
    type Err = PostTargetError;

    fn from_str(text: &str) -> Result<Self, PostTargetError> {
        if text.starts_with('/') {
            return Ok(Self::Path(text.parse()?));
        }
        text.parse()
            .map(Self::Agent)
            .map_err(|_| PostTargetError::NotAnId(super::segment::shown(text)))
    }
}

impl fmt::Display for PostTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Path(path) => path.fmt(f),
        }
    }
}

impl From<AgentId> for PostTarget {
    fn from(id: AgentId) -> Self {
        Self::Agent(id)
    }
}

impl From<AgentPath> for PostTarget {
    fn from(path: AgentPath) -> Self {
        Self::Path(path)
    }
}

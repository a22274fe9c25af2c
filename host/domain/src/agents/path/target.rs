//! Post targets: an agent as a caller names it, by its id or by its path.

use super::{AgentPath, PathError, Root};
use crate::values::id::AgentId;
use crate::values::shown::escaped;
use crate::values::text::words;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

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
            .map_err(|_| PostTargetError::NotAnId(escaped(text)))
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

// Fetch strategies: rules that find an agent when none is named.

/// The tag of the system agent that [`FetchStrategy::Heartbeat`] finds.
const HEARTBEAT: &str = "heartbeat";

/// A rule that finds an agent when none is named. Of the agents with matching paths, the most
/// recently used one is taken.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FetchStrategy {
    /// `most-recent-foreground`: an agent that talks with a person.
    MostRecentForeground,
    /// `heartbeat`: the system agent that does recurring work.
    Heartbeat,
}

words!(FetchStrategy { MostRecentForeground = "most-recent-foreground", Heartbeat = "heartbeat" });

impl FetchStrategy {
    /// Returns whether the rule matches the path.
    #[must_use]
    pub fn matches(self, path: &AgentPath) -> bool {
        match self {
            Self::MostRecentForeground => path.kind().is_foreground(),
            Self::Heartbeat => {
                path.depth() == 0
                    && matches!(path.origin(), Root::System(tag) if tag.as_str() == HEARTBEAT)
            }
        }
    }
}

/// A text that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fetch strategy; there are: {list}", list = FetchStrategy::ALL.map(FetchStrategy::as_str).join(", "))]
pub struct NotAStrategy(String);

impl FromStr for FetchStrategy {
    type Err = NotAStrategy;

    fn from_str(text: &str) -> Result<Self, NotAStrategy> {
        Self::from_word(text).ok_or_else(|| NotAStrategy(escaped(text)))
    }
}

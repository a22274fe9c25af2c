//! Fetch strategies: rules that find an agent when none is named.

use super::{AgentPath, Root};
use crate::values::text::words;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::ToSchema;

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
        Self::from_word(text).ok_or_else(|| NotAStrategy(super::segment::shown(text)))
    }
}

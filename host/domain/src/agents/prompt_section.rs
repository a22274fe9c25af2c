//! Names of the sections of a system prompt, with which a definition switches them off.

use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A section of the system prompt after its base, in the order of the prompt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SectionName {
    /// The tools, each with a short description; those of `system_*` are left out.
    Tools,
    /// The skills that are used on a command line.
    Skills,
    /// The items that tools store and people see.
    ArtifactItems,
    /// The description of the line that clients put before a message.
    MessageContext,
    /// The panels that clients show.
    ArtifactsPanels,
    /// The agents that it may send messages to.
    AvailableAgents,
}

words!(SectionName {
    Tools = "tools",
    Skills = "skills",
    ArtifactItems = "artifactItems",
    MessageContext = "messageContext",
    ArtifactsPanels = "artifactsPanels",
    AvailableAgents = "availableAgents",
});

impl SectionName {
    /// Returns whether it may differ between two runs of an unchanged configuration.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        matches!(self, Self::ArtifactItems | Self::ArtifactsPanels)
    }
}

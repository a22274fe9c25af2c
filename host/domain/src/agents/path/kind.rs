//! Facts that a path states about its agent: its kind, its model role, and its label without a
//! name.

use super::{AgentPath, Folder, Root, Suffix};
use crate::values::shown::escaped;
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::ToSchema;

/// The kind of agent at a path, determined by the last suffix, or else by the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(JsonSchema, ToSchema)]
#[schemars(rename = "Kind")]
#[schema(as = AgentKind)]
pub enum PathKind {
    /// `/<user>/<connector>`
    Connector,
    /// `/<user>/agent/<name>`
    Agent,
    /// `/<user>/cron/<name>`
    Cron,
    /// `/<user>/task/<name>`
    Task,
    /// `/<user>/subuser/<name>`
    Subuser,
    /// `/<user>/app/<name>`
    App,
    /// `/system/<tag>`
    System,
    /// `…/sub/<n>`
    Sub,
    /// `…/memory`
    Memory,
    /// `…/search/<n>`
    Search,
}

/// The role for which the model of an agent is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[derive(JsonSchema, ToSchema)]
pub enum ModelRole {
    /// `user`: talks with people.
    User,
    /// `subagent`: works for another agent.
    Subagent,
    /// `memory`: extracts memories.
    Memory,
    /// `memorySearch`: searches memories.
    MemorySearch,
    /// `task`: does one piece of work.
    Task,
    /// `research`: the target `researcher` of a delegation.
    Research,
    /// `code`: the target `coder` of a delegation.
    Code,
    /// `heartbeat`: whoever a heartbeat wakes.
    Heartbeat,
}

words!(PathKind {
    Connector = "connector",
    Agent = "agent",
    Cron = "cron",
    Task = "task",
    Subuser = "subuser",
    App = "app",
    System = "system",
    Sub = "sub",
    Memory = "memory",
    Search = "search",
});

impl PathKind {
    /// The model role of agents of this kind. None for schedules, apps and system agents, which use
    /// the host's default model.
    #[must_use]
    pub fn model_role(self) -> Option<ModelRole> {
        match self {
            Self::Connector | Self::Agent | Self::Subuser => Some(ModelRole::User),
            Self::Sub => Some(ModelRole::Subagent),
            Self::Memory => Some(ModelRole::Memory),
            Self::Search => Some(ModelRole::MemorySearch),
            Self::Task => Some(ModelRole::Task),
            Self::Cron | Self::App | Self::System => None,
        }
    }

    /// Returns whether agents of this kind talk with a person. A message to a user's agents is
    /// posted to these.
    #[must_use]
    pub fn is_foreground(self) -> bool {
        match self {
            Self::Connector | Self::Agent | Self::Subuser => true,
            Self::Cron
            | Self::Task
            | Self::App
            | Self::System
            | Self::Sub
            | Self::Memory
            | Self::Search => false,
        }
    }

    /// Returns whether agents of this kind are made below another agent for one piece of work. They
    /// become dead some time after it.
    #[must_use]
    pub fn is_ephemeral(self) -> bool {
        match self {
            Self::Sub | Self::Memory | Self::Search => true,
            Self::Connector
            | Self::Agent
            | Self::Cron
            | Self::Task
            | Self::Subuser
            | Self::App
            | Self::System => false,
        }
    }
}

/// A text that is no kind of agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kind of agent; there are: {list}", list = PathKind::ALL.map(PathKind::as_str).join(", "))]
pub struct NotAKind(String);

impl FromStr for PathKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<Self, NotAKind> {
        Self::from_word(text).ok_or_else(|| NotAKind(escaped(text)))
    }
}

words!(ModelRole {
    User = "user",
    Subagent = "subagent",
    Memory = "memory",
    MemorySearch = "memorySearch",
    Task = "task",
    Research = "research",
    Code = "code",
    Heartbeat = "heartbeat",
});

impl AgentPath {
    /// Returns the kind of agent at this path.
    #[must_use]
    pub fn kind(&self) -> PathKind {
        match (self.suffixes.last(), &self.root) {
            (Some(Suffix::Sub(_)), _) => PathKind::Sub,
            (Some(Suffix::Memory), _) => PathKind::Memory,
            (Some(Suffix::Search(_)), _) => PathKind::Search,
            (None, Root::System(_)) => PathKind::System,
            (None, Root::Connector { .. }) => PathKind::Connector,
            (None, Root::Named { folder, .. }) => match folder {
                Folder::Agent => PathKind::Agent,
                Folder::Cron => PathKind::Cron,
                Folder::Task => PathKind::Task,
                Folder::Subuser => PathKind::Subuser,
                Folder::App => PathKind::App,
            },
        }
    }

    /// The model role of the agent at this path.
    #[must_use]
    pub fn model_role(&self) -> Option<ModelRole> {
        self.kind().model_role()
    }

    /// Returns the label of the agent for people. It is the configured name if its kind has one,
    /// and otherwise derived from the path. Spaces around a name are ignored, and a name of spaces
    /// only is no name. System agents, tasks and memory agents are labelled with their paths.
    #[must_use]
    pub fn label(&self, name: Option<&str>) -> String {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let or = |otherwise: &str| name.unwrap_or(otherwise).to_owned();
        match (self.suffixes.last(), &self.root) {
            (Some(Suffix::Sub(_)), _) => or("subagent"),
            (Some(Suffix::Memory), _) => "memory-agent".to_owned(),
            (Some(Suffix::Search(_)), _) => or("memory-search"),
            (None, Root::System(tag)) => tag.to_string(),
            (None, Root::Connector { .. }) => or("user"),
            (
                None,
                Root::Named {
                    folder, name: own, ..
                },
            ) => match folder {
                Folder::Task => format!("task {own}"),
                Folder::Cron => or("cron task"),
                Folder::Agent | Folder::Subuser | Folder::App => or(own.as_str()),
            },
        }
    }
}

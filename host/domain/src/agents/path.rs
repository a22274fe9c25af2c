//! Paths: the addresses of agents, as one validated type with its parts.
//!
//! A path identifies an agent. It does not say where the agent runs or what its label is:
//!
//! ```text
//! /<user>/<connector>                              whom a connector exchanges with
//! /<user>/(agent|cron|task|subuser|app)/<name>     what a user has, by name
//! /system/<tag>                                    the host's own
//! <path>/sub/<n>   <path>/memory   <path>/search/<n>   what works for the agent at `path`, to any depth
//! ```
//!
//! Every segment has one meaning at its position, so no text can be read as two kinds. A word that
//! marks a kind is never a name. (`app` was added later and is not reserved. A connector may have
//! this name: it is at `/<user>/app`, with `sub`, `memory` and `search` below it.) The kind, the
//! role and the parent of an agent follow from its path and are stored when the agent is made.
//! Later readings of the path only check them.

mod build;
mod config;
mod connector;
mod error;
mod fetch;
mod kind;
mod parse;
mod rules;
mod segment;
mod subtree;
mod target;
#[cfg(test)]
mod tests;
mod user_rules;

pub use config::{
    AGENT_NAME_BYTES_MAX, AgentConfig, AgentConfigError, DESCRIPTION_BYTES_MAX, PROMPT_BYTES_MAX,
    USERNAME_BYTES_MAX, WORKSPACE_DIR_BYTES_MAX,
};
pub use connector::{
    ConnectorKey, ConnectorKeyError, EXTERNAL_ID_BYTES_MAX, NoReplyTarget, ReplyTarget,
};
pub use error::{Allowed, PathError};
pub use fetch::{FetchStrategy, NotAStrategy};
pub use kind::{ModelRole, NotAKind, PathKind};
pub use rules::{
    PATH_RULES_MAX, PathAccess, PathPermit, PathRule, PathRules, PathVerdict, TooManyRules,
};
pub use segment::{ConnectorName, Name, NotASegment, SegmentFault, Tag};
pub use subtree::{Subtree, SubtreeError};
pub use target::{PostTarget, PostTargetError};
pub use user_rules::{UserRule, UserRules};

use crate::access::user::{USER_BYTES_MAX, UserId};
use crate::values::text::words;
use std::fmt;

/// Bytes of a path.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Segments of a path. Below a root of three segments this allows 126 nested agents with an index
/// each.
pub const PATH_SEGMENTS_MAX: usize = 256;
/// The largest number after `sub` and `search`: as large as its type allows.
pub const INDEX_MAX: u32 = u32::MAX;
/// Bytes of the name of a connector, and of the tag of a system agent.
pub const CONNECTOR_NAME_BYTES_MAX: usize = 64;
/// Bytes of a name after `agent`, `cron`, `task` and `subuser`.
pub const NAME_BYTES_MAX: usize = 512;

/// Checks that a root of valid names is always a valid path. Building a root therefore cannot fail.
const _: () =
    assert!("/".len() + USER_BYTES_MAX + "/subuser/".len() + NAME_BYTES_MAX <= PATH_BYTES_MAX);

/// The address of an agent. It serializes as its text.
///
/// Paths are ordered by their texts, byte by byte, as in `SQLite`'s `BINARY` collation. All paths
/// below a path directly follow it. Indices are not in numeric order (`sub/10` is before `sub/2`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentPath {
    /// First, because it decides the order.
    text: String,
    root: Root,
    /// The suffixes after the root, in order.
    suffixes: Vec<Suffix>,
}

/// The beginning of a path: an agent that no other agent made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// `/system/<tag>`
    System(Tag),
    /// `/<user>/<connector>`
    Connector {
        /// The other side of the conversation: a person, or a group, which has a user id of its
        /// own.
        user: UserId,
        /// The connector through which they talk.
        connector: ConnectorName,
    },
    /// `/<user>/<folder>/<name>`
    Named {
        /// The user to whom it belongs.
        user: UserId,
        /// Its kind.
        folder: Folder,
        /// Its name.
        name: Name,
    },
}

/// The words after a user's id that are followed by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// `agent`: a named agent.
    Agent,
    /// `cron`: an agent that a schedule runs.
    Cron,
    /// `task`: work that is done once.
    Task,
    /// `subuser`: the gateway to a user below this one.
    Subuser,
    /// `app`: an agent of one of the user's apps.
    App,
}

/// A path suffix for an agent that works for the agent at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suffix {
    /// `sub/<n>`: an agent that it spawned.
    Sub(u32),
    /// `memory`: the agent that extracts memories.
    Memory,
    /// `search/<n>`: an agent that searches memories.
    Search(u32),
}

impl AgentPath {
    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the root with which it begins.
    #[must_use]
    pub fn origin(&self) -> &Root {
        &self.root
    }

    /// Returns the suffixes after the root, in order.
    #[must_use]
    pub fn suffixes(&self) -> &[Suffix] {
        &self.suffixes
    }

    /// Returns the user who owns the agent: the first segment. None for the host's own agents and
    /// their sub-agents.
    #[must_use]
    pub fn user(&self) -> Option<&UserId> {
        match &self.root {
            Root::System(_) => None,
            Root::Connector { user, .. } | Root::Named { user, .. } => Some(user),
        }
    }

    /// Returns the connector through which the agent itself talks. None for its sub-agents, which
    /// answer their parent only. The connector of the whole tree is that of its
    /// [`AgentPath::root`].
    #[must_use]
    pub fn connector_name(&self) -> Option<&ConnectorName> {
        match &self.root {
            Root::Connector { connector, .. } if self.suffixes.is_empty() => Some(connector),
            Root::Connector { .. } | Root::System(_) | Root::Named { .. } => None,
        }
    }

    /// The path of the agent that made this one: for `/u/telegram/sub/0` it is `/u/telegram`. None
    /// for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.suffixes.split_last()?;
        Some(Self::from_parts(self.root.clone(), above.to_vec()))
    }

    /// The paths of its ancestors, parent first and root last; none for a root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// The path of the topmost ancestor; the path itself for a root.
    #[must_use]
    pub fn root(&self) -> Self {
        Self::from_parts(self.root.clone(), Vec::new())
    }

    /// Returns the number of agents above it: 0 for a root, 1 for `/u/telegram/sub/0`.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.suffixes.len()
    }

    fn from_parts(root: Root, suffixes: Vec<Suffix>) -> Self {
        let mut text = root.to_string();
        for suffix in &suffixes {
            text.push_str(&suffix.to_string());
        }
        Self {
            text,
            root,
            suffixes,
        }
    }
}

words!(Folder {
    Agent = "agent",
    Cron = "cron",
    Task = "task",
    Subuser = "subuser",
    App = "app",
});

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(tag) => write!(f, "/system/{tag}"),
            Self::Connector { user, connector } => write!(f, "/{user}/{connector}"),
            Self::Named { user, folder, name } => write!(f, "/{user}/{}/{name}", folder.as_str()),
        }
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sub(index) => write!(f, "/sub/{index}"),
            Self::Memory => f.write_str("/memory"),
            Self::Search(index) => write!(f, "/search/{index}"),
        }
    }
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl schemars::JsonSchema for AgentPath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentPath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The address of an agent, such as `/alice/agent/reader`, \
                            `/alice/telegram/sub/0` or `/system/heartbeat`.",
            "type": "string",
            "pattern": "^/[^/]+/[^/]+(/[^/]+)*$",
            "maxLength": PATH_BYTES_MAX,
        })
    }
}

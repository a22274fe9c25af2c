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

mod config;
mod connector;
mod error;
mod kind;
mod rules;
mod segment;
mod subtree;
mod target;

use crate::access::user::{RESERVED_WORDS, USER_BYTES_MAX, UserId};
use crate::values::shown::escaped;
use crate::values::text::{serde_as_text, words};
pub use config::{
    AGENT_NAME_BYTES_MAX, AgentConfig, AgentConfigError, DESCRIPTION_BYTES_MAX, PROMPT_BYTES_MAX,
    USERNAME_BYTES_MAX, WORKSPACE_DIR_BYTES_MAX,
};
pub use connector::{
    ConnectorKey, ConnectorKeyError, EXTERNAL_ID_BYTES_MAX, NoReplyTarget, ReplyTarget,
};
pub use error::{Allowed, PathError};
pub use kind::{ModelRole, NotAKind, PathKind};
pub use rules::{
    PATH_RULES_MAX, PathAccess, PathPermit, PathRule, PathRules, PathVerdict, TooManyRules,
    UserRule, UserRules,
};
use segment::fault_of_user;
pub use segment::{ConnectorName, Name, NotASegment, SegmentFault, Tag};
use std::fmt;
use std::str::{FromStr, Split};
pub use subtree::{Subtree, SubtreeError};
pub use target::{FetchStrategy, NotAStrategy, PostTarget, PostTargetError};

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

// Building paths. A root from valid names always fits; a path below another one may be too long.

impl AgentPath {
    /// `/<user>/<connector>`: the agent behind a connector.
    #[must_use]
    pub fn connector(user: UserId, connector: ConnectorName) -> Self {
        Self::from_parts(Root::Connector { user, connector }, Vec::new())
    }

    /// `/<user>/agent/<name>`: a named agent.
    #[must_use]
    pub fn agent(user: UserId, name: Name) -> Self {
        Self::named(user, Folder::Agent, name)
    }

    /// `/<user>/cron/<name>`: an agent that a schedule runs.
    #[must_use]
    pub fn cron(user: UserId, name: Name) -> Self {
        Self::named(user, Folder::Cron, name)
    }

    /// `/<user>/task/<name>`: work that is done once.
    #[must_use]
    pub fn task(user: UserId, name: Name) -> Self {
        Self::named(user, Folder::Task, name)
    }

    /// `/<user>/subuser/<name>`: the gateway to a user below this one.
    #[must_use]
    pub fn subuser(user: UserId, name: Name) -> Self {
        Self::named(user, Folder::Subuser, name)
    }

    /// `/<user>/app/<name>`: an agent of one of the user's apps.
    #[must_use]
    pub fn app(user: UserId, name: Name) -> Self {
        Self::named(user, Folder::App, name)
    }

    /// `/system/<tag>`: an agent of the host's own.
    #[must_use]
    pub fn system(tag: Tag) -> Self {
        Self::from_parts(Root::System(tag), Vec::new())
    }

    /// `<self>/sub/<index>`: an agent that this one spawned. Indices of `sub` and `search` come
    /// from one counter of the parent, and none is ever reused.
    ///
    /// # Errors
    /// The path would be longer than [`PATH_BYTES_MAX`], or have more segments than
    /// [`PATH_SEGMENTS_MAX`].
    pub fn sub(&self, index: u32) -> Result<Self, PathError> {
        self.below(Suffix::Sub(index))
    }

    /// `<self>/memory`: the agent that extracts memories from this one's chats.
    ///
    /// # Errors
    /// The path would be longer than [`PATH_BYTES_MAX`], or have more segments than
    /// [`PATH_SEGMENTS_MAX`].
    pub fn memory(&self) -> Result<Self, PathError> {
        self.below(Suffix::Memory)
    }

    /// `<self>/search/<index>`: an agent that searches this one's memory. See [`AgentPath::sub`]
    /// for the index.
    ///
    /// # Errors
    /// The path would be longer than [`PATH_BYTES_MAX`], or have more segments than
    /// [`PATH_SEGMENTS_MAX`].
    pub fn search(&self, index: u32) -> Result<Self, PathError> {
        self.below(Suffix::Search(index))
    }

    fn named(user: UserId, folder: Folder, name: Name) -> Self {
        Self::from_parts(Root::Named { user, folder, name }, Vec::new())
    }

    fn below(&self, suffix: Suffix) -> Result<Self, PathError> {
        let mut suffixes = self.suffixes.clone();
        suffixes.push(suffix);
        let path = Self::from_parts(self.root.clone(), suffixes);
        let bytes = path.text.len();
        let segments = path.text.matches('/').count();
        if bytes > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes });
        }
        if segments > PATH_SEGMENTS_MAX {
            Err(PathError::TooDeep { segments })
        } else {
            Ok(path)
        }
    }
}

// Reading paths from left to right, so that each segment has one meaning at its position.

/// The state of reading a path.
struct Reader<'a> {
    path: &'a str,
    segments: Split<'a, char>,
    /// The number of the segment that was read last, from 1.
    place: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let segment = self.segments.next()?;
        self.place += 1;
        Some(segment)
    }

    fn needs(&mut self, allowed: Allowed) -> Result<&'a str, PathError> {
        self.next().ok_or_else(|| PathError::Ends {
            path: self.shown(),
            place: self.place + 1,
            allowed,
        })
    }

    /// Returns the error for the segment that was read last.
    fn wrong(&self, segment: &str, fault: SegmentFault, allowed: Allowed) -> PathError {
        PathError::Segment {
            path: self.shown(),
            place: self.place,
            segment: escaped(segment),
            fault,
            allowed,
        }
    }

    /// The whole path, which is short because a longer one is not read.
    fn shown(&self) -> String {
        self.path.escape_debug().to_string()
    }

    fn root(&mut self) -> Result<Root, PathError> {
        let first = self.needs(Allowed::User)?;
        if first == "system" {
            let tag = self.needs(Allowed::Tag)?;
            return Tag::check(tag)
                .map(Root::System)
                .map_err(|fault| self.wrong(tag, fault, Allowed::Tag));
        }
        let user = first
            .parse()
            .map_err(|_| self.wrong(first, fault_of_user(first), Allowed::User))?;
        let second = self.needs(Allowed::Second)?;
        let Some(folder) = Folder::ALL
            .into_iter()
            .find(|folder| folder.as_str() == second)
            .filter(|folder| *folder != Folder::App || self.names_an_app())
        else {
            let connector = ConnectorName::check(second)
                .map_err(|fault| self.wrong(second, fault, Allowed::Second))?;
            return Ok(Root::Connector { user, connector });
        };
        let name = self.needs(Allowed::Name)?;
        let name = Name::check(name).map_err(|fault| self.wrong(name, fault, Allowed::Name))?;
        Ok(Root::Named { user, folder, name })
    }

    /// Returns whether the name of an app follows. A connector may have the name `app`. Then its
    /// segment is the last, or is followed by what may follow an agent's path.
    fn names_an_app(&self) -> bool {
        match self.segments.clone().next() {
            None | Some("sub" | "memory" | "search") => false,
            Some(_) => true,
        }
    }

    fn suffix(&mut self, word: &str) -> Result<Suffix, PathError> {
        match word {
            "sub" => self.index().map(Suffix::Sub),
            "search" => self.index().map(Suffix::Search),
            "memory" => Ok(Suffix::Memory),
            "" => Err(self.wrong(word, SegmentFault::Empty, Allowed::Suffix)),
            word if RESERVED_WORDS.contains(&word) => {
                Err(self.wrong(word, SegmentFault::Reserved, Allowed::Suffix))
            }
            word => Err(self.wrong(word, SegmentFault::Unknown, Allowed::Suffix)),
        }
    }

    fn index(&mut self) -> Result<u32, PathError> {
        let text = self.needs(Allowed::Index)?;
        index(text).map_err(|fault| self.wrong(text, fault, Allowed::Index))
    }
}

/// A number in its one spelling; `+1`, `01` and `1_0` are refused.
fn index(text: &str) -> Result<u32, SegmentFault> {
    if text.is_empty() {
        return Err(SegmentFault::Empty);
    }
    if let Some(sign) = text.chars().find(|sign| !sign.is_ascii_digit()) {
        return Err(SegmentFault::Sign(sign));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(SegmentFault::LeadingZero);
    }
    // It has only digits, so the only fault is that it is larger than any index.
    text.parse().map_err(|_| SegmentFault::TooLarge)
}

serde_as_text!(AgentPath::from_str);

impl FromStr for AgentPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len() });
        }
        let Some(inside) = text.strip_prefix('/') else {
            return Err(PathError::NotAbsolute {
                given: escaped(text),
            });
        };
        let segments = inside.split('/').count();
        if segments > PATH_SEGMENTS_MAX {
            return Err(PathError::TooDeep { segments });
        }
        let mut reader = Reader {
            path: text,
            segments: inside.split('/'),
            place: 0,
        };
        let root = reader.root()?;
        let mut suffixes = Vec::new();
        while let Some(word) = reader.next() {
            suffixes.push(reader.suffix(word)?);
        }
        Ok(Self {
            text: text.to_owned(),
            root,
            suffixes,
        })
    }
}

#[cfg(test)]
mod tests;

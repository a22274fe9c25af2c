//! Building paths. A root from valid names always fits; a path below another one may be too long.

use super::segment::{ConnectorName, Name, Tag};
use super::{AgentPath, Folder, PATH_BYTES_MAX, PATH_SEGMENTS_MAX, PathError, Root, Suffix};
use crate::access::user::UserId;

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

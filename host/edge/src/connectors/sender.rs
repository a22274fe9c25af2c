//! The sender of inbound messages, once their user is known.

use broker::Target;
use domain::path::AgentPath;
use domain::user::UserId;

/// The user of a sender, and the destination of their messages.
pub(super) struct Sender {
    pub(super) user: UserId,
    pub(super) path: AgentPath,
    /// True if the words are the user's own.
    pub(super) own_words: bool,
    /// True if files are left out that the service does not give now: they were asked for often
    /// enough.
    pub(super) without_late_files: bool,
}

impl Sender {
    /// Returns the agent that they talk with.
    pub(super) fn target(&self) -> Target {
        Target::Path(self.path.to_string())
    }
}

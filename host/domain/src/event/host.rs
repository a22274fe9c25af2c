//! What happens to the host as a whole.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What the operator wanted done about work that was under way when a backup was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreChoice {
    /// Nothing: none was.
    NothingOpen,
    /// It goes on, and what was sent after the backup is sent again.
    Resumed,
    /// Nobody knows what came of it.
    SettledUnknown,
}

/// See [`super::Event::HostRestored`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRestored {
    /// When the backup was made.
    pub made_at: Timestamp,
    /// What was done about work that was under way.
    pub choice: RestoreChoice,
    /// Turns that would go on by themselves.
    pub turns: u64,
    /// Calls of theirs, of models and of tools, that would be made again.
    pub operations: u64,
    /// Inputs that waited for a turn.
    pub inputs: u64,
    /// When.
    pub time: Timestamp,
}

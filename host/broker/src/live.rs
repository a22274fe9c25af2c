//! The live feed: what is shown while it happens and never stored.
//!
//! Committed events are read from the store; this carries only what lies between them. A subscriber that falls behind misses frames
//! and loses nothing that matters.

use domain::id::{AgentId, OperationId, RunId, SessionId};
use tokio::sync::broadcast;

/// Frames that a subscriber may be behind before it misses some.
const FRAMES_MAX: usize = 4_096;

/// Something ephemeral.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: OperationId,
    /// Which attempt at it, counted from 1.
    pub attempt: u32,
    /// The frame's place in the attempt, counted from 0.
    pub seq: u64,
    /// What it shows.
    pub show: Show,
}

/// What a frame shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// Text of a reply in the making.
    Text(String),
    /// A model's visible thinking.
    Thinking(String),
    /// The model began to write a call.
    CallStarted {
        /// The tool's name.
        name: String,
    },
    /// Everything shown of this attempt is void.
    Discarded,
    /// A running tool says how it is getting on.
    Note(String),
    /// A call of a guest or a model began to run.
    Performing {
        /// `model:<name>` or `tool:<name>`.
        what: String,
    },
}

/// The feed.
#[derive(Debug, Clone)]
pub struct Live {
    sender: broadcast::Sender<Frame>,
}

impl Default for Live {
    fn default() -> Self {
        Self { sender: broadcast::channel(FRAMES_MAX).0 }
    }
}

impl Live {
    /// Shows a frame to whoever watches.
    pub fn show(&self, frame: Frame) {
        // An error only means that nobody watches.
        let _ = self.sender.send(frame);
    }

    /// Watches from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Frame> {
        self.sender.subscribe()
    }
}

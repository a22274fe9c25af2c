//! The live feed: frames that are shown as things happen, and never stored.
//!
//! Committed events are read from the store; the feed carries only what lies between them. A
//! subscriber that falls behind misses frames, and loses nothing that matters.

use domain::id::{AgentId, OperationId, RunId, SessionId};
use tokio::sync::broadcast;

/// Number of frames that a subscriber may be behind before it misses some.
const FRAMES_MAX: usize = 4_096;

/// A frame of the feed.
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
    /// The attempt at it: for a model counted from 0, for a tool the segment counted from 1.
    pub attempt: u32,
    /// The place of a piece of a reply in its attempt, counted from 0. Any other frame has 0.
    pub seq: u64,
    /// The content.
    pub show: Show,
}

/// The content of a frame.
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
    /// A note of a running tool on its progress.
    Note(String),
    /// A call of a model began to run, or a call of a tool is about to.
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
        Self {
            sender: broadcast::channel(FRAMES_MAX).0,
        }
    }
}

impl Live {
    /// Shows a frame to all watchers.
    pub fn show(&self, frame: Frame) {
        // An error only means that there are no watchers.
        let _ = self.sender.send(frame);
    }

    /// Watches from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Frame> {
        self.sender.subscribe()
    }
}

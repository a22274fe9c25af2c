//! The live feed: frames that are shown as things happen, and never stored.
//!
//! Committed events are read from the store; the feed carries only what lies between them. A
//! subscriber that falls behind misses frames, and loses nothing that matters. Beside the frames
//! the feed keeps the text of each reply in the making, so that whoever joins in the middle of one
//! begins with what was said so far.

use domain::id::{AgentId, OperationId, RunId, SessionId};
use domain::limits::REPLY_BYTES_MAX;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// Number of frames that a subscriber may be behind before it misses some.
const FRAMES_MAX: usize = 4_096;
/// Bytes of text that are kept of one reply in the making. A longer reply is refused when it ends,
/// and whoever joins in the middle of it sees only what follows.
const SAID_BYTES_MAX: usize = REPLY_BYTES_MAX;

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
    /// The place of a piece of a reply in its attempt, counted from 0. For [`Show::SoFar`] the
    /// place of the last piece that it includes. Any other frame has 0.
    pub seq: u64,
    /// The content.
    pub show: Show,
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// Text of a reply in the making.
    Text(String),
    /// The whole text of a reply in the making up to now, for a watcher that joins.
    SoFar(String),
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

/// A watcher's beginning: what was said so far, and the frames that follow it without a gap.
#[derive(Debug)]
pub struct Joined {
    /// The frames from now on.
    pub frames: broadcast::Receiver<Frame>,
    /// A [`Show::SoFar`] for each reply in the making of which something was said.
    pub so_far: Vec<Frame>,
    /// The position at that moment: the calls of these replies were decided at or before it, and
    /// their outcomes are stored after it.
    pub position: u64,
}

/// The feed.
#[derive(Debug, Clone)]
pub struct Live {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sender: broadcast::Sender<Frame>,
    /// The replies in the making. Frames are sent under its lock, so that a snapshot of it and a
    /// subscription fit together.
    said: Mutex<HashMap<OperationId, Said>>,
}

/// A reply in the making.
#[derive(Debug)]
struct Said {
    /// The newest frame of text, with [`Show::SoFar`] in its place.
    frame: Frame,
    /// True once there was too much to keep.
    is_overfull: bool,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                sender: broadcast::channel(FRAMES_MAX).0,
                said: Mutex::default(),
            }),
        }
    }
}

impl Live {
    /// Shows a frame to all watchers.
    pub fn show(&self, frame: Frame) {
        let mut said = self.said();
        match &frame.show {
            Show::Text(text) => keep(&mut said, &frame, text),
            Show::Discarded => {
                if said
                    .get(&frame.operation)
                    .is_some_and(|said| said.frame.attempt <= frame.attempt)
                {
                    said.remove(&frame.operation);
                }
            }
            Show::SoFar(_)
            | Show::Thinking(_)
            | Show::CallStarted { .. }
            | Show::Note(_)
            | Show::Performing { .. } => {}
        }
        // An error only means that there are no watchers.
        let _ = self.shared.sender.send(frame);
    }

    /// Forgets the text of a reply that is made no longer. Its outcome is not stored before.
    pub fn end(&self, operation: OperationId) {
        self.said().remove(&operation);
    }

    /// Watches from now on, beginning with what was said so far. `position` reads the position of
    /// the last stored event.
    #[must_use]
    pub fn join(&self, position: impl FnOnce() -> u64) -> Joined {
        let said = self.said();
        Joined {
            frames: self.shared.sender.subscribe(),
            so_far: said
                .values()
                .filter(|said| !said.is_overfull)
                .map(|said| said.frame.clone())
                .collect(),
            position: position(),
        }
    }

    fn said(&self) -> MutexGuard<'_, HashMap<OperationId, Said>> {
        // Each change of it is whole.
        self.shared
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a piece of text to what was said of its attempt.
fn keep(said: &mut HashMap<OperationId, Said>, frame: &Frame, more: &str) {
    let begun = said
        .remove(&frame.operation)
        .filter(|said| said.frame.attempt == frame.attempt);
    let (mut text, mut is_overfull) = match begun {
        Some(Said {
            frame: Frame {
                show: Show::SoFar(text),
                ..
            },
            is_overfull,
        }) => (text, is_overfull),
        Some(_) | None => (String::new(), false),
    };
    is_overfull |= text.len() + more.len() > SAID_BYTES_MAX;
    if is_overfull {
        text = String::new();
    } else {
        text.push_str(more);
    }
    let frame = Frame {
        show: Show::SoFar(text),
        ..frame.clone()
    };
    said.insert(frame.operation, Said { frame, is_overfull });
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::digest::Digest;
    use uuid::Uuid;

    fn frame(attempt: u32, seq: u64, show: Show) -> Frame {
        Frame {
            agent: AgentId(Uuid::nil()),
            session: SessionId(Uuid::nil()),
            run: RunId(Uuid::nil()),
            operation: OperationId(Digest([7; 32])),
            attempt,
            seq,
            show,
        }
    }

    fn text(attempt: u32, seq: u64, text: &str) -> Frame {
        frame(attempt, seq, Show::Text(text.to_owned()))
    }

    #[test]
    fn a_watcher_that_joins_has_each_word_once() {
        let live = Live::default();
        live.show(text(0, 0, "one "));
        live.show(text(0, 1, "two "));
        let mut joined = live.join(|| 9);
        live.show(text(0, 2, "three"));
        assert_eq!(joined.position, 9);
        assert_eq!(
            joined.so_far,
            [frame(0, 1, Show::SoFar("one two ".to_owned()))]
        );
        assert_eq!(joined.frames.try_recv().unwrap(), text(0, 2, "three"));
        assert!(joined.frames.try_recv().is_err());
    }

    #[test]
    fn a_void_attempt_and_a_reply_that_ended_are_not_repeated() {
        let live = Live::default();
        live.show(text(0, 0, "void"));
        live.show(frame(0, 0, Show::Discarded));
        assert_eq!(live.join(|| 0).so_far, []);
        live.show(text(1, 0, "again"));
        assert_eq!(
            live.join(|| 0).so_far,
            [frame(1, 0, Show::SoFar("again".to_owned()))]
        );
        // Another attempt, where nobody said that the one before is void.
        live.show(text(2, 0, "third"));
        assert_eq!(
            live.join(|| 0).so_far,
            [frame(2, 0, Show::SoFar("third".to_owned()))]
        );
        live.end(OperationId(Digest([7; 32])));
        assert_eq!(live.join(|| 0).so_far, []);
    }

    #[test]
    fn of_a_reply_that_is_too_long_nothing_is_kept() {
        let live = Live::default();
        let half = "x".repeat(SAID_BYTES_MAX / 2 + 1);
        live.show(text(0, 0, &half));
        assert_eq!(live.join(|| 0).so_far.len(), 1);
        live.show(text(0, 1, &half));
        live.show(text(0, 2, "more"));
        assert_eq!(live.join(|| 0).so_far, []);
    }
}

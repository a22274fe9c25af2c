//! The live feed: frames that are shown as things happen, and never stored.
//!
//! Committed events are read from the store; the feed has only the frames between them. A
//! subscriber that falls behind misses frames, which are not essential. In addition the feed keeps
//! the text of each reply in progress. A subscriber that joins in the middle of one begins with its
//! text so far.

use domain::id::{AgentId, OperationId, RunId, SessionId};
use domain::limits::REPLY_BYTES_MAX;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

/// Number of frames that a subscriber may be behind before it misses some.
const FRAMES_MAX: usize = 4_096;
/// Maximum bytes of text that are kept of one reply in progress. A longer reply is refused when it
/// ends, and a subscriber that joins in the middle of it sees only the rest.
const SAID_BYTES_MAX: usize = REPLY_BYTES_MAX;
/// Bytes from which on a chunk of such a text is shared. Only the text after the last shared chunk
/// is copied for a new subscriber.
const CHUNK_BYTES: usize = 8 * 1024;

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
    /// The place of a chunk of a reply in its attempt, counted from 0. For [`Show::SoFar`] the
    /// place of the last chunk that it includes. Any other frame has 0.
    pub seq: u64,
    /// The content.
    pub show: Show,
}

/// A frame with its place among the stored events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The frame.
    pub frame: Frame,
    /// The position of the last event that was stored when the frame was shown. The causes of the
    /// frame are at or before it, and its consequences after it.
    pub after: u64,
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// Text of a reply in the making.
    Text(String),
    /// The whole text of a reply in the making up to now, for a watcher that joins.
    SoFar(SharedText),
    /// A model's visible thinking.
    Thinking(String),
    /// The model began to write a call.
    CallStarted {
        /// The tool's name.
        name: String,
    },
    /// The program in a model's place has called a tool of its own. The host does not make that
    /// call, and hears of no result.
    OwnCall {
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

/// Text of a reply in progress, in chunks that all who join in the middle of it share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedText(Vec<Arc<str>>);

impl SharedText {
    /// Returns the whole text.
    #[must_use]
    pub fn concat(&self) -> String {
        self.0.concat()
    }
}

/// The initial data of a subscriber: the replies so far, and the frames that follow without a gap.
#[derive(Debug)]
pub struct Joined {
    /// The frames from now on.
    pub frames: broadcast::Receiver<Placed>,
    /// A [`Show::SoFar`] for each reply in progress in a watched session, if it has any text.
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
    sender: broadcast::Sender<Placed>,
    /// The position of the last stored event.
    stored: watch::Receiver<u64>,
    /// The replies in progress. Frames are sent under its lock, so that a snapshot of it and a
    /// subscription fit together.
    said: Mutex<HashMap<OperationId, ReplyInProgress>>,
}

/// A reply in the making.
#[derive(Debug)]
struct ReplyInProgress {
    agent: AgentId,
    session: SessionId,
    run: RunId,
    attempt: u32,
    /// The place of the newest chunk.
    seq: u64,
    /// None once the text was too long to keep.
    text: Option<Growing>,
}

/// Text that grows at its end.
#[derive(Debug, Default)]
struct Growing {
    chunks: Vec<Arc<str>>,
    /// The end, which is no chunk yet.
    rest: String,
    /// The length of the whole text in bytes.
    bytes: usize,
}

impl Growing {
    fn push(&mut self, more: &str) {
        self.bytes += more.len();
        self.rest.push_str(more);
        if self.rest.len() >= CHUNK_BYTES {
            self.chunks.push(mem::take(&mut self.rest).into());
        }
    }

    fn share(&self) -> SharedText {
        let rest = (!self.rest.is_empty()).then(|| Arc::<str>::from(self.rest.as_str()));
        SharedText(self.chunks.iter().cloned().chain(rest).collect())
    }
}

impl ReplyInProgress {
    fn new(frame: &Frame) -> Self {
        Self {
            agent: frame.agent,
            session: frame.session,
            run: frame.run,
            attempt: frame.attempt,
            seq: frame.seq,
            text: Some(Growing::default()),
        }
    }

    /// Returns the frame for a new subscriber; none if the text was too long to keep.
    fn frame(&self, operation: OperationId) -> Option<Frame> {
        let text = self.text.as_ref()?.share();
        Some(Frame {
            agent: self.agent,
            session: self.session,
            run: self.run,
            operation,
            attempt: self.attempt,
            seq: self.seq,
            show: Show::SoFar(text),
        })
    }
}

impl Live {
    /// Creates a feed for a store, given a watch on the position of its last event.
    #[must_use]
    pub fn new(stored: watch::Receiver<u64>) -> Self {
        Self {
            shared: Arc::new(Shared {
                sender: broadcast::channel(FRAMES_MAX).0,
                stored,
                said: Mutex::default(),
            }),
        }
    }

    /// Shows a frame to all watchers.
    pub fn show(&self, frame: Frame) {
        let mut said = self.said();
        match &frame.show {
            Show::Text(text) => keep(&mut said, &frame, text),
            Show::Discarded => {
                if said
                    .get(&frame.operation)
                    .is_some_and(|said| said.attempt <= frame.attempt)
                {
                    said.remove(&frame.operation);
                }
            }
            Show::SoFar(_)
            | Show::Thinking(_)
            | Show::CallStarted { .. }
            | Show::OwnCall { .. }
            | Show::Note(_)
            | Show::Performing { .. } => {}
        }
        let after = self.stored();
        // An error only means that there are no watchers.
        let _ = self.shared.sender.send(Placed { frame, after });
    }

    /// Forgets the text of a reply that is made no longer. Its outcome is not stored before.
    pub fn end(&self, operation: OperationId) {
        self.said().remove(&operation);
    }

    /// Subscribes from now on, beginning with the replies so far in the sessions that `shows`
    /// admits.
    #[must_use]
    pub fn join(&self, shows: impl Fn(AgentId, SessionId) -> bool) -> Joined {
        let said = self.said();
        Joined {
            frames: self.shared.sender.subscribe(),
            so_far: said
                .iter()
                .filter(|(_, said)| shows(said.agent, said.session))
                .filter_map(|(operation, said)| said.frame(*operation))
                .collect(),
            position: self.stored(),
        }
    }

    fn stored(&self) -> u64 {
        *self.shared.stored.borrow()
    }

    fn said(&self) -> MutexGuard<'_, HashMap<OperationId, ReplyInProgress>> {
        // Each change of it is complete.
        self.shared
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a chunk of text to the reply of its attempt.
fn keep(replies: &mut HashMap<OperationId, ReplyInProgress>, frame: &Frame, more: &str) {
    let said = replies
        .entry(frame.operation)
        .or_insert_with(|| ReplyInProgress::new(frame));
    if said.attempt != frame.attempt {
        *said = ReplyInProgress::new(frame);
    }
    said.seq = frame.seq;
    if let Some(text) = &mut said.text {
        text.push(more);
    }
    if let Some(text) = &said.text
        && text.bytes > SAID_BYTES_MAX
    {
        said.text = None;
    }
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

    fn so_far(attempt: u32, seq: u64, text: &str) -> Frame {
        frame(attempt, seq, Show::SoFar(SharedText(vec![text.into()])))
    }

    fn join(live: &Live) -> Joined {
        live.join(|_, _| true)
    }

    /// Returns a feed at a position, with the sender that advances the position.
    fn feed(position: u64) -> (watch::Sender<u64>, Live) {
        let (stored, position) = watch::channel(position);
        (stored, Live::new(position))
    }

    #[test]
    fn a_watcher_that_joins_has_each_word_once() {
        let (stored, live) = feed(9);
        live.show(text(0, 0, "one "));
        live.show(text(0, 1, "two "));
        let mut joined = join(&live);
        live.show(text(0, 2, "three"));
        assert_eq!(joined.position, 9);
        assert_eq!(joined.so_far, [so_far(0, 1, "one two ")]);
        stored.send(10).unwrap();
        live.show(text(0, 3, "!"));
        for (after, frame) in [(9, text(0, 2, "three")), (10, text(0, 3, "!"))] {
            assert_eq!(joined.frames.try_recv().unwrap(), Placed { frame, after });
        }
        assert!(joined.frames.try_recv().is_err());
    }

    #[test]
    fn a_void_attempt_and_a_reply_that_ended_are_not_repeated() {
        let (_stored, live) = feed(0);
        live.show(text(0, 0, "void"));
        live.show(frame(0, 0, Show::Discarded));
        assert_eq!(join(&live).so_far, []);
        live.show(text(1, 0, "again"));
        assert_eq!(join(&live).so_far, [so_far(1, 0, "again")]);
        // Another attempt, without a notice that the previous one is void.
        live.show(text(2, 0, "third"));
        assert_eq!(join(&live).so_far, [so_far(2, 0, "third")]);
        live.end(OperationId(Digest([7; 32])));
        assert_eq!(join(&live).so_far, []);
    }

    #[test]
    fn of_a_reply_that_is_too_long_nothing_is_kept() {
        let (_stored, live) = feed(0);
        let half = "x".repeat(SAID_BYTES_MAX / 2 + 1);
        live.show(text(0, 0, &half));
        assert_eq!(join(&live).so_far.len(), 1);
        live.show(text(0, 1, &half));
        live.show(text(0, 2, "more"));
        assert_eq!(join(&live).so_far, []);
    }

    #[test]
    fn a_watcher_that_joins_has_only_what_it_watches() {
        let (_stored, live) = feed(0);
        let own = SessionId(Uuid::from_u128(1));
        live.show(text(0, 0, "of somebody else"));
        live.show(Frame {
            session: own,
            operation: OperationId(Digest([1; 32])),
            ..text(0, 0, "own")
        });
        let joined = live.join(|_, session| session == own);
        let sessions: Vec<SessionId> = joined.so_far.iter().map(|frame| frame.session).collect();
        assert_eq!(sessions, [own]);
    }

    #[test]
    fn all_who_join_in_the_middle_of_a_reply_share_its_text() {
        let (_stored, live) = feed(0);
        let chunk = "x".repeat(CHUNK_BYTES);
        let chunks = |joined: &Joined| match &joined.so_far[0].show {
            Show::SoFar(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        live.show(text(0, 0, &chunk));
        live.show(text(0, 1, "begun"));
        let first = chunks(&join(&live));
        live.show(text(0, 2, &chunk));
        let second = chunks(&join(&live));
        let third = chunks(&join(&live));
        assert_eq!(first.concat(), format!("{chunk}begun"));
        assert_eq!(second.concat(), format!("{chunk}begun{chunk}"));
        assert!(Arc::ptr_eq(&first.0[0], &second.0[0]));
        assert_eq!(second.0.len(), third.0.len());
        for (one, other) in second.0.iter().zip(&third.0) {
            assert!(Arc::ptr_eq(one, other));
        }
    }
}

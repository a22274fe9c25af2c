//! Transcripts: a session's whole conversation as JSON lines, for export from one host and import
//! into another.
//!
//! A transcript is a header and turns, each after its parent, with their messages and the blobs
//! that they name. It is written in one of two dialects that other programs read: [`dialect::pi`]
//! has the whole tree, [`dialect::aix`] one thread. Data that these programs do not know is in
//! fields that they ignore. A file of this host is thus read back exactly as written. Everything in
//! it is verified: digests of messages, ids of turns, the tree, the file to its last byte. Files of
//! other programs are read too; their messages become turns, with ids derived from them. This
//! module does no file access, and does not store turns.
//!
//! ## Where things are
//!
//! - the dialects, and what they share: `dialect.rs`, `dialect/blocks.rs`
//! - pi's: `dialect/pi.rs`, and in `pi/` what pi shows (`show.rs`, `usage.rs`) and files that pi
//!   wrote (`foreign.rs`)
//! - aix's: `dialect/aix.rs`, and files that others wrote for it: `aix/foreign.rs`
//! - the records that make a file exact: `exact.rs`
//! - lines and their fields, and what is wrong with them: `line.rs`, `fault.rs`
//! - turns out of another program's messages: `adopt.rs`, `adopt/build.rs`
//! - checks: `check.rs`, `verify.rs`
//! - ways in a tree, and the difference of two threads: `thread.rs`, `diff.rs`

mod adopt;
mod check;
pub mod dialect;
mod diff;
mod exact;
mod fault;
mod line;
#[cfg(test)]
mod tests;
mod thread;
mod verify;

pub use adopt::{ABORTED_CALL, Adoption, COPIED_BYTES_MAX, COPIED_MESSAGES_MAX};
pub use check::Unsound;
pub use diff::{Diff, TurnText};
pub use fault::{TranscriptFault, Unwritable};
pub use thread::{BrokenThread, Tree};
pub use verify::{Break, Verification, verify};

use crate::thread::message::Message;
use crate::thread::turn::TurnNode;
use crate::values::digest::Digest;
use crate::values::id::{SessionId, TurnId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of a line without its line break. It is aix's limit: its reader stops silently at the
/// first longer line.
pub const LINE_BYTES_MAX: usize = (10 << 20) - 1;
/// Bytes of a file.
pub const FILE_BYTES_MAX: usize = 512 << 20;
/// Lines of a file.
pub const LINES_MAX: usize = 2_000_000;
/// Invalid lines of another program's file that are skipped. A file with more of them is refused.
pub const PASSED_OVER_MAX: usize = 100;
/// Bytes of a name, a label, a path, an id of another program.
pub const WORD_BYTES_MAX: usize = 1_024;
/// The latest time in a file, in milliseconds since 1970: the end of the year 9998.
pub const TIME_MS_MAX: u64 = 253_370_764_799_999;
/// The state of a session without a state, a blob of JSON.
pub const EMPTY_STATE: &[u8] = b"null";

/// The content of a session for transfer between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The session.
    pub header: Header,
    /// Its turns, each one after its parent. Every parent is among them.
    pub turns: Vec<TranscriptTurn>,
    /// The bytes of included blobs: states of the session, and blobs that messages name. Other
    /// blobs are included by their digest alone.
    pub blobs: BTreeMap<Digest, Vec<u8>>,
}

/// A session, without its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its id.
    pub session: SessionId,
    /// Its label for people, of [`WORD_BYTES_MAX`] at most.
    pub name: Option<String>,
    /// The path of its agent.
    pub agent_path: String,
    /// The definition of its agent.
    pub definition: String,
    /// Time at which it was opened.
    pub created: Timestamp,
    /// The turn from which it continues; none before the first turn.
    pub head: Option<TurnId>,
    /// The session that it was forked from.
    pub parent: Option<SessionId>,
    /// Bookmarks on its turns.
    pub labels: Vec<Label>,
}

/// A bookmark on a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The turn.
    pub turn: TurnId,
    /// Its text, 1 to [`WORD_BYTES_MAX`] bytes.
    pub label: String,
}

/// A turn and its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptTurn {
    /// Its node.
    pub node: TurnNode,
    /// Time at which it was committed.
    pub committed: Timestamp,
    /// Its messages in order, as many as the node has digests; none in the place of an erased one.
    pub messages: Vec<Option<Message>>,
}

impl Transcript {
    /// The tree of its turns.
    #[must_use]
    pub fn tree(&self) -> Tree<'_> {
        Tree::of(self.turns.iter().map(|turn| &turn.node))
    }

    /// The same session with a single thread: the turn and all before it. Labels and blobs of other
    /// threads are left out, and the head is the turn.
    ///
    /// # Errors
    /// The turn, or one of its predecessors, is missing.
    pub fn thread(&self, turn: TurnId) -> Result<Self, BrokenThread> {
        let ids: std::collections::HashSet<TurnId> = self
            .tree()
            .thread(turn)?
            .into_iter()
            .map(|node| node.id)
            .collect();
        let turns: Vec<TranscriptTurn> = self
            .turns
            .iter()
            .filter(|turn| ids.contains(&turn.node.id))
            .cloned()
            .collect();
        let labels = self
            .header
            .labels
            .iter()
            .filter(|label| ids.contains(&label.turn))
            .cloned()
            .collect();
        let named: std::collections::BTreeSet<Digest> =
            turns.iter().flat_map(TranscriptTurn::blobs).collect();
        let blobs = self
            .blobs
            .iter()
            .filter(|(digest, _)| named.contains(digest))
            .map(|(digest, bytes)| (*digest, bytes.clone()))
            .collect();
        Ok(Self {
            header: Header {
                head: Some(turn),
                labels,
                ..self.header.clone()
            },
            turns,
            blobs,
        })
    }

    /// Checks that its parts are consistent: see [`Unsound`].
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), Unsound> {
        check::check(self)
    }
}

impl TranscriptTurn {
    /// The blobs that it names: the session's state after it, and the blobs of its messages.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> {
        let parts = self
            .messages
            .iter()
            .flatten()
            .flat_map(|message| &message.parts);
        let named = parts.filter_map(|part| match part {
            crate::thread::message::Part::Blob { digest, .. } => Some(*digest),
            crate::thread::message::Part::Text { .. }
            | crate::thread::message::Part::Call { .. }
            | crate::thread::message::Part::Opaque { .. } => None,
        });
        std::iter::once(self.node.session_state).chain(named)
    }
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Its content.
    pub transcript: Transcript,
    /// True if this host wrote it, so that it is exactly the exported transcript. Otherwise its
    /// turns were made on reading.
    pub exact: bool,
    /// Lines of another program's file that have no place in a transcript.
    pub left_out: Vec<LeftOut>,
    /// Faults of the invalid lines of another program's file, in the order of the lines. The lines
    /// were skipped.
    pub passed_over: Vec<TranscriptFault>,
}

/// A valid line without a place in a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number, counted from 1.
    pub line: usize,
    /// Its type, such as `thinking_level_change`.
    pub what: String,
}

/// Reads a file of either dialect, and returns the dialect.
///
/// # Errors
/// The first fault for which the whole file is refused. An invalid line of another program's file
/// is skipped, and is no such fault.
pub fn read(
    file: &[u8],
    adoption: &Adoption,
) -> Result<(dialect::Dialect, Reading), TranscriptFault> {
    let dialect = dialect::detect(file)?;
    Ok((dialect, dialect.read(file, adoption)?))
}

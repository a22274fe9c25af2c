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
//! - the dialects, and what they share: `dialect.rs`
//! - pi's: `dialect/pi.rs`, and files that pi wrote: `dialect/pi/foreign.rs`
//! - aix's: `dialect/aix.rs`
//! - the records that make a file exact: `exact.rs`
//! - lines and their fields: `line.rs`
//! - turns out of another program's messages: `adopt.rs`, `adopt/build.rs`
//! - verdicts on turns: `verify.rs`
//! - ways in a tree: `thread.rs`

mod adopt;
pub mod dialect;
mod exact;
mod line;
mod thread;
mod verify;

use crate::thread::message::{Message, Role};
use crate::thread::turn::TurnNode;
use crate::values::digest::Digest;
use crate::values::id::{SessionId, TurnId};
use crate::values::time::Timestamp;
pub use adopt::{ABORTED_CALL, Adoption, COPIED_BYTES_MAX, COPIED_MESSAGES_MAX};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
pub use thread::{BrokenThread, Tree};
pub use verify::{Break, Verification, verify};

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
        let ids: HashSet<TurnId> = self
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
        check(self)
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

// The check that a transcript is consistent, before writing and after reading.

/// The first inconsistency of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// Something in the header.
    #[error("the header's `{field}`: {message}")]
    Header {
        /// The field.
        field: &'static str,
        /// The fault, and how to correct it.
        message: String,
    },
    /// A turn.
    #[error("turn {place}: {message}")]
    Turn {
        /// Its place among the turns, counted from 0.
        place: usize,
        /// The fault, and how to correct it.
        message: String,
    },
    /// A blob's bytes do not match its digest.
    #[error(
        "the bytes of blob {digest} have the digest {computed}: take the blob out, or put its \
             own bytes there"
    )]
    Blob {
        /// Its digest.
        digest: Digest,
        /// The digest of its bytes.
        computed: Digest,
    },
    /// A blob that is not referenced.
    #[error("no turn names the blob {digest}: take it out")]
    Unnamed {
        /// Its digest.
        digest: Digest,
    },
}

fn check(transcript: &Transcript) -> Result<(), Unsound> {
    let turns = &transcript.turns;
    for (place, (_, verdict)) in verify(
        turns
            .iter()
            .map(|turn| (&turn.node, turn.messages.as_slice())),
    )
    .into_iter()
    .enumerate()
    {
        if let Verification::Broken(broken) = verdict {
            return Err(Unsound::Turn {
                place,
                message: format!("{broken}; export it again from where it is sound"),
            });
        }
    }
    for (place, turn) in turns.iter().enumerate() {
        time(turn.committed).map_err(|message| Unsound::Turn { place, message })?;
    }
    header(
        &transcript.header,
        &turns.iter().map(|turn| turn.node.id).collect(),
    )?;
    let named: HashSet<Digest> = turns.iter().flat_map(TranscriptTurn::blobs).collect();
    for (&digest, bytes) in &transcript.blobs {
        let computed = Digest::of(bytes);
        if computed != digest {
            return Err(Unsound::Blob { digest, computed });
        }
        if !named.contains(&digest) {
            return Err(Unsound::Unnamed { digest });
        }
    }
    Ok(())
}

fn header(header: &Header, turns: &HashSet<TurnId>) -> Result<(), Unsound> {
    let no = |field: &'static str| move |message: String| Unsound::Header { field, message };
    time(header.created).map_err(no("created"))?;
    check_short_text(&header.agent_path).map_err(no("agent_path"))?;
    check_short_text(&header.definition).map_err(no("definition"))?;
    header
        .name
        .as_deref()
        .map_or(Ok(()), check_short_text)
        .map_err(no("name"))?;
    if let Some(head) = header.head.filter(|head| !turns.contains(head)) {
        return Err(no("head")(format!(
            "turn {head} is not among the turns: name one that is, or none"
        )));
    }
    for label in &header.labels {
        check_short_text(&label.label).map_err(no("labels"))?;
        if !turns.contains(&label.turn) {
            return Err(no("labels")(format!(
                "turn {} is not among the turns: take its label out",
                label.turn
            )));
        }
    }
    Ok(())
}

fn time(time: Timestamp) -> Result<(), String> {
    if time.0 <= TIME_MS_MAX {
        Ok(())
    } else {
        Err(format!(
            "{} is later than the last time that a file can name, {TIME_MS_MAX}",
            time.0
        ))
    }
}

fn check_short_text(text: &str) -> Result<(), String> {
    if (1..=WORD_BYTES_MAX).contains(&text.len()) {
        Ok(())
    } else {
        Err(format!(
            "it has {} bytes, and 1 to {WORD_BYTES_MAX} are taken",
            text.len()
        ))
    }
}

// The difference of two threads: their common part, and the rest of each.

/// Two threads side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The last common turn; none if there is none.
    pub common_ancestor: Option<TurnId>,
    /// Turns that only the first thread has, in order.
    pub only_in_a: Vec<TurnText>,
    /// Turns that only the second thread has, in order.
    pub only_in_b: Vec<TurnText>,
}

/// A turn as it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnText {
    /// The turn.
    pub turn: TurnId,
    /// Its messages with their authors' roles, in order. A message without text has an empty one;
    /// erased ones are left out.
    pub messages: Vec<(Role, String)>,
}

fn diff<'m>(
    tree: &Tree<'_>,
    a: TurnId,
    b: TurnId,
    messages: impl Fn(TurnId) -> &'m [Option<Message>],
) -> Result<Diff, BrokenThread> {
    let common_ancestor = tree.common_ancestor(a, b)?;
    let shared = common_ancestor
        .map(|turn| tree.node(turn))
        .transpose()?
        .map_or(0, |node| node.depth);
    let alone = |thread: Vec<&TurnNode>| -> Vec<TurnText> {
        let alone = thread.into_iter().filter(|node| node.depth > shared);
        alone
            .map(|node| messages_of(node.id, messages(node.id)))
            .collect()
    };
    Ok(Diff {
        common_ancestor,
        only_in_a: alone(tree.thread(a)?),
        only_in_b: alone(tree.thread(b)?),
    })
}

fn messages_of(turn: TurnId, messages: &[Option<Message>]) -> TurnText {
    TurnText {
        turn,
        messages: messages
            .iter()
            .flatten()
            .map(|message| (message.role, message.text()))
            .collect(),
    }
}

// Errors: the fault of a file on reading, and the reason why a transcript is not written.

/// A fault in a file: the whole file is refused, or the line is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFault {
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The element at fault in it, as a JSON pointer: `/message/role`. Empty for the whole line.
    pub field: String,
    /// The fault, and how to correct it.
    pub message: String,
}

impl TranscriptFault {
    /// Something wrong with a whole line.
    fn line(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            field: String::new(),
            message: message.into(),
        }
    }
}

/// The skipped lines of another program's file, by their faults.
#[derive(Debug, Default)]
struct PassedOver(Vec<TranscriptFault>);

impl PassedOver {
    /// Skips a line, unless it was skipped before.
    ///
    /// # Errors
    /// Too many lines are skipped.
    fn add(&mut self, fault: TranscriptFault) -> Result<(), TranscriptFault> {
        if self.0.iter().any(|known| known.line == fault.line) {
            return Ok(());
        }
        if self.0.len() == PASSED_OVER_MAX {
            let message = format!(
                "more than {PASSED_OVER_MAX} lines cannot be read, so that it is no such file; the \
                 last of them, line {}: {}",
                fault.line, fault.message
            );
            return Err(TranscriptFault::line(0, message));
        }
        self.0.push(fault);
        Ok(())
    }

    /// Returns the faults in the order of their lines.
    fn into_faults(mut self) -> Vec<TranscriptFault> {
        self.0.sort_by_key(|fault| fault.line);
        self.0
    }
}

impl fmt::Display for TranscriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.field.as_str()) {
            (0, _) => write!(f, "the file: {}", self.message),
            (line, "") => write!(f, "line {line}: {}", self.message),
            (line, field) => write!(f, "line {line}, {field}: {}", self.message),
        }
    }
}

impl std::error::Error for TranscriptFault {}

/// The reason why a transcript cannot be written in a dialect. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// It is inconsistent, so it could not be read back.
    #[error("the transcript is not sound")]
    Unsound(#[from] Unsound),
    /// The dialect has one thread, and this transcript is a tree.
    #[error(
        "turn {turn} does not follow the turn before it, and this dialect has one thread: cut \
             the thread of one turn first"
    )]
    Forked {
        /// The first turn of a second thread.
        turn: TurnId,
    },
    /// A line would be longer than the limit for reading.
    #[error(
        "{what} makes a line of {bytes} bytes and {LINE_BYTES_MAX} is the most: keep what is \
             long in it as a blob"
    )]
    TooLong {
        /// The content of the line, such as `message 5 of turn 3fa…`.
        what: String,
        /// The length that it would have.
        bytes: usize,
    },
    /// A line would be nested deeper than the limit for reading.
    #[error("{what} is nested deeper than {max} levels of lists and objects", max = self::line::OWN_DEPTH_MAX)]
    TooDeep {
        /// The content of the line.
        what: String,
    },
    /// A number would change to its neighbour on reading.
    #[error("{what} has a number with more digits than what is read: round it, or keep it as text")]
    Number {
        /// The content of the line.
        what: String,
    },
    /// It has more lines, or more bytes, than the limit for reading.
    #[error("it has more than {max} {unit}: export its threads one by one")]
    TooMuch {
        /// The most.
        max: usize,
        /// The unit of the limit: lines or bytes.
        unit: &'static str,
    },
}

#[cfg(test)]
mod tests;

//! Conversion of another program's messages into turns, with ids derived from their content.
//!
//! The rule is the one of aix: query messages are collected until an assistant's sequence of
//! messages ends at the next query. In a tree it applies along every branch. A turn is indivisible:
//! where branches part within one, each has its own turn with its own copy of the common messages.
//! A call without a result in its turn gets a synthetic one, since no model accepts a call without
//! a result. A compaction is a separate turn, unless earlier calls still wait for their results.
//! Then it is an ordinary message.

mod build;

use super::{Header, LeftOut, PassedOver, Reading, Transcript, TranscriptFault, TranscriptTurn};
use crate::thread::message::{Part, Role};
use crate::thread::model::Usage;
use crate::thread::turn::TurnEnd;
use crate::values::digest::{Digest, Salt};
use crate::values::fields::kind;
use crate::values::id::SessionId;
use crate::values::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) use build::turns;

/// The most messages that are copied because branches part within a turn.
pub const COPIED_MESSAGES_MAX: usize = 100_000;
/// The most bytes that are copied because branches part within a turn.
pub const COPIED_BYTES_MAX: usize = 64 << 20;
/// The text of the result for a call without one in the file.
pub const ABORTED_CALL: &str = "The session was imported without a result of this call.";

/// The destination of another program's session on this host, and facts that its file lacks.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// The path of its agent here.
    pub agent_path: String,
    /// The definition of its agent here.
    pub definition: String,
    /// Random bits that salt the digests of its messages. With the same bits, the same file gives
    /// turns with the same ids.
    pub salt: Salt,
}

/// A message of another program's session.
#[derive(Debug, Clone)]
pub(super) struct ForeignMessage {
    /// The line that has it.
    pub(super) line: usize,
    /// Length of that line in bytes.
    pub(super) bytes: usize,
    /// Its id there.
    pub(super) key: String,
    /// The message before it, as an index into all messages.
    pub(super) parent: Option<usize>,
    /// Its time.
    pub(super) time: Timestamp,
    /// The role of its author.
    pub(super) role: Role,
    /// Its parts.
    pub(super) parts: Vec<Part>,
    /// Its origin.
    pub(super) origin: String,
    /// The call that it answers, if it is the result of one.
    pub(super) answers: Option<Answered>,
    /// The kind of its end, if it is an assistant's message.
    pub(super) end: TurnEnd,
    /// Its usage, if it is an assistant's message.
    pub(super) usage: Usage,
    /// Its model, if it is an assistant's message.
    pub(super) model: Option<String>,
    /// The kept part of the messages before it, if it is a summary that replaces them.
    pub(super) compacts: Option<Compacts>,
}

/// The parts of another program's compaction besides its summary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compacts {
    /// The first message that it keeps, as an index into all messages. None if it keeps no known
    /// message.
    pub(super) first_kept: Option<usize>,
    /// Tokens before it, as counted there.
    pub(super) tokens_before: u64,
}

/// The call that a result answers, in the other program's terms.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    /// The call's id.
    pub(super) call_id: String,
    /// The tool's name.
    pub(super) name: String,
    /// True if it failed.
    pub(super) failed: bool,
}

impl ForeignMessage {
    /// Returns whether it is a query. A query after an answer begins a turn.
    fn asks(&self) -> bool {
        matches!(self.role, Role::User | Role::Notice)
    }
}

/// The lines of another program's file that were not used.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Lines that were understood.
    pub(super) left_out: Vec<LeftOut>,
    /// Lines that cannot be meant.
    pub(super) passed_over: PassedOver,
}

/// The reading of another program's file, with turns made of its messages.
pub(super) fn reading(
    header: Header,
    turns: Vec<TranscriptTurn>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    dropped: Dropped,
) -> Result<Reading, TranscriptFault> {
    let passed_over = dropped.passed_over.into_faults();
    if let (true, Some(first)) = (turns.is_empty(), passed_over.first()) {
        return Err(first.clone());
    }
    let transcript = Transcript {
        header,
        blobs: if turns.is_empty() {
            BTreeMap::new()
        } else {
            blobs
        },
        turns,
    };
    transcript
        .check()
        .map_err(|unsound| TranscriptFault::line(0, unsound.to_string()))?;
    Ok(Reading {
        transcript,
        exact: false,
        left_out: dropped.left_out,
        passed_over,
    })
}

/// The id of another program's session on this host: the same if it is a UUID, and otherwise one
/// derived from it.
pub(super) fn session_id(id: &str) -> SessionId {
    id.parse().unwrap_or_else(|_| {
        let Digest(digest) = Digest::of_parts(&[b"imported session", id.as_bytes()]);
        SessionId(
            uuid::Builder::from_custom_bytes(*digest.first_chunk().unwrap_or(&[0; 16])).into_uuid(),
        )
    })
}

/// Returns the parent session that a file names. The name has to end with a UUID, as pi's file
/// names do.
pub(super) fn parent_session(path: &str) -> Option<SessionId> {
    let name = path.rsplit(['/', '\\']).next()?.trim_end_matches(".jsonl");
    name.rsplit('_').next()?.parse().ok()
}

/// Returns how an assistant's message ended, from pi's `stopReason`. Without one it is a reply.
pub(super) fn end(message: &super::line::Fields<'_>) -> Result<TurnEnd, TranscriptFault> {
    match message.text("stopReason")? {
        None | Some("stop" | "length" | "toolUse") => Ok(TurnEnd::Replied),
        Some("error") => Ok(TurnEnd::Failed),
        Some("aborted") => Ok(TurnEnd::Aborted),
        Some(other) => {
            let message_text = format!(
                "`{other}` is none of `stop`, `length`, `toolUse`, `error`, `aborted`: \
                         write one of these"
            );
            Err(message.fault("stopReason", message_text))
        }
    }
}

/// A label or a name that can be removed: none for an empty one.
pub(super) fn label_text(
    fields: &super::line::Fields<'_>,
    name: &str,
) -> Result<Option<String>, TranscriptFault> {
    match fields.value(name) {
        None => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) if text.trim().len() <= super::WORD_BYTES_MAX => {
            Ok(Some(text.trim().to_owned()))
        }
        Some(Value::String(text)) => Err(fields.fault(
            name,
            format!(
                "at most {} bytes are taken, these are {}",
                super::WORD_BYTES_MAX,
                text.len()
            ),
        )),
        Some(other) => {
            Err(fields.fault(name, format!("a text is needed, this is {}", kind(other))))
        }
    }
}

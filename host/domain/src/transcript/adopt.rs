//! What is made of another program's messages: turns, with ids that follow from their content.
//!
//! The rule is the one of aix: query messages gather until an assistant's sequence of messages ends at the next query. In a tree it holds
//! along every branch. A turn is a whole, so where branches part in the middle of one, each has its own turn with its own copy of what both
//! have in common. A call that has no result in its turn gets one that says so, since no model takes a call without. A compaction is a turn
//! of its own, unless calls before it wait for their results still: then it is something that was said, and no more.

mod build;

use super::fault::Fault;
use super::line::kind;
use crate::digest::Salt;
use crate::id::SessionId;
use crate::message::{Part, Role};
use crate::model::Usage;
use crate::time::Timestamp;
use crate::turn::TurnEnd;
use serde_json::Value;

pub(super) use build::{Adopted, turns};

/// Messages that may be copied because branches part in the middle of a turn.
pub const COPIED_MESSAGES_MAX: usize = 100_000;
/// Bytes that may be copied because branches part in the middle of a turn.
pub const COPIED_BYTES_MAX: usize = 64 << 20;
/// What the result says of a call that has none in the file.
pub const ABORTED_CALL: &str = "The session was imported without a result of this call.";

/// Where another program's session comes to, and what its file does not say.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// The path of its agent here.
    pub agent_path: String,
    /// The definition of its agent here.
    pub definition: String,
    /// Random bits that its messages' digests are salted with. With the same ones, the same file gives turns with the same ids.
    pub salt: Salt,
}

/// Something that was said in another program's session.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The line that says it.
    pub(super) line: usize,
    /// How long that is.
    pub(super) bytes: usize,
    /// Its id there.
    pub(super) key: String,
    /// What was said before it, as a place among all that was said.
    pub(super) parent: Option<usize>,
    /// When.
    pub(super) time: Timestamp,
    /// Who says it.
    pub(super) role: Role,
    /// What.
    pub(super) parts: Vec<Part>,
    /// Where it comes from.
    pub(super) origin: String,
    /// For the result of a call: which one.
    pub(super) answers: Option<Answered>,
    /// For an assistant's message: how it ended.
    pub(super) end: TurnEnd,
    /// For an assistant's message: what it used.
    pub(super) usage: Usage,
    /// For an assistant's message: its model.
    pub(super) model: Option<String>,
    /// For a summary that stands for what was said before it: what of that is kept beside it.
    pub(super) compacts: Option<Compacts>,
}

/// What a compaction of another program says beside its summary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compacts {
    /// What was said first of what it keeps, as a place among all that was said; none when it keeps nothing that is known.
    pub(super) first_kept: Option<usize>,
    /// Tokens before it, as counted there.
    pub(super) tokens_before: u64,
}

/// Which call a result answers, as the other program says it.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    /// The call's id.
    pub(super) call_id: String,
    /// The tool's name.
    pub(super) name: String,
    /// Whether it failed.
    pub(super) failed: bool,
}

impl Said {
    /// Whether it asks, so that what comes after an answer begins a turn with it.
    fn asks(&self) -> bool {
        match self.role {
            Role::User | Role::Notice => true,
            Role::Assistant | Role::Tool => false,
        }
    }
}

/// The id of another program's session, as one of this host: itself where it is a UUID, and otherwise one that follows from it.
pub(super) fn session_id(id: &str) -> SessionId {
    id.parse().unwrap_or_else(|_| {
        let crate::digest::Digest(digest) = crate::digest::Digest::of_parts(&[b"imported session", id.as_bytes()]);
        SessionId(uuid::Builder::from_custom_bytes(*digest.first_chunk().unwrap_or(&[0; 16])).into_uuid())
    })
}

/// The session that a file names as its parent, if the name ends with a UUID as pi's file names do.
pub(super) fn parent_session(path: &str) -> Option<SessionId> {
    let name = path.rsplit(['/', '\\']).next()?.trim_end_matches(".jsonl");
    name.rsplit('_').next()?.parse().ok()
}

/// How an assistant's message ended, in pi's words; as a reply where it is not said.
pub(super) fn end(message: &super::line::Fields<'_>) -> Result<TurnEnd, Fault> {
    match message.text("stopReason")? {
        None | Some("stop" | "length" | "toolUse") => Ok(TurnEnd::Replied),
        Some("error") => Ok(TurnEnd::Failed),
        Some("aborted") => Ok(TurnEnd::Aborted),
        Some(other) => {
            let message_text = format!("`{other}` is none of `stop`, `length`, `toolUse`, `error`, `aborted`: write one of these");
            Err(message.fault("stopReason", message_text))
        }
    }
}

/// A label or a name that may be taken away again: none for an empty one.
pub(super) fn words(fields: &super::line::Fields<'_>, name: &str) -> Result<Option<String>, Fault> {
    match fields.value(name) {
        None => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) if text.trim().len() <= super::WORD_BYTES_MAX => Ok(Some(text.trim().to_owned())),
        Some(Value::String(text)) => {
            Err(fields.fault(name, format!("at most {} bytes are taken, these are {}", super::WORD_BYTES_MAX, text.len())))
        }
        Some(other) => Err(fields.fault(name, format!("a text is needed, this is {}", kind(other)))),
    }
}

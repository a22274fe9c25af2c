//! The progress of a dialogue, the notes on it, and the operations that are open.

use agent_host_sdk::{MessageId, shortened};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the memo's layout.
pub(crate) const MEMO_FORMAT: u32 = 1;
/// Insights and assumptions that are noted.
const INSIGHTS_MAX: usize = 8;
/// Open questions that are noted.
const QUESTIONS_MAX: usize = 5;
/// Bytes of one of them. All of them stand in a summary of 8 KiB.
const NOTE_BYTES_MAX: usize = 300;

/// The progress of the dialogue: the session's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Dialogue {
    /// Operations that were started, so that each gets a key of its own.
    pub(crate) operations: u64,
    /// Messages of the user's that were answered with a question.
    pub(crate) exchanges: u64,
    /// Number of those exchanges that the notes cover.
    pub(crate) noted: u64,
    /// The notes.
    pub(crate) notes: Notes,
    /// True if the user is to be asked whether to end.
    pub(crate) offer: bool,
    /// True if the user has ended it, and only rating and notes are awaited.
    pub(crate) ending: bool,
    /// The user's rating of the dialogue.
    pub(crate) rating: Option<i64>,
    /// The summary, once the dialogue is over.
    pub(crate) over: Option<Value>,
}

/// The notes on a dialogue, as a model writes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Notes {
    pub(crate) topic: String,
    pub(crate) insights: Vec<String>,
    pub(crate) assumptions: Vec<String>,
    pub(crate) open_questions: Vec<String>,
}

impl Notes {
    /// The JSON Schema of notes.
    pub(crate) fn schema() -> Value {
        let list = |count: usize| {
            json!({
                "type": "array", "items": { "type": "string", "maxLength": NOTE_BYTES_MAX },
                "maxItems": count,
            })
        };
        json!({
            "type": "object",
            "properties": {
                "topic": { "type": "string", "maxLength": NOTE_BYTES_MAX },
                "insights": list(INSIGHTS_MAX),
                "assumptions": list(INSIGHTS_MAX),
                "open_questions": list(QUESTIONS_MAX),
            },
            "required": ["topic", "insights", "assumptions", "open_questions"],
            "additionalProperties": false,
        })
    }

    /// The same, no longer than what is kept.
    pub(crate) fn bounded(self) -> Self {
        let few = |notes: Vec<String>, count: usize| {
            let notes = notes.iter().take(count);
            notes.map(|note| shortened(note, NOTE_BYTES_MAX)).collect()
        };
        Self {
            topic: shortened(&self.topic, NOTE_BYTES_MAX),
            insights: few(self.insights, INSIGHTS_MAX),
            assumptions: few(self.assumptions, INSIGHTS_MAX),
            open_questions: few(self.open_questions, QUESTIONS_MAX),
        }
    }
}

/// The purpose of an open operation of this turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Doing {
    /// A model asks the first question.
    Opening,
    /// A model asks the next question, after these messages.
    Asking(Vec<MessageId>),
    /// A model notes what was found.
    Noting,
    /// The user is asked whether to end.
    Offering,
    /// The user is asked for a rating.
    Rating,
}

/// The open operations of this turn: its memo.
pub(crate) type Open = BTreeMap<String, Doing>;

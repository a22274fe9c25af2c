//! The configuration of a dialogue, its progress, the notes on it, and the open operations.

use agent_host_sdk::{MessageId, Turn, shortened};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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

const TOPIC_BYTES_MAX: usize = 500;
/// Exchanges after which the dialogue offers to end, again and again.
const OFFER_EVERY: u64 = 6;
const OFFER_EVERY_RANGE: RangeInclusive<u64> = 1..=100;

/// The topic of a dialogue and how often it offers to end: as the session was opened, else as the
/// operator says.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) topic: Option<String>,
    pub(crate) offer_every: u64,
}

impl Config {
    /// Reads `topic` and `offer_every`.
    ///
    /// # Errors
    /// The field that makes no sense, and what it has to be.
    pub(crate) fn of(turn: Turn<'_>) -> Result<Self, String> {
        let opened: Value = turn.session_config().unwrap_or_default();
        let settings: Value = turn.settings().unwrap_or_default();
        let find = |name: &str| {
            let places = [(&opened, "session_config"), (&settings, "settings")];
            places.into_iter().find_map(|(all, place)| {
                let value = all.get(name).filter(|value| !value.is_null())?;
                Some((value, format!("{place}.{name}")))
            })
        };
        let topic = match find("topic") {
            None => None,
            Some((Value::String(topic), _)) if (1..=TOPIC_BYTES_MAX).contains(&topic.len()) => {
                Some(topic.clone())
            }
            Some((_, place)) => {
                return Err(format!(
                    "{place}: a text of 1 to {TOPIC_BYTES_MAX} bytes is needed"
                ));
            }
        };
        let offer_every = match find("offer_every") {
            None => OFFER_EVERY,
            Some((value, place)) => value
                .as_u64()
                .filter(|count| OFFER_EVERY_RANGE.contains(count))
                .ok_or_else(|| {
                    let (least, most) = OFFER_EVERY_RANGE.into_inner();
                    format!(
                        "{place}: a whole number from {least} to {most} is needed, this is {value}"
                    )
                })?,
        };
        Ok(Self { topic, offer_every })
    }
}

//! An attempt at an exam: what was asked, answered and judged so far.

use agent_host_sdk::shortened;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of an answer that are kept for the item's own record; the host has it whole.
const KEPT_BYTES_MAX: usize = 1_000;
/// Bytes of feedback, or of the reason why there is none.
const FEEDBACK_BYTES_MAX: usize = 600;

/// The attempt: the session's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Attempt {
    pub(crate) began_ms: u64,
    /// The items that are asked, in order. Empty before the exam has begun.
    pub(crate) order: Vec<usize>,
    /// Number of items that were asked, the open one among them.
    pub(crate) asked: usize,
    /// The results of those that were asked.
    pub(crate) answers: Vec<Answered>,
    /// Whole answers that a model judges, by their place among the answers.
    pub(crate) judged: BTreeMap<usize, Value>,
    /// The summary, once the exam is over.
    pub(crate) over: Option<Value>,
}

/// The result of one item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// The answer, or its beginning.
    pub(crate) response: Value,
    pub(crate) status: Status,
    /// The share of the points from 0 to 1; none when it cannot be scored.
    pub(crate) score: Option<f64>,
    /// The feedback of the model that judged it.
    pub(crate) feedback: Option<String>,
    /// Number of times that a model failed to judge it.
    pub(crate) failures: u32,
    /// True if it is on the session's record.
    #[serde(default)]
    pub(crate) recorded: bool,
}

/// The way in which an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// An answer came and is scored.
    Answered,
    /// The user passed on it.
    Skipped,
    /// Its time was up.
    TimedOut,
    /// It was withdrawn.
    Cancelled,
    /// An answer came and could not be scored.
    NotJudged,
    /// It could not be asked.
    NotAsked,
}

impl Status {
    /// Returns true if a person has to review the item.
    pub(crate) fn needs_review(self) -> bool {
        matches!(self, Self::NotJudged | Self::NotAsked)
    }
}

impl Answered {
    /// An item that has no answer: nothing of it is right, unless it was never asked.
    pub(crate) fn without_answer(status: Status) -> Self {
        let score = (!status.needs_review()).then_some(0.0);
        Self {
            status,
            ..Self::with_answer(&Value::Null, score)
        }
    }

    /// The same with what was said about it.
    pub(crate) fn explain(&mut self, feedback: &str) {
        self.feedback = Some(beginning(feedback, FEEDBACK_BYTES_MAX));
    }

    /// An item with an answer, scored already or not yet.
    pub(crate) fn with_answer(response: &Value, score: Option<f64>) -> Self {
        Self {
            response: kept(response),
            status: Status::Answered,
            score,
            feedback: None,
            failures: 0,
            recorded: false,
        }
    }
}

/// An answer as it is kept: itself, or if it is long the beginnings of its texts.
fn kept(response: &Value) -> Value {
    if response.to_string().len() <= KEPT_BYTES_MAX {
        return response.clone();
    }
    let fields = response.as_object().into_iter().flatten();
    let texts = fields.filter_map(|(name, value)| {
        let text = beginning(value.as_str()?, KEPT_BYTES_MAX / 2);
        Some((name.clone(), json!(text)))
    });
    Value::Object(texts.collect::<Map<String, Value>>())
}

/// The beginning of a text, of at most twice so many bytes as JSON, in which some characters take
/// six.
fn beginning(text: &str, bytes_max: usize) -> String {
    let beginning = shortened(text, bytes_max);
    if json!(beginning).to_string().len() > 2 * bytes_max {
        shortened(text, bytes_max / 6)
    } else {
        beginning
    }
}

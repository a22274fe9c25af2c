//! The progress of a lesson, the operations that are open, and the questions that a model wrote.

use crate::lesson::check_question;
use agent_host_sdk::MessageId;
use questions::{Question, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the memo's layout.
pub(crate) const MEMO_FORMAT: u32 = 1;

/// The progress of the lesson: the session's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Course {
    /// Time of its beginning.
    pub(crate) began_ms: u64,
    /// Operations that were started, so that each gets a key of its own.
    pub(crate) operations: u64,
    /// Parts that were taught.
    pub(crate) taught: usize,
    /// The questions, where a model wrote them.
    pub(crate) written: Vec<Written>,
    /// Number of times that a model could not write them.
    pub(crate) write_failures: u32,
    /// The question that is asked next: first every question, then those that are asked again.
    pub(crate) next: usize,
    /// Number of answers to that question so far.
    pub(crate) tries: u32,
    /// Questions that were answered correctly in the end.
    pub(crate) correct: usize,
    /// The result of each question.
    pub(crate) marks: Vec<Mark>,
    /// Questions that are asked again at the end; none before it is known which.
    pub(crate) again: Option<Vec<usize>>,
    /// The answer that a model judges.
    pub(crate) judged: Option<Judged>,
    /// The student's message that is not answered yet.
    pub(crate) words: Option<MessageId>,
    /// The summary, once the lesson is over.
    pub(crate) over: Option<Value>,
}

/// The result of one question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The credit from 0 to 1, half at the second try; none when it does not count.
    pub(crate) credit: Option<f64>,
    /// True if it was answered correctly.
    pub(crate) correct: bool,
}

/// An answer that a model judges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// The operation that asked.
    pub(crate) asked: String,
    /// The answer.
    pub(crate) response: Value,
}

/// The purpose of an open operation of this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Doing {
    /// A model writes the questions.
    Writing,
    /// A model teaches the next part.
    Teaching,
    /// The student is asked the next question.
    Asking,
    /// A model judges the answer to it.
    Judging,
    /// A model answers what the student said.
    Answering,
}

/// The open operations of this turn: its memo.
pub(crate) type Open = BTreeMap<String, Doing>;

impl Course {
    /// A key that no operation of this session has had.
    pub(crate) fn key(&mut self, name: &str) -> String {
        self.operations += 1;
        format!("{name}-{}", self.operations)
    }

    /// Returns true if questions are asked again already.
    pub(crate) fn repeats(&self, questions: usize) -> bool {
        self.next >= questions
    }

    /// The index of the question that is asked next.
    pub(crate) fn current(&self, questions: usize) -> Option<usize> {
        match self.next.checked_sub(questions) {
            None => Some(self.next),
            Some(repeated) => self.again.as_ref()?.get(repeated).copied(),
        }
    }
}

/// Questions of a lesson that a model writes.
const WRITTEN_MAX: usize = 16;
/// Bytes of all of them, which stand in the session's state.
const WRITTEN_BYTES_MAX: usize = 100 << 10;

/// A question, and the part of the material that it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Counted from 0.
    pub(crate) part: usize,
    pub(crate) question: Question,
}

/// The JSON Schema of the questions to some parts.
pub(crate) fn written_schema(parts: usize) -> Value {
    let text = |chars: u32| json!({ "type": "string", "maxLength": chars });
    let question = json!({
        "type": "object",
        "properties": {
            "part": { "type": "integer", "minimum": 1, "maximum": parts },
            "widget": { "enum": ["multiple_choice", "free_text"] },
            "prompt": text(500),
            "options": { "type": "array", "items": text(200), "minItems": 2, "maxItems": 5 },
            "answer": { "type": "integer", "minimum": 0, "maximum": 4 },
            "expects": text(500),
            "explanation": text(500),
            "hint": text(300),
            "objective": text(80),
        },
        "required": ["part", "widget", "prompt", "explanation", "hint", "objective"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "questions": {
                "type": "array", "items": question, "minItems": 1, "maxItems": WRITTEN_MAX,
            },
        },
        "required": ["questions"],
        "additionalProperties": false,
    })
}

/// Takes what a model wrote, in the order of the parts, without questions that cannot be asked.
pub(crate) fn take_written(reply: &Value, parts: usize) -> Vec<Written> {
    let questions = reply["questions"].as_array().into_iter().flatten();
    let mut written: Vec<Written> = questions
        .filter_map(|question| take_one(question, parts))
        .take(WRITTEN_MAX)
        .collect();
    written.sort_by_key(|written| written.part);
    let mut bytes = 0;
    written.retain(|written| {
        bytes += json!(written).to_string().len();
        bytes <= WRITTEN_BYTES_MAX
    });
    written
}

fn take_one(question: &Value, parts: usize) -> Option<Written> {
    let mut fields = question.as_object()?.clone();
    let part = usize::try_from(fields.remove("part")?.as_u64()?).ok()?;
    let is_choice = fields.get("widget").and_then(Value::as_str) == Some("multiple_choice");
    if !is_choice {
        // A model likes to fill in every field that there is.
        fields.retain(|name, _| name != "options" && name != "answer");
    }
    let question: Question = read(&Value::Object(fields), "question").ok()?;
    check_question("question", &question).ok()?;
    Some(Written {
        part: part.saturating_sub(1).min(parts.saturating_sub(1)),
        question,
    })
}

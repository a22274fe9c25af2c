//! Questions that a model wrote, for a lesson that has none.

use crate::lesson::check_question;
use questions::{Question, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
pub(crate) fn schema(parts: usize) -> Value {
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
pub(crate) fn take(reply: &Value, parts: usize) -> Vec<Written> {
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

//! The widgets as a document: JSON Schemas of each widget's props and answers, for clients that
//! know nothing else.
//!
//! Answers use the functions that make the schema of one question's answer, at their widest bounds.
//! Props are described separately, with the bounds of the check, and a test compares the two.

use serde_json::{Map, Value, json};
use shapes::widget::{
    CODE_CHARS, FREE_TEXT_CHARS, INLINE_BYTES_MAX, LABEL_BYTES_MAX, MEDIA_TYPES, OPTIONS,
    PROMPT_BYTES_MAX, PROPS_BYTES_MAX, RATINGS, TEXT_CHARS_MAX, UPLOAD_BYTES_MAX, UPLOAD_FILES,
    approval_answer, choice_answer, code_answer, confirmation_answer, rating_answer,
    selection_answer, skipped, text_answer, upload_answer,
};
use std::ops::RangeInclusive;

/// The widgets that every client has.
pub const WIDGETS: [&str; 9] = [
    "multiple_choice",
    "multi_select",
    "free_text",
    "code_editor",
    "rating_scale",
    "confirmation",
    "approval",
    "form",
    "file_upload",
];

/// The schema of an answer to a widget, for any props: the schema of one question's answer differs
/// from it only in its bounds. Any object for a form, whose answer is described by the form's own
/// schema.
#[must_use]
pub fn answer(widget: &str) -> Value {
    let options = i64::try_from(*OPTIONS.end()).unwrap_or(i64::MAX);
    match widget {
        "multiple_choice" => choice_answer(options - 1),
        "multi_select" => selection_answer(options - 1, 0..=options),
        "free_text" => text_answer(0..=TEXT_CHARS_MAX),
        "code_editor" => code_answer(TEXT_CHARS_MAX),
        "rating_scale" => rating_answer(RATINGS),
        "confirmation" => confirmation_answer(),
        "approval" => approval_answer(),
        "file_upload" => upload_answer(*UPLOAD_FILES.end(), UPLOAD_BYTES_MAX, None),
        _ => json!({ "type": "object" }),
    }
}

/// The schema of the answer that skips a question, if its prop `skippable` allows that.
#[must_use]
pub fn skipped_answer() -> Value {
    skipped()
}

/// The schema of a widget's props. Lengths are in characters, as JSON Schema counts. The host
/// counts bytes, so that text beyond ASCII reaches its limit earlier. Relations between props, such
/// as `min` and `max`, are in the descriptions.
#[must_use]
pub fn props(widget: &str) -> Value {
    let (fields, required): (Value, &[&str]) = match widget {
        "multiple_choice" => (
            json!({ "prompt": prompt(), "options": options() }),
            &["prompt", "options"],
        ),
        "multi_select" => {
            let counts = (
                count("How many are to be chosen at least; 0 without.", 0),
                count("At most; all without.", 1),
            );
            (
                json!({ "prompt": prompt(), "options": options(), "min": counts.0, "max": counts.1 }),
                &["prompt", "options"],
            )
        }
        "free_text" => {
            let min = 0..=TEXT_CHARS_MAX;
            let max = 1..=TEXT_CHARS_MAX;
            let fields = json!({
                "prompt": prompt(), "min_length": number("Characters at least, not more than \
                                                          `max_length`; 1 without.", &min),
                "max_length": number(&format!("Characters at most; {FREE_TEXT_CHARS} without."), &max),
                "multiline": flag("Whether the words may have several lines; true without."),
                "placeholder": text("What is shown before anything is written.", &(0..=LABEL_BYTES_MAX)),
            });
            (fields, &["prompt"])
        }
        "code_editor" => {
            let fields = json!({
                "prompt": prompt(), "language": text("Of the code, such as `rust`.", &(1..=64)),
                "initial_code": text("What the editor begins with, not longer than `max_length`.", &(0..=PROPS_BYTES_MAX)),
                "max_length": number(&format!("Characters at most; {CODE_CHARS} without."), &(1..=TEXT_CHARS_MAX)),
            });
            (fields, &["prompt"])
        }
        "rating_scale" => (rating_scale(), &["prompt", "min", "max"]),
        "confirmation" => {
            let label = |reported: &str| text(reported, &(1..=LABEL_BYTES_MAX));
            (
                json!({ "prompt": prompt(), "confirm_label": label("Of yes."), "cancel_label": label("Of no.") }),
                &["prompt"],
            )
        }
        "approval" => (
            json!({ "prompt": prompt(), "details": { "description": "What is to be looked at, in \
                any shape." } }),
            &["prompt"],
        ),
        "form" => (form(), &["schema"]),
        "file_upload" => (upload(), &["prompt"]),
        _ => (json!({}), &[]),
    };
    let mut fields = fields.as_object().cloned().unwrap_or_else(Map::new);
    fields.insert(
        "skippable".to_owned(),
        flag("Whether `{\"skipped\": true}` is an answer too; false without."),
    );
    json!({ "type": "object", "properties": fields, "required": required })
}

fn rating_scale() -> Value {
    let label = json!({ "type": "string", "minLength": 1, "maxLength": LABEL_BYTES_MAX });
    let labels = json!({
        "description": "For some of the ratings, such as `{\"1\": \"bad\"}`.", "type": ["object", "null"],
        "additionalProperties": label,
    });
    let whole = |reported: &str| json!({ "description": reported, "type": "integer", "minimum": RATINGS.start(), "maximum": RATINGS.end() });
    let min = whole("The lowest rating.");
    let max = whole("The highest: at least one and at most a hundred more.");
    json!({ "prompt": prompt(), "min": min, "max": max, "labels": labels })
}

fn form() -> Value {
    let is_object = json!({ "type": "object", "properties": { "type": { "const": "object" } }, "required": ["type"] });
    let mut schema = is_object;
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(
            "description".to_owned(),
            "The JSON Schema of the answer.".into(),
        );
    }
    json!({ "prompt": text("What is asked.", &(1..=PROMPT_BYTES_MAX)), "schema": schema })
}

fn upload() -> Value {
    let media_type = json!({ "type": "string", "pattern": "^([A-Za-z0-9._+-]+/([A-Za-z0-9._+-]+|\\*)|\\*/\\*)$", "maxLength": 255 });
    let reported = "Media types that are taken, such as `text/plain` or `image/*`; any without.";
    let max_bytes = format!(
        "Bytes of each file at most; {UPLOAD_BYTES_MAX} without. One that stands in the answer \
         itself has at most {INLINE_BYTES_MAX}, and \
         a larger one is handed over before, with `POST /api/agents/{{id}}/sessions/{{sid}}/files`."
    );
    json!({
        "prompt": prompt(),
        "accept": {
            "description": reported, "type": ["array", "null"], "items": media_type, "minItems": MEDIA_TYPES.start(),
            "maxItems": MEDIA_TYPES.end(),
        },
        "max_bytes": number(&max_bytes, &(1..=UPLOAD_BYTES_MAX)),
        "max_files": number("Files at most; 1 without.", &UPLOAD_FILES),
    })
}

fn prompt() -> Value {
    json!({ "description": "What is asked.", "type": "string", "minLength": 1, "maxLength": PROMPT_BYTES_MAX })
}

fn options() -> Value {
    let option = json!({ "type": "string", "minLength": 1, "maxLength": LABEL_BYTES_MAX });
    let reported = "What is to be chosen from.";
    json!({ "description": reported, "type": "array", "items": option, "minItems": OPTIONS.start(), "maxItems": OPTIONS.end() })
}

fn count(reported: &str, least: i64) -> Value {
    number(
        reported,
        &(least..=i64::try_from(*OPTIONS.end()).unwrap_or(i64::MAX)),
    )
}

// Optional props may also be null, with the same meaning.

fn number(reported: &str, range: &RangeInclusive<i64>) -> Value {
    json!({ "description": reported, "type": ["integer", "null"], "minimum": range.start(), "maximum": range.end() })
}

fn text(reported: &str, chars: &RangeInclusive<usize>) -> Value {
    json!({ "description": reported, "type": ["string", "null"], "minLength": chars.start(), "maxLength": chars.end() })
}

fn flag(reported: &str) -> Value {
    json!({ "description": reported, "type": ["boolean", "null"] })
}

//! The widgets that every client has: what each is shown, and the JSON Schema of what it answers.
//!
//! Props that are named nowhere here are the client's business and pass.

use crate::{NAME_BYTES_MAX, is_name};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// Bytes of all props together.
pub const PROPS_BYTES_MAX: usize = 256 << 10;
/// Bytes of a prompt.
pub const PROMPT_BYTES_MAX: usize = 8 << 10;
/// Bytes of an option, a placeholder or a label.
pub const LABEL_BYTES_MAX: usize = 2 << 10;
/// Options to choose from.
pub const OPTIONS: RangeInclusive<usize> = 2..=100;
/// Characters that an answer of text can be allowed at most.
pub const TEXT_CHARS_MAX: i64 = 128 << 10;
/// Characters of free text unless the props say otherwise.
pub const FREE_TEXT_CHARS: i64 = 2_000;
/// Characters of code unless the props say otherwise.
pub const CODE_CHARS: i64 = 64 << 10;
/// Most steps from the lowest to the highest rating.
pub const RATING_STEPS_MAX: i64 = 100;
/// The lowest and the highest rating that there can be.
pub const RATINGS: RangeInclusive<i64> = -1_000_000..=1_000_000;
/// Media types that an upload may name.
pub const MEDIA_TYPES: RangeInclusive<usize> = 1..=32;
/// Bytes of an uploaded file.
pub const UPLOAD_BYTES_MAX: i64 = 10 << 20;
/// Bytes of a file that stands in the answer itself, as base64: an answer is at most 1 MiB of JSON.
pub const INLINE_BYTES_MAX: i64 = 512 << 10;
/// Files that one answer may be asked for.
pub const UPLOAD_FILES: RangeInclusive<i64> = 1..=10;
/// Characters of a file's name, and of its media type.
const FILE_LABEL_CHARS_MAX: i64 = 255;

/// Checks what a widget is shown. Returns the JSON Schema of its answer; none for a widget that is
/// not one of these.
///
/// # Errors
/// The widget's name or the first prop at fault, and what it has to be.
pub fn check(widget: &str, props: &Value) -> Result<Option<Value>, String> {
    if !is_name(widget, b"_-") {
        let shown: String = widget.chars().take(NAME_BYTES_MAX).collect();
        return Err(format!(
            "widget: 1 to {NAME_BYTES_MAX} of `a-z`, `0-9`, `_` and `-` are needed, this is \
             `{shown}`"
        ));
    }
    let Some(fields) = props.as_object() else {
        return Err(format!(
            "props: an object is needed, this is {}",
            kind(props)
        ));
    };
    let bytes = props.to_string().len();
    if bytes > PROPS_BYTES_MAX {
        return Err(format!(
            "props: {PROPS_BYTES_MAX} bytes at most are allowed, these are {bytes}"
        ));
    }
    let props = Props(fields);
    let answer = match widget {
        "multiple_choice" => multiple_choice(&props),
        "multi_select" => multi_select(&props),
        "free_text" => free_text(&props),
        "code_editor" => code_editor(&props),
        "rating_scale" => rating_scale(&props),
        "confirmation" => confirmation(&props),
        "approval" => approval(&props),
        "form" => form(&props),
        "file_upload" => file_upload(&props),
        _ => return Ok(None),
    }?;
    Ok(Some(if props.flag("skippable")? == Some(true) {
        or_skipped(answer)
    } else {
        answer
    }))
}

/// The schema of an answer that may also be `{"skipped": true}`.
pub fn or_skipped(mut answer: Value) -> Value {
    let mut either = Map::new();
    // References within the schema start from its root, which is no longer where it was.
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = answer
            .as_object_mut()
            .and_then(|schema| schema.remove(name))
        {
            either.insert(name.to_owned(), definitions);
        }
    }
    // One or the other: an answer that is skipped says nothing else.
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("not".to_owned(), json!({ "required": ["skipped"] }));
    }
    either.insert("anyOf".to_owned(), json!([answer, skipped()]));
    Value::Object(either)
}

/// The schema of the answer that passes on a question.
pub fn skipped() -> Value {
    json!({
        "type": "object",
        "properties": { "skipped": { "const": true } },
        "required": ["skipped"],
        "additionalProperties": false,
    })
}

fn multiple_choice(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    Ok(choice_answer(props.options()? - 1))
}

/// One of the options, by its index.
pub fn choice_answer(last: i64) -> Value {
    let fields = json!({ "index": { "type": "integer", "minimum": 0, "maximum": last }, "selection": { "type": "string" } });
    object(&fields, &["index"])
}

fn multi_select(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    let count = props.options()?;
    let max = props.number("max", 1..=count)?.unwrap_or(count);
    let min = props.number("min", 0..=max)?.unwrap_or(0);
    Ok(selection_answer(count - 1, min..=max))
}

/// So many of the options, by their indices.
pub fn selection_answer(last: i64, count: RangeInclusive<i64>) -> Value {
    let index = json!({ "type": "integer", "minimum": 0, "maximum": last });
    let indices = json!({ "type": "array", "items": index, "uniqueItems": true, "minItems": count.start(), "maxItems": count.end() });
    let selections = json!({ "type": "array", "items": { "type": "string" } });
    object(
        &json!({ "indices": indices, "selections": selections }),
        &["indices"],
    )
}

fn free_text(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    let max = props
        .number("max_length", 1..=TEXT_CHARS_MAX)?
        .unwrap_or(FREE_TEXT_CHARS);
    let min = props.number("min_length", 0..=max)?.unwrap_or(1);
    props.flag("multiline")?;
    props.text("placeholder", 0..=LABEL_BYTES_MAX)?;
    Ok(text_answer(min..=max))
}

/// Words of so many characters.
pub fn text_answer(chars: RangeInclusive<i64>) -> Value {
    object(
        &json!({ "text": { "type": "string", "minLength": chars.start(), "maxLength": chars.end() } }),
        &["text"],
    )
}

fn code_editor(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    let max = props
        .number("max_length", 1..=TEXT_CHARS_MAX)?
        .unwrap_or(CODE_CHARS);
    props.text("language", 1..=64)?;
    let code = props
        .text("initial_code", 0..=PROPS_BYTES_MAX)?
        .unwrap_or_default();
    let chars = i64::try_from(code.chars().count()).unwrap_or(i64::MAX);
    if chars > max {
        return Err(format!(
            "props.initial_code: at most {max} characters are allowed, as `max_length` says, these \
             are {chars}"
        ));
    }
    Ok(code_answer(max))
}

/// Code of at most so many characters.
pub fn code_answer(chars_max: i64) -> Value {
    let fields = json!({ "code": { "type": "string", "maxLength": chars_max }, "language": { "type": "string" } });
    object(&fields, &["code"])
}

fn rating_scale(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    let needed = |name: &str| {
        Err(format!(
            "props.{name}: a whole number is needed, there is none"
        ))
    };
    let Some(min) = props.number("min", RATINGS)? else {
        return needed("min");
    };
    let Some(max) = props.number("max", RATINGS)? else {
        return needed("max");
    };
    if max <= min || max - min > RATING_STEPS_MAX {
        return Err(format!(
            "props.max: {} to {} is needed, as `min` is {min}, this is {max}",
            min + 1,
            min + RATING_STEPS_MAX
        ));
    }
    match props.get("labels") {
        None => {}
        Some(Value::Object(labels)) => {
            for (rating, label) in labels {
                if !rating
                    .parse::<i64>()
                    .is_ok_and(|rating| (min..=max).contains(&rating))
                {
                    return Err(format!(
                        "props.labels: each name is a rating from {min} to {max}, `{rating}` is not"
                    ));
                }
                is_text(&format!("labels.{rating}"), label, 1..=LABEL_BYTES_MAX)?;
            }
        }
        Some(other) => {
            return Err(format!(
                "props.labels: an object of ratings and their labels is needed, this is {}",
                kind(other)
            ));
        }
    }
    Ok(rating_answer(min..=max))
}

/// One of these ratings.
pub fn rating_answer(ratings: RangeInclusive<i64>) -> Value {
    object(
        &json!({ "rating": { "type": "integer", "minimum": ratings.start(), "maximum": ratings.end() } }),
        &["rating"],
    )
}

fn confirmation(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    props.text("confirm_label", 1..=LABEL_BYTES_MAX)?;
    props.text("cancel_label", 1..=LABEL_BYTES_MAX)?;
    Ok(confirmation_answer())
}

/// Yes or no.
pub fn confirmation_answer() -> Value {
    object(
        &json!({ "confirmed": { "type": "boolean" } }),
        &["confirmed"],
    )
}

fn approval(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    Ok(approval_answer())
}

/// The schema of an approval's answer.
pub fn approval_answer() -> Value {
    let fields = json!({ "approved": { "type": "boolean" }, "comment": { "type": "string", "maxLength": FREE_TEXT_CHARS } });
    object(&fields, &["approved"])
}

/// The answer is what the schema of the props describes, and nothing around it.
fn form(props: &Props<'_>) -> Result<Value, String> {
    props.text("prompt", 1..=PROMPT_BYTES_MAX)?;
    match props.get("schema") {
        Some(schema @ Value::Object(fields))
            if fields.get("type").and_then(Value::as_str) == Some("object") =>
        {
            Ok(schema.clone())
        }
        Some(_) => Err(
            "props.schema: a JSON Schema with `\"type\": \"object\"` is needed, this is another one"
                .to_owned(),
        ),
        None => Err(
            "props.schema: a JSON Schema with `\"type\": \"object\"` is needed, there is none"
                .to_owned(),
        ),
    }
}

fn file_upload(props: &Props<'_>) -> Result<Value, String> {
    props.prompt()?;
    let bytes = props
        .number("max_bytes", 1..=UPLOAD_BYTES_MAX)?
        .unwrap_or(UPLOAD_BYTES_MAX);
    let files = props
        .number("max_files", UPLOAD_FILES)?
        .unwrap_or(*UPLOAD_FILES.start());
    let patterns = match props.texts("accept", MEDIA_TYPES, 255)? {
        Some(accepted) => {
            let patterns = accepted
                .iter()
                .enumerate()
                .map(|(at, text)| media_type_pattern(at, text));
            Some(patterns.collect::<Result<Vec<String>, String>>()?.join("|"))
        }
        None => None,
    };
    Ok(upload_answer(files, bytes, patterns.as_deref()))
}

/// The schema of an answer with files. Each file is one that was handed over before, by its digest,
/// or a small one that stands in the answer. The host checks the size and the type of the former,
/// which no schema can.
pub fn upload_answer(files_max: i64, bytes_max: i64, patterns: Option<&str>) -> Value {
    let mut media_type =
        json!({ "type": "string", "minLength": 1, "maxLength": FILE_LABEL_CHARS_MAX });
    if let (Some(patterns), Some(media_type)) = (patterns, media_type.as_object_mut()) {
        // A parameter may follow, as in `text/plain; charset=utf-8`.
        media_type.insert(
            "pattern".to_owned(),
            format!("^({patterns})( *;.*)?$").into(),
        );
    }
    let name = json!({ "type": "string", "minLength": 1, "maxLength": FILE_LABEL_CHARS_MAX, "pattern": r"^[^/\\]+$" });
    let digits = (bytes_max.min(INLINE_BYTES_MAX) + 2) / 3 * 4;
    let content =
        json!({ "type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$", "maxLength": digits });
    let digest = json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" });
    let named = closed(&json!({ "digest": digest, "name": name }), &["digest"]);
    let fields = json!({ "name": name, "media_type": media_type, "content_base64": content });
    let inline = closed(&fields, &["name", "media_type", "content_base64"]);
    let files = json!({ "type": "array", "items": { "anyOf": [named, inline] }, "minItems": 1, "maxItems": files_max });
    object(&json!({ "files": files }), &["files"])
}

/// The pattern that the media types match which one of the accepted ones stands for.
fn media_type_pattern(at: usize, accepted: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
    };
    let pattern = |name: &str| {
        if name == "*" {
            "[^/]+".to_owned()
        } else {
            name.replace('.', "\\.").replace('+', "\\+")
        }
    };
    match accepted.split_once('/') {
        Some((kind, name))
            if (is_name(kind) || accepted == "*/*") && (is_name(name) || name == "*") =>
        {
            Ok(format!("{}/{}", pattern(kind), pattern(name)))
        }
        _ => Err(format!(
            "props.accept[{at}]: a media type such as `text/plain` or `image/*` is needed, this is \
             `{accepted}`"
        )),
    }
}

fn object(fields: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": fields, "required": required })
}

fn closed(fields: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
}

/// The properties of a widget. `null` counts as not there.
struct Props<'a>(&'a Map<String, Value>);

impl<'a> Props<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str, bytes: RangeInclusive<usize>) -> Result<Option<&'a str>, String> {
        self.get(name)
            .map(|value| is_text(name, value, bytes))
            .transpose()
    }

    fn prompt(&self) -> Result<&'a str, String> {
        self.text("prompt", 1..=PROMPT_BYTES_MAX)?
            .ok_or_else(|| "props.prompt: a text is needed, there is none".to_owned())
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        let no = |value| {
            format!(
                "props.{name}: true or false is needed, this is {}",
                kind(value)
            )
        };
        self.get(name)
            .map(|value| value.as_bool().ok_or_else(|| no(value)))
            .transpose()
    }

    fn number(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            found => {
                let this =
                    found.map_or_else(|| kind(value).to_owned(), |number| number.to_string());
                Err(format!(
                    "props.{name}: a whole number from {} to {} is needed, this is {this}",
                    range.start(),
                    range.end()
                ))
            }
        }
    }

    fn texts(
        &self,
        name: &str,
        count: RangeInclusive<usize>,
        bytes_max: usize,
    ) -> Result<Option<Vec<&'a str>>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let needed = format!(
            "props.{name}: {} to {} texts are needed",
            count.start(),
            count.end()
        );
        let texts = value
            .as_array()
            .ok_or_else(|| format!("{needed}, this is {}", kind(value)))?;
        if !count.contains(&texts.len()) {
            let are = if texts.len() == 1 { "is" } else { "are" };
            return Err(format!("{needed}, there {are} {}", texts.len()));
        }
        let texts = texts
            .iter()
            .enumerate()
            .map(|(at, text)| is_text(&format!("{name}[{at}]"), text, 1..=bytes_max));
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// Returns the number of options.
    fn options(&self) -> Result<i64, String> {
        let missing = || {
            format!(
                "props.options: {} to {} texts are needed, there are none",
                OPTIONS.start(),
                OPTIONS.end()
            )
        };
        let options = self
            .texts("options", OPTIONS, LABEL_BYTES_MAX)?
            .ok_or_else(missing)?;
        Ok(i64::try_from(options.len()).unwrap_or(i64::MAX))
    }
}

fn is_text<'a>(
    name: &str,
    value: &'a Value,
    bytes: RangeInclusive<usize>,
) -> Result<&'a str, String> {
    let text = value
        .as_str()
        .ok_or_else(|| format!("props.{name}: a text is needed, this is {}", kind(value)))?;
    if bytes.contains(&text.len()) {
        return Ok(text);
    }
    Err(format!(
        "props.{name}: a text of {} to {} bytes is needed, this one has {}",
        bytes.start(),
        bytes.end(),
        text.len()
    ))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

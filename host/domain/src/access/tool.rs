//! Tools as the host sees them: definitions, effect classes, client actions, and the continuation
//! of a call.

pub mod wording;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The effect of running a tool again. It decides what the host may do after a crash. The order is
/// that of the required care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// Changes nothing. It may run more than once, and in parallel with others.
    ReadOnly,
    /// Repeating the call with the same key has the effect of one call.
    Idempotent,
    /// At most once; after a crash between "started" and "settled" the outcome is unknown.
    NonIdempotent,
}

/// One tool of a tool component, or one of the host's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// 1 to 64 of `a-z`, `0-9` and `_`.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub arguments: Value,
    /// JSON Schema of the result, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Value>,
    /// The capabilities that it needs from the host, such as `files.read`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// The effect of running it again.
    pub effect: EffectClass,
    /// True if it can destroy data that the user may miss.
    #[serde(default)]
    pub destructive: bool,
    /// Time limit of one call in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u32>,
}

impl ToolDefinition {
    /// A tool that only reads and needs no capability of the host.
    #[must_use]
    pub fn reading(
        name: impl Into<String>,
        description: impl Into<String>,
        arguments: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            arguments,
            results: None,
            capabilities: Vec::new(),
            effect: EffectClass::ReadOnly,
            destructive: false,
            time_limit_ms: None,
        }
    }

    /// A tool that may run again, with the properties of its arguments and those that are needed.
    pub(crate) fn idempotent(
        name: &str,
        description: &str,
        properties: &Value,
        required: &[&str],
    ) -> Self {
        let arguments = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        Self {
            effect: EffectClass::Idempotent,
            ..Self::reading(name, description, arguments)
        }
    }

    /// Returns the bytes of the tool's text for a model: its name, its description and the schema
    /// of its arguments.
    #[must_use]
    pub fn shown_bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.arguments.to_string().len()
    }
}

/// A question to the user, answered through a widget of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientAction {
    /// The widget.
    pub widget: String,
    /// The props of the widget: an object.
    pub props: Value,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// True if the client should lock its message box while the question is open.
    #[serde(default)]
    pub lock_input: bool,
}

impl ClientAction {
    /// A question with a widget, without a schema of its own for the answer.
    #[must_use]
    pub fn of(widget: impl Into<String>, props: Value) -> Self {
        Self {
            widget: widget.into(),
            props,
            response_schema: None,
            lock_input: false,
        }
    }
}

/// The reason why a tool call failed, as the tool gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "kebab-case")]
pub enum ToolError {
    /// The arguments are invalid.
    InvalidArguments(String),
    /// The requested thing does not exist.
    NotFound(String),
    /// The host or the world refused.
    Denied,
    /// Something else.
    Failed(String),
    /// Busy: try again after this many milliseconds.
    RetryLater(u32),
}

/// Bytes in JSON, as hexadecimal digits.
pub mod bytes_as_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes bytes.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    /// Reads them back.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

// Tools as models see them, without repetition and without data for programs only.
//
// Every model call pays for each of these words. Arguments are checked by the component's original
// schema. Only the form of the text is left out here, and names of number sizes that are not part
// of JSON Schema.

/// Keys whose values are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keys whose values are schemas, or lists of schemas.
const NESTED: [&str; 8] = [
    "items",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "prefixItems",
    "contains",
];
/// Formats that are sizes of numbers in memory.
const SIZES: [&str; 13] = [
    "int8", "int16", "int32", "int64", "int128", "uint", "uint8", "uint16", "uint32", "uint64",
    "uint128", "float", "double",
];

impl ToolDefinition {
    /// Returns the tool as a model sees it.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        shown.description = joined(&self.description);
        if let Value::Object(schema) = &mut shown.arguments {
            schema.remove("$schema");
            schema.remove("title");
        }
        tidy(&mut shown.arguments);
        shown
    }
}

/// Reduces a schema to the parts that a model needs.
fn tidy(schema: &mut Value) {
    let Value::Object(map) = schema else {
        return;
    };
    let is_size = map.get("format").and_then(Value::as_str);
    if is_size.is_some_and(|format| SIZES.contains(&format)) {
        map.remove("format");
    }
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = joined(text);
    }
    without_null(map);
    for key in NAMED {
        if let Some(Value::Object(named)) = map.get_mut(key) {
            named.values_mut().for_each(tidy);
        }
    }
    for key in NESTED {
        match map.get_mut(key) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(tidy),
            Some(nested) => tidy(nested),
            None => {}
        }
    }
}

/// Removes `null` from the types of a value that is optional too: a model needs one way.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type")
        && types.len() > 1
    {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum")
        && choices.len() > 1
    {
        choices.retain(|choice| !choice.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = map.get_mut(key) else {
            continue;
        };
        choices.retain(|choice| choice.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove(key);
            // The parameter's own text precedes that of its type.
            for (name, value) in only {
                map.entry(name).or_insert(value);
            }
        }
    }
}

/// Returns a text without the line breaks of its source. Paragraphs, lists and indented lines stay
/// separate.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.trim().lines().map(str::trim_end).peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        let Some(next) = lines.peek() else {
            break;
        };
        let stands_alone = |line: &str| {
            let numbered = line.split_once(['.', ')']).is_some_and(|(number, _)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
            line.is_empty() || numbered || line.starts_with(['-', '*', '#', '|', '`', ' ', '\t'])
        };
        joined.push(if line.is_empty() || stands_alone(next) {
            '\n'
        } else {
            ' '
        });
    }
    joined
}

#[cfg(test)]
mod shown_tests {
    use super::joined;
    use crate::access::tool::ToolDefinition;
    use serde_json::json;

    #[test]
    fn a_model_is_shown_no_sizes_no_null_and_no_breaks_of_the_source() {
        let arguments = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Arguments", "type": "object", "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": { "type": "string", "description": "The file,\nas it is named." },
                "limit": {
                    "type": ["integer", "null"], "format": "uint32", "minimum": 1, "default": null,
                },
                "when": { "type": ["string", "null"], "format": "date-time" },
                "order": {
                    "description": "The order.",
                    "anyOf": [{ "type": "string", "enum": ["up", "down"] }, { "type": "null" }],
                },
                "title": { "type": "array", "items": { "type": ["number", "null"], "format": "double" } },
                "nothing": { "type": "null" },
            },
        });
        let tool = ToolDefinition::reading(
            "look",
            "Looks at a\nfile.\n\nTwo ways:\n- near\n- far",
            arguments,
        );
        let shown = tool.shown();
        assert_eq!(
            shown.description,
            "Looks at a file.\n\nTwo ways:\n- near\n- far"
        );
        assert_eq!(
            shown.arguments,
            json!({
                "type": "object", "additionalProperties": false, "required": ["path"],
                "properties": {
                    "path": { "type": "string", "description": "The file, as it is named." },
                    "limit": { "type": "integer", "minimum": 1 },
                    "when": { "type": "string", "format": "date-time" },
                    "order": {
                        "description": "The order.", "type": "string", "enum": ["up", "down"],
                    },
                    "title": { "type": "array", "items": { "type": "number" } },
                    "nothing": { "type": "null" },
                },
            })
        );
        assert!(shown.shown_bytes() < tool.shown_bytes());
    }

    #[test]
    fn paragraphs_and_lists_of_a_description_stay_apart() {
        for (text, expected) in [
            ("one\ntwo", "one two"),
            ("one\n\ntwo\nthree", "one\n\ntwo three"),
            ("steps:\n1. one\n2. two", "steps:\n1. one\n2. two"),
            ("like:\n    code\nand", "like:\n    code and"),
            ("", ""),
        ] {
            assert_eq!(joined(text), expected);
        }
    }
}

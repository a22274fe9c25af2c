//! Single keys from the environment: `AGENT_HOST__SERVER__LISTEN=127.0.0.1:8080` is
//! `server.listen`.
//!
//! Levels are separated by two underscores and written in capitals with underscores: `DATA_DIR` is
//! `dataDir`. A value that is JSON is taken as such, anything else as text. Lists are replaced as a
//! whole. An empty variable counts as one that is not set: an empty text is `""`.

use super::file::twice;
use super::finding::KeyError;
use serde_json::{Map, Value};

/// The prefix of the variables' names.
pub(crate) const PREFIX: &str = "AGENT_HOST__";

/// One overlaid key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overlaid {
    pub(crate) variable: String,
    /// The key, level by level.
    pub(crate) key: Vec<String>,
    pub(crate) value: Value,
    /// The key that the variable's table has twice; none in most.
    pub(crate) twice: Option<KeyError>,
}

/// The overlaid keys among some variables, in the order of their names.
pub(crate) fn overlaid(variables: impl IntoIterator<Item = (String, String)>) -> Vec<Overlaid> {
    let mut all: Vec<Overlaid> = variables
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(variable, value)| {
            let key = variable
                .strip_prefix(PREFIX)?
                .split("__")
                .map(camel)
                .collect();
            let json = serde_json::from_str(&value).ok();
            let twice = json.as_ref().and_then(|_: &Value| twice(&value));
            Some(Overlaid {
                variable,
                key,
                value: json.unwrap_or(Value::String(value)),
                twice: twice.map(|(fault, _)| fault),
            })
        })
        .collect();
    all.sort_by(|a, b| a.variable.cmp(&b.variable));
    all
}

/// `DATA_DIR` as `dataDir`.
fn camel(level: &str) -> String {
    let mut camel = String::new();
    let mut upper = false;
    for c in level.chars() {
        if c == '_' {
            upper = !camel.is_empty();
        } else if upper {
            camel.push(c.to_ascii_uppercase());
            upper = false;
        } else {
            camel.push(c.to_ascii_lowercase());
        }
    }
    camel
}

/// Puts a key into a configuration. A value in its way is replaced by a table.
pub(crate) fn put(config: &mut Value, key: &[String], value: Value) {
    let Some((first, rest)) = key.split_first() else {
        *config = value;
        return;
    };
    if !config.is_object() {
        *config = Value::Object(Map::new());
    }
    if let Value::Object(table) = config {
        put(
            table.entry(first.clone()).or_insert(Value::Null),
            rest,
            value,
        );
    }
}

//! Reading the config file, with line and column in what goes wrong: at a start and again, and the
//! same in TOML and JSON.

use super::document::{Config, Loaded, schema};
use super::finding::KeyError;
use super::overlay::Overlaid;
use super::{extend, finding, overlay};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fmt, io};

/// Bytes of a config file.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The mark that some editors write at the beginning, which is no part of the text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The reason why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the configuration `{}`", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is far too large to be a configuration.
    #[error("`{}` is larger than {FILE_BYTES_MAX} bytes", file.display())]
    TooLarge { file: PathBuf },
    /// A file with nothing in it. One that is written in place is so at first, and would be a
    /// configuration without agents, whose turns would all end.
    #[error("`{}` is empty", file.display())]
    Empty { file: PathBuf },
    /// A file that is neither TOML nor JSON by its name.
    #[error("`{}` is neither .toml nor .json: the extension says how it is written", file.display())]
    Format { file: PathBuf },
    /// A fault in the file.
    #[error("{}{}: {}", file.display(), position(*line_column), message(fault))]
    Wrong {
        file: PathBuf,
        /// Line and column.
        line_column: Option<(usize, usize)>,
        fault: KeyError,
    },
    /// A key from the environment is wrong.
    #[error("environment variable {variable}: {}", message(fault))]
    Environment { variable: String, fault: KeyError },
}

fn position(line_column: Option<(usize, usize)>) -> String {
    line_column
        .map(|(line, column)| format!(":{line}:{column}"))
        .unwrap_or_default()
}

/// Describes a fault and its key. Control characters from the file are shown as escapes.
fn message(fault: &KeyError) -> String {
    let message = match fault.key.as_str() {
        "" => fault.message.clone(),
        key => format!("{key}: {}", fault.message),
    };
    let is_plain = |letter: char| letter == '\n' || !letter.is_control();
    message
        .chars()
        .map(|letter| {
            if is_plain(letter) {
                letter.to_string()
            } else {
                letter.escape_default().to_string()
            }
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Toml,
    Json,
}

/// Reads a config file and lays the environment over it.
///
/// # Errors
/// The first thing that is wrong, with the key and, for the file, line and column.
pub(crate) fn load(
    file: &Path,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, LoadError> {
    let format = match file.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => Format::Toml,
        Some("json") => Format::Json,
        _ => {
            return Err(LoadError::Format {
                file: file.to_owned(),
            });
        }
    };
    let text = read(file)?;
    let text = text.as_str();
    // An absolute path, so that what is relative to it stays where it is.
    let at = std::path::absolute(file).map_err(|source| unreadable(file, source))?;
    let wrong = |line_column, fault| LoadError::Wrong {
        file: file.to_owned(),
        line_column,
        fault,
    };
    // The file must be right by itself: its errors can be told with line and column only before
    // anything is laid over it.
    let mut config = parse(text, format).map_err(|error| wrong(error.line_column, error.fault))?;
    let overlaid = overlay::overlaid(variables);
    let mut laid_over = None;
    if !overlaid.is_empty() {
        let (all, value) = lay_over(plain(text, format), &overlaid)?;
        config = all;
        laid_over = Some(value);
    }
    let plain = || laid_over.unwrap_or_else(|| plain(text, format));
    extend::resolve(&mut config, plain).map_err(|fault| wrong(None, fault))?;
    Ok(Loaded {
        config,
        file: at,
        written: text.into(),
        data: None,
        trusts_address: false,
        overlaid: overlaid
            .into_iter()
            .map(|overlaid| overlaid.variable)
            .collect(),
    })
}

/// Reads the file.
fn read(file: &Path) -> Result<String, LoadError> {
    let unreadable = |source| unreadable(file, source);
    let found = std::fs::metadata(file).map_err(unreadable)?;
    // To read a pipe could take for ever.
    if !found.is_file() {
        return Err(unreadable(io::Error::other("it is no regular file")));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(LoadError::TooLarge {
            file: file.to_owned(),
        });
    }
    let mut text = std::fs::read_to_string(file).map_err(unreadable)?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    if text.trim().is_empty() {
        return Err(LoadError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(text)
}

fn unreadable(file: &Path, source: io::Error) -> LoadError {
    LoadError::Unreadable {
        file: file.to_owned(),
        source,
    }
}

/// An error in the text of the file, with line and column where they are known.
struct ParseError {
    line_column: Option<(usize, usize)>,
    fault: KeyError,
}

fn parse(text: &str, format: Format) -> Result<Config, ParseError> {
    match format {
        Format::Json => {
            let start = text.len() - text.trim_start().len();
            // Read as a table, a list without entries would be one without keys.
            if text.get(start..).is_some_and(|text| text.starts_with('[')) {
                return Err(ParseError {
                    line_column: Some(line_column(text, start)),
                    fault: KeyError::of_all("a list is not a table"),
                });
            }
            let mut json = serde_json::Deserializer::from_str(text);
            let at = |error: &serde_json::Error| {
                (error.line() > 0).then(|| (error.line(), error.column()))
            };
            let config =
                serde_path_to_error::deserialize(&mut json).map_err(|error| ParseError {
                    line_column: at(error.inner()),
                    fault: KeyError::new(error.path(), &without_position(error.inner())),
                })?;
            json.end().map_err(|error| ParseError {
                line_column: at(&error),
                fault: KeyError::of_all(&without_position(&error)),
            })?;
            match twice(text) {
                Some((fault, place)) => Err(ParseError {
                    line_column: Some(place),
                    fault,
                }),
                None => Ok(config),
            }
        }
        Format::Toml => {
            let at =
                |error: &toml::de::Error| error.span().map(|span| line_column(text, span.start));
            let toml = toml::Deserializer::parse(text).map_err(|error| ParseError {
                line_column: at(&error),
                fault: KeyError::of_all(error.message()),
            })?;
            let config = serde_path_to_error::deserialize(toml).map_err(|error| {
                let line_column = at(error.inner());
                let line = line_column.and_then(|(line, _)| text.lines().nth(line - 1));
                let fault = KeyError::new(error.path(), error.inner().message());
                ParseError {
                    line_column,
                    fault: finding::hinted(fault, line.unwrap_or_default()),
                }
            })?;
            // It has been parsed before.
            let fault = toml::from_str(text).ok().as_ref().and_then(no_number);
            match fault {
                Some(fault) => Err(ParseError {
                    line_column: None,
                    fault,
                }),
                None => Ok(config),
            }
        }
    }
}

/// The file as a plain value; it has been parsed before.
fn plain(text: &str, format: Format) -> Value {
    match format {
        Format::Json => serde_json::from_str(text).unwrap_or_default(),
        Format::Toml => toml::from_str(text).unwrap_or_default(),
    }
}

/// Lays one key after the other over the file, so that an error can name the variable.
/// Returns the result too as a plain value.
fn lay_over(mut value: Value, overlaid: &[Overlaid]) -> Result<(Config, Value), LoadError> {
    let mut config = Config::default();
    for Overlaid {
        variable,
        key,
        value: new,
        twice,
    } in overlaid
    {
        if let Some(fault) = twice {
            return Err(LoadError::Environment {
                variable: variable.clone(),
                fault: fault.clone(),
            });
        }
        overlay::put(&mut value, key, new.clone());
        config =
            serde_path_to_error::deserialize(&value).map_err(|error| LoadError::Environment {
                variable: variable.clone(),
                fault: KeyError::new(error.path(), &error.inner().to_string()),
            })?;
    }
    Ok((config, value))
}

fn line_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}

/// The keys that are read at a start only, as JSON pointers.
static READ_AT_A_START: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schema();
    let mut marked = Vec::new();
    collect(&schema, &schema, "", &mut marked);
    marked.sort_unstable();
    marked
});

/// Adds the marked keys of a table, which is a part of the schema.
fn collect(schema: &Value, table: &Value, at: &str, into: &mut Vec<String>) {
    let is_marked = |it: &Value| it.get("x-read").is_some_and(|when| when == "start");
    let properties = table.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        let at = format!("{at}/{key}");
        let inner = property.get("$ref").and_then(Value::as_str);
        let inner = inner.and_then(|it| schema.pointer(it.trim_start_matches('#')));
        match inner {
            _ if is_marked(table) || is_marked(property) => into.push(at),
            Some(inner) => collect(schema, inner, &at, into),
            None => {}
        }
    }
}

/// Returns what is in force after a reload: what is read again of one configuration, and the rest
/// of the one that is served.
///
/// # Errors
/// None is to be expected: what was read can be read again.
pub(crate) fn reloaded(read: &Config, served: &Config) -> serde_json::Result<Config> {
    let mut next = json!(read);
    let served = json!(served);
    for key in &*READ_AT_A_START {
        if let (Some(value), Some(served)) = (next.pointer_mut(key), served.pointer(key)) {
            *value = served.clone();
        }
    }
    serde_json::from_value(next)
}

/// Returns the keys with other values that are read at a start only.
pub(crate) fn read_at_a_start(before: &Value, after: &Value) -> Vec<String> {
    let keys = READ_AT_A_START.iter();
    let changed = keys.filter(|key| before.pointer(key) != after.pointer(key));
    changed
        .map(|key| key.replacen('/', "", 1).replace('/', "."))
        .collect()
}

/// Finds the first key that a table of JSON has twice, with the line and column in the text. The
/// text has been parsed before.
pub(super) fn twice(text: &str) -> Option<(KeyError, (usize, usize))> {
    let mut json = serde_json::Deserializer::from_str(text);
    let once: Result<Once, _> = serde_path_to_error::deserialize(&mut json);
    let error = once.err()?;
    let inner = error.inner();
    let fault = KeyError::new(error.path(), &without_position(inner));
    Some((fault, (inner.line(), inner.column())))
}

/// Returns what an error of JSON says, without the place.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(text, _)| text.to_owned())
}

/// A value of JSON in which every table has each key once, at every depth.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _value: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            seen.insert(key);
            fields.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Finds the first number of TOML that JSON does not have.
pub(super) fn no_number(value: &toml::Value) -> Option<KeyError> {
    let within = |prefix: String, inner: &toml::Value| {
        no_number(inner).map(|fault| KeyError {
            key: if fault.key.is_empty() || fault.key.starts_with('[') {
                format!("{prefix}{}", fault.key)
            } else {
                format!("{prefix}.{}", fault.key)
            },
            ..fault
        })
    };
    match value {
        toml::Value::Float(number) if !number.is_finite() => {
            let message =
                format!("`{number}` is not a number that can be meant; write it in digits");
            Some(KeyError::of_all(&message))
        }
        toml::Value::Array(entries) => {
            let mut entries = entries.iter().enumerate();
            entries.find_map(|(index, entry)| within(format!("[{index}]"), entry))
        }
        toml::Value::Table(keys) => keys
            .iter()
            .find_map(|(key, inner)| within(key.clone(), inner)),
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{READ_AT_A_START, read_at_a_start, reloaded};
    use crate::config::Config;
    use serde_json::{Value, json};

    #[test]
    fn keys_that_need_a_restart_are_named_and_those_that_are_read_again_are_not() {
        let before = json!(Config::default());
        for key in &*READ_AT_A_START {
            assert!(
                before.pointer(key).is_some(),
                "{key} is a key of the configuration"
            );
        }
        let mut after = before.clone();
        after["server"]["listen"] = json!("127.0.0.1:1");
        after["server"]["dataDir"] = json!("elsewhere");
        after["providers"] = json!({ "p": {} });
        after["models"] = json!({ "m": {} });
        after["limits"]["hopsMax"] = json!(3);
        after["limits"]["instancesMax"] = json!(3);
        after["components"] = json!({ "c": {} });
        after["agents"] = json!([{}]);
        after["hooks"] = json!({});
        after["triggers"] = json!({ "t": {} });
        assert_eq!(
            read_at_a_start(&before, &after),
            [
                "limits.instancesMax",
                "providers",
                "server.dataDir",
                "server.listen"
            ]
        );
        assert!(read_at_a_start(&before, &before).is_empty());
    }

    #[test]
    fn what_is_served_has_all_that_is_read_again_and_nothing_that_is_not() {
        let served = Config::default();
        let read: Config = serde_json::from_value(json!({
            "agents": [{ "agentId": "a", "displayName": "A" }],
            "providers": { "p": { "kind": "scripted", "script": "s.toml" } },
            "models": { "m": { "provider": "p", "model": "m" } },
            "defaultModel": "m",
            "limits": { "hopsMax": 3, "instancesMax": 3 },
            "roles": { "memory": "m" },
            "requirePins": true,
            "triggers": { "t": { "heartbeat": {}, "target": { "agent": "a" } } },
            "hooks": { "token": "hook", "user": "ada", "agent": "a" },
            "connectors": { "c": { "component": "telegram", "agent": "a" } },
            "server": { "listen": "127.0.0.1:1" },
        }))
        .unwrap();
        let next = json!(reloaded(&read, &served).unwrap());
        let read = json!(read);
        let served = json!(served);
        let of = |config: &Value, key: &str| config.pointer(key).cloned();
        for key in [
            "/agents",
            "/models",
            "/defaultModel",
            "/limits/hopsMax",
            "/roles",
            "/triggers/t",
            "/hooks",
            "/connectors/c",
        ] {
            assert_eq!(of(&next, key), of(&read, key), "{key}");
            assert_ne!(of(&next, key), of(&served, key), "{key}");
        }
        for key in ["/providers", "/server", "/limits/instancesMax"] {
            assert_eq!(of(&next, key), of(&served, key), "{key}");
        }
        // Each key that is not named as in need of a restart is taken up, and no other.
        assert_eq!(
            read_at_a_start(&next, &read),
            read_at_a_start(&served, &read)
        );
    }
}

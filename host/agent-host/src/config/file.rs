//! Reading the config file, with line and column in what goes wrong.

use super::document::{Config, Loaded};
use super::extend;
use super::key::KeyError;
use super::overlay::{self, Overlaid};
use super::strict::{no_number, twice, without_position};
use super::toml_hint;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

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
    if overlaid.is_empty() {
        extend::resolve(&mut config, || plain(text, format)).map_err(|fault| wrong(None, fault))?;
        return Ok(Loaded {
            config,
            file: at,
            written: text.into(),
            data: None,
            trusts_address: false,
            overlaid: Vec::new(),
        });
    }
    let (mut config, laid_over) = lay_over(plain(text, format), &overlaid)?;
    extend::resolve(&mut config, || laid_over).map_err(|fault| wrong(None, fault))?;
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
                    fault: KeyError {
                        key: String::new(),
                        message: "a list is not a table".to_owned(),
                    },
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
                fault: KeyError {
                    key: String::new(),
                    message: without_position(&error),
                },
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
            let whole = |error: &toml::de::Error| KeyError {
                key: String::new(),
                message: error.message().to_owned(),
            };
            let toml = toml::Deserializer::parse(text).map_err(|error| ParseError {
                line_column: at(&error),
                fault: whole(&error),
            })?;
            let config = serde_path_to_error::deserialize(toml).map_err(|error| {
                let line_column = at(error.inner());
                let line = line_column.and_then(|(line, _)| text.lines().nth(line - 1));
                let fault = KeyError::new(error.path(), error.inner().message());
                ParseError {
                    line_column,
                    fault: toml_hint::hinted(fault, line.unwrap_or_default()),
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

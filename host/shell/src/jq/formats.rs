//! Values as texts.

use super::values::{Halt, kind, raised};
use crate::meter::Meter;
use serde_json::Value;

/// Returns a value as a text, counted before it is made: a string by itself, all else as JSON.
pub(super) fn text_of(meter: &mut Meter, value: &Value) -> Result<String, Halt> {
    match value {
        Value::String(text) => {
            meter.longer(0, text.len())?;
            Ok(text.clone())
        }
        other => Ok(meter.json(other, true)?),
    }
}

/// Returns a value as a format writes it.
pub(super) fn formatted(
    meter: &mut Meter,
    format: Option<&str>,
    value: &Value,
) -> Result<String, Halt> {
    match format {
        None | Some("@text") => text_of(meter, value),
        Some("@json") => Ok(meter.json(value, true)?),
        Some("@csv") => joined(meter, value, ",", |text| {
            format!("\"{}\"", text.replace('"', "\"\""))
        }),
        Some("@tsv") => joined(meter, value, "\t", |text| {
            text.replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r")
        }),
        Some(other) => raised(format!("{other} is not read here")),
    }
}

fn joined(
    meter: &mut Meter,
    value: &Value,
    by: &str,
    quoted: impl Fn(&str) -> String,
) -> Result<String, Halt> {
    let Value::Array(items) = value else {
        return raised(format!("{} is no row", kind(value)));
    };
    let mut row = String::new();
    for (number, item) in items.iter().enumerate() {
        let cell = match item {
            Value::Null => String::new(),
            Value::String(text) => {
                // Each character is written as two at most.
                meter.work(text.len().saturating_mul(2))?;
                quoted(text)
            }
            Value::Bool(_) | Value::Number(_) => item.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return raised(format!("{} is no cell of a row", kind(item)));
            }
        };
        let between = if number == 0 { "" } else { by };
        meter.push_all(&mut row, &[between, cell.as_str()])?;
    }
    Ok(row)
}

//! JSON from outside: not nested deeper than what can be read again, wherever it is stored.

use serde_json::Value;

/// Levels of lists and objects in JSON that a client, a guest or a model gives. What is stored of it stands some levels deeper, in events
/// and in rows, and is read by a parser that takes 127.
pub const DEPTH_MAX: usize = 64;
/// Levels of lists and objects in anything that is stored.
pub const STORED_DEPTH_MAX: usize = 120;

/// Why a text is not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It is nested too deep.
    #[error("it is nested deeper than {DEPTH_MAX} levels of lists and objects")]
    TooDeep,
}

/// Reads JSON from outside.
///
/// # Errors
/// It is not JSON, or nested deeper than [`DEPTH_MAX`].
pub fn parse(text: &str) -> Result<Value, NotTaken> {
    // Before it is parsed: a parser that gives up says less of it.
    if depth(text.as_bytes()) > DEPTH_MAX {
        return Err(NotTaken::TooDeep);
    }
    Ok(serde_json::from_str(text)?)
}

/// How deep lists and objects are nested in a JSON text; of a text that is not JSON, some number that is not too small.
#[must_use]
pub fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Writes whole numbers as integers, wherever they stand: `1.0` is `1`. Those beyond 2^53 stay as they are, being exact no more.
pub fn make_integers(value: &mut Value) {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX);
            if let Some(whole) = whole.and_then(|whole| format!("{whole:.0}").parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_integers),
        Value::Object(fields) => fields.values_mut().for_each(make_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings() {
        for (text, levels) in [("1", 0), ("[]", 1), (r#"{"a":[[1],[2]]}"#, 3), (r#"["[[[", "\"[[", "\\"]"#, 1), (r#"[[]], [[[ "#, 3)] {
            assert_eq!(depth(text.as_bytes()), levels, "{text}");
        }
    }

    #[test]
    fn what_is_taken_is_nested_so_deep_and_no_deeper() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        assert!(matches!(parse(&nested(DEPTH_MAX + 1)), Err(NotTaken::TooDeep)));
        assert!(matches!(parse(&nested(100_000)), Err(NotTaken::TooDeep)));
        assert!(matches!(parse("{"), Err(NotTaken::Malformed(_))));
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_was_written() {
        let mut value = serde_json::json!({ "index": 0.0, "more": [-2.0, 1.5, 1e300, -0.0], "text": "1.0" });
        make_integers(&mut value);
        assert_eq!(value, serde_json::json!({ "index": 0, "more": [-2, 1.5, 1e300, 0], "text": "1.0" }));
    }

    #[test]
    fn what_is_stored_deepest_can_be_read_again() {
        let text = "[".repeat(STORED_DEPTH_MAX) + &"]".repeat(STORED_DEPTH_MAX);
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        const { assert!(DEPTH_MAX + 16 < STORED_DEPTH_MAX) };
    }
}

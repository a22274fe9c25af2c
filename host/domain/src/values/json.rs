//! JSON from outside, beyond what plugins share with the host: numbers as they were written,
//! replies of models, and names of keys.

use serde_json::{Number, Value};
pub use shapes::json::{DEPTH_MAX, NotTaken, depth, parse};

/// Levels of lists and objects in anything that is stored.
pub const STORED_DEPTH_MAX: usize = 120;

/// Characters of the shortest fence around a block.
const FENCE_CHARS_MIN: usize = 3;
/// Reads JSON from outside as [`parse`] does, with every whole number as its sender wrote it. A
/// number beyond 64 bits becomes the text of its digits, so that an id never changes.
///
/// # Errors
/// As [`parse`].
pub fn parse_exact(text: &str) -> Result<Value, NotTaken> {
    let read = parse(text)?;
    exact(text).map_or(Ok(read), |text| parse(&text))
}

/// Returns a JSON text with quotes around the numbers that would lose digits; none without such
/// numbers.
fn exact(text: &str) -> Option<String> {
    let is_of_number = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '+' | '.');
    let mut exact = String::with_capacity(text.len());
    let mut is_other = false;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_bytes(rest),
            _ if is_of_number(first) => rest.find(|sign| !is_of_number(sign)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let quotes = if loses_digits(token) { "\"" } else { "" };
        is_other |= !quotes.is_empty();
        exact.extend([quotes, token, quotes]);
        rest = after;
    }
    is_other.then_some(exact)
}

/// Returns the bytes of the JSON string at the beginning of a text, quotes included.
fn string_bytes(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether a token is a whole number that changes on reading. A number with a fraction or
/// an exponent means the same to every reader: the nearest double.
fn loses_digits(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let read = is_whole.then(|| token.parse::<Number>().ok()).flatten();
    // Minus zero is no integer of 64 bits, and loses nothing.
    read.is_some_and(|read| read.is_f64()) && digits != "0"
}

/// Returns the document in a model's reply: without the thoughts before it, and without the one
/// fence around it. Models add both even if the prompt asks for JSON only. Any other text stays
/// unchanged.
#[must_use]
pub fn bare(reply: &str) -> &str {
    let text = reply.trim_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}');
    let answer = text
        .strip_prefix("<think>")
        .and_then(|rest| rest.split_once("</think>"))
        .map_or(text, |(_, answer)| answer.trim());
    fenced(answer).unwrap_or(answer)
}

/// Returns the content of a fenced block, if the text is exactly one.
fn fenced(text: &str) -> Option<&str> {
    let sign = text
        .chars()
        .next()
        .filter(|sign| matches!(sign, '`' | '~'))?;
    let inner = text.trim_start_matches(sign);
    let (fence, _) = text.split_at(text.len() - inner.len());
    let inner = inner
        .strip_suffix(fence)
        .filter(|_| fence.len() >= FENCE_CHARS_MIN)?;
    let is_word = |word: &str| word.chars().all(|sign| sign.is_ascii_alphanumeric());
    let block = match inner.split_once('\n') {
        Some((info, block)) if is_word(info.trim()) => block,
        _ => inner.strip_prefix("json").unwrap_or(inner),
    };
    let ends_before = block
        .lines()
        .any(|line| line.trim_start().starts_with(fence));
    (!ends_before).then(|| block.trim())
}

/// Returns whether lists and objects in a value are nested deeper than so many levels. Deeper
/// levels are not read.
#[must_use]
pub fn is_deeper(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(levels)) => items.iter().any(|value| is_deeper(value, levels)),
        (Value::Object(fields), Some(levels)) => {
            fields.values().any(|value| is_deeper(value, levels))
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
    }
}

/// Writes whole numbers as integers, at every level: `1.0` is `1`. Numbers beyond 2^53 stay
/// unchanged, because they are not exact.
pub fn make_integers(value: &mut Value) {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX);
            if let Some(whole) = whole.and_then(|whole| format!("{whole:.0}").parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_integers),
        Value::Object(fields) => fields.values_mut().for_each(make_integers),
        _ => {}
    }
}

/// Returns whether a field has its default value, so that it is not written.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// Returns a key of the configuration as the API names it: `tool_allowlist` for `toolAllowlist`.
#[must_use]
pub fn snake_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 4);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Returns a name of the API as the configuration writes it: `toolAllowlist` for `tool_allowlist`.
#[must_use]
pub fn camel_case(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    let mut is_first = false;
    for letter in name.chars() {
        match letter {
            '_' => is_first = true,
            letter if std::mem::take(&mut is_first) => key.push(letter.to_ascii_uppercase()),
            letter => key.push(letter),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_as_deep_as_its_text() {
        for (text, levels) in [("1", 0), ("[]", 1), (r#"{"a":[[1],[2]]}"#, 3)] {
            let value = serde_json::from_str(text).unwrap();
            assert!(!is_deeper(&value, levels), "{text}");
            assert!(levels == 0 || is_deeper(&value, levels - 1), "{text}");
        }
    }

    #[test]
    fn a_whole_number_keeps_its_digits_or_is_a_text_of_them() {
        for (text, expected) in [
            ("2512292042121000001", json!(2_512_292_042_121_000_001_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("0.1", json!(0.1)),
            ("1e5", json!(1e5)),
            ("1.50", json!(1.5)),
            ("0.30000000000000004", json!(0.300_000_000_000_000_04)),
            ("-0", json!(-0.0)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("-9223372036854775809", json!("-9223372036854775809")),
            ("1000000000000000000000", json!("1000000000000000000000")),
            // A fraction is the nearest double, as to every reader.
            ("0.10000000000000001", json!(0.1)),
            ("12345678901234567.89", json!(12_345_678_901_234_568.0)),
            (
                "123456789012345678901.5",
                json!(123_456_789_012_345_680_000.0),
            ),
            ("1e30", json!(1e30)),
            ("1e-400", json!(0.0)),
            (
                r#"{"a\"1":[123456789012345678901234567890, 7], "b": "98765432109876543210987"}"#,
                json!({ "a\"1": ["123456789012345678901234567890", 7], "b": "98765432109876543210987" }),
            ),
        ] {
            assert_eq!(parse_exact(text).unwrap(), expected, "{text}");
        }
        for wrong in [
            "01234567890123456789012",
            "{123456789012345678901234567890: 1}",
            "1234567890123456789012x",
            "[12345678901234567890123",
            "1e999",
        ] {
            assert!(parse_exact(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_was_written() {
        let mut value =
            serde_json::json!({ "index": 0.0, "more": [-2.0, 1.5, 1e300, -0.0], "text": "1.0" });
        make_integers(&mut value);
        assert_eq!(
            value,
            serde_json::json!({ "index": 0, "more": [-2, 1.5, 1e300, 0], "text": "1.0" })
        );
    }

    #[test]
    fn what_is_stored_deepest_can_be_read_again() {
        let text = "[".repeat(STORED_DEPTH_MAX) + &"]".repeat(STORED_DEPTH_MAX);
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        const { assert!(DEPTH_MAX + 16 < STORED_DEPTH_MAX) };
    }

    #[test]
    fn the_document_in_a_reply_is_found_behind_thoughts_and_in_one_fence() {
        for (reply, document) in [
            (" {\"a\": 1}\n", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("\u{feff}```\n[1]\n```\n", "[1]"),
            ("~~~JSON\r\n[1]\r\n~~~", "[1]"),
            ("```json {\"a\": 1}```", "{\"a\": 1}"),
            (
                "<think>\nhm {}\n</think>\n\n```json\n{\"a\": \"```\"}\n```",
                "{\"a\": \"```\"}",
            ),
            ("<think>hm</think>{}", "{}"),
            ("```\n1\n```\n```\n2\n```", "```\n1\n```\n```\n2\n```"),
            (
                "Here it is:\n```json\n{}\n```",
                "Here it is:\n```json\n{}\n```",
            ),
            ("<think>not closed {}", "<think>not closed {}"),
            ("``", "``"),
        ] {
            assert_eq!(bare(reply), document, "{reply:?}");
        }
    }

    #[test]
    fn a_key_of_the_configuration_has_its_name_in_the_api() {
        for (key, name) in [("toolAllowlist", "tool_allowlist"), ("stop", "stop")] {
            assert_eq!(
                (snake_case(key), camel_case(name)),
                (name.into(), key.into())
            );
        }
    }
}

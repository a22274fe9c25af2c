//! Tests of JSON from outside.

use super::*;
use serde_json::json;

#[test]
fn brackets_count_outside_of_strings() {
    for (text, levels) in [
        ("1", 0),
        ("[]", 1),
        (r#"{"a":[[1],[2]]}"#, 3),
        (r#"["[[[", "\"[[", "\\"]"#, 1),
        (r#"[[]], [[[ "#, 3),
    ] {
        assert_eq!(depth(text.as_bytes()), levels, "{text}");
    }
}

#[test]
fn a_value_is_as_deep_as_its_text() {
    for (text, levels) in [("1", 0), ("[]", 1), (r#"{"a":[[1],[2]]}"#, 3)] {
        let value = serde_json::from_str(text).unwrap();
        assert!(!is_deeper(&value, levels), "{text}");
        assert!(levels == 0 || is_deeper(&value, levels - 1), "{text}");
    }
}

#[test]
fn what_is_taken_is_nested_so_deep_and_no_deeper() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    assert!(matches!(
        parse(&nested(DEPTH_MAX + 1)),
        Err(NotTaken::TooDeep)
    ));
    assert!(matches!(parse(&nested(100_000)), Err(NotTaken::TooDeep)));
    assert!(matches!(parse("{"), Err(NotTaken::Malformed(_))));
}

#[test]
fn an_object_has_each_key_once() {
    for (text, key) in [
        (r#"{"a":1,"a":2}"#, "a"),
        (r#"[{"b":{"a":1,"b":2,"\u0061":1}}]"#, "a"),
        (r#"{"":1,"":1}"#, ""),
        ("{\"a\u{202e}\":1,\"a\u{202e}\":1}", "a\\u{202e}"),
    ] {
        assert!(
            matches!(parse(text), Err(NotTaken::Duplicate { key: found }) if found == key),
            "{text}"
        );
    }
    for text in [
        r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#,
        r#" [null, true, -1, 18446744073709551615, 1.5, 1e300, -0.0, "\u00e9\n", {}, []] "#,
        "1",
    ] {
        assert_eq!(
            parse(text).unwrap(),
            serde_json::from_str::<Value>(text).unwrap(),
            "{text}"
        );
    }
    for text in ["", "[1] 2", "{\"a\":}", "nul"] {
        assert!(matches!(parse(text), Err(NotTaken::Malformed(_))), "{text}");
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

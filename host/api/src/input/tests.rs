//! Tests of the problems reported for bodies, queries and ids that are wrong.

use super::{existing, parse, query, target};
use broker::Target;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    inner: Vec<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Inner {
    count: u32,
    choice: Option<Choice>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
enum Choice {
    Plain,
    Wrapped(Box<Inner>),
    Named { inner: Box<Inner> },
}

#[test]
fn what_is_wrong_with_a_body_is_told_with_its_field() {
    for (body, status, code, field) in [
        (
            r#"{"inner":[{"count":1},{"cuont":2}]}"#,
            422,
            "UNKNOWN_FIELD",
            Some("/inner/1/cuont"),
        ),
        (
            r#"{"inner":[{}]}"#,
            422,
            "MISSING_FIELD",
            Some("/inner/0/count"),
        ),
        (
            r#"{"inner":[{"count":"x"}]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0/count"),
        ),
        (
            r#"{"inner":[],"in/ner":1}"#,
            422,
            "UNKNOWN_FIELD",
            Some("/in~1ner"),
        ),
        ("[]", 422, "INVALID_FIELD", None),
        (r#"[[{"count":1}]]"#, 422, "INVALID_FIELD", None),
        (
            r#"{"inner":[[1,null]]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0"),
        ),
        (
            r#"{"inner":[{"count":1,"choice":{"wrapped":[1,null]}}]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0/choice/wrapped"),
        ),
        (
            r#"{"inner":[{"count":1,"choice":{"named":[{"count":1}]}}]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0/choice/named"),
        ),
        (
            r#"{"inner":[{"count":1,"choice":{"named":{"inner":[1,null]}}}]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0/choice/named/inner"),
        ),
        (
            r#"{"inner":[{"count":1,"count":2}]}"#,
            422,
            "INVALID_FIELD",
            Some("/inner/0/count"),
        ),
        (r#"{"inner":[}"#, 400, "MALFORMED_JSON", None),
        (r#"{"inner":[]} x"#, 400, "MALFORMED_JSON", None),
        ("", 400, "MALFORMED_JSON", None),
        ("\"\u{0}", 400, "MALFORMED_JSON", None),
    ] {
        let problem = parse::<Outer>(body.as_bytes()).unwrap_err();
        assert_eq!(
            (
                problem.code.status(),
                problem.code.as_str(),
                problem.field.as_deref()
            ),
            (status, code, field),
            "{body}: {problem:?}"
        );
    }
    let deep = format!("{}0{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(
        parse::<serde_json::Value>(deep.as_bytes())
            .unwrap_err()
            .code,
        "NESTED_TOO_DEEP"
    );
}

#[test]
fn an_agent_is_named_by_uuid_or_path_and_a_definition_only_where_sessions_begin() {
    assert!(matches!(
        target("7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f"),
        Target::Agent(_)
    ));
    assert!(matches!(target("/local/agent/assistant"), Target::Path(_)));
    assert!(matches!(target("assistant"), Target::Definition(_)));
    assert_eq!(existing("assistant").unwrap_err().code, "AGENT_NOT_FOUND");
}

#[test]
fn what_is_sound_is_read_whatever_it_is_nested_in() {
    let read = parse::<Outer>(
        br#"{"inner":[{"count":1,"choice":null},{"count":2,"choice":"plain"},{"count":3,"choice":{"wrapped":{"count":4}}},
            {"count":5,"choice":{"named":{"inner":{"count":6,"choice":"plain"}}}}]}"#,
    );
    assert_eq!(read.unwrap().inner.len(), 4);
    let value =
        parse::<serde_json::Value>(br#"{"a":[1,-2,3.5,"x",null,true,[],{"b":{}}]}"#).unwrap();
    assert_eq!(
        value,
        serde_json::json!({ "a": [1, -2, 3.5, "x", null, true, [], { "b": {} }] })
    );
}

#[test]
fn what_is_wrong_with_a_query_is_told_with_its_parameter() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Page {
        limit: usize,
    }
    for (text, field) in [
        ("limit=x", "query:limit"),
        ("limti=1", "query:limti"),
        ("", "query:limit"),
        ("limit=1&limit=2", "query:limit"),
    ] {
        let problem = query::<Page>(&format!("/?{text}").parse().unwrap()).unwrap_err();
        assert_eq!(
            (
                problem.code.status(),
                problem.code.as_str(),
                problem.field.as_deref()
            ),
            (400, "INVALID_QUERY", Some(field)),
            "{problem:?}"
        );
    }
    assert_eq!(
        query::<Page>(&"/?limit=7".parse().unwrap()).unwrap().limit,
        7
    );
    for (text, says) in [
        ("x", "limit: it must be a whole number"),
        ("", "limit: it is empty, and must be a whole number"),
        (
            "99999999999999999999999",
            "limit: it is a larger number than any that is taken",
        ),
    ] {
        let problem = query::<Page>(&format!("/?limit={text}").parse().unwrap()).unwrap_err();
        assert_eq!(problem.detail, says);
    }
}

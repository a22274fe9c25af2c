//! Tests of templates.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn fill(template: &str, payload: &serde_json::Value) -> Result<String, TemplateError> {
    let headers = [
        ("x-event".to_owned(), "push".to_owned()),
        ("x-event".to_owned(), "second".to_owned()),
    ];
    let query = [("page".to_owned(), "2".to_owned())];
    render(
        template,
        &Variables {
            now: Timestamp(1_700_000_000_123),
            path: "a/b",
            agent_id: "agent-1",
            trigger_id: "hub",
            headers: &headers,
            query: &query,
            payload,
        },
    )
}

#[test]
fn variables_are_filled_in() {
    let payload = json!({
        "a": { "b": [{ "c": "deep" }, 2] },
        "z": 1, "y": true, "n": null, "f": 1.5, "big": u64::MAX,
        "with-hyphen": "h",
        "text": "<b>{{now}} & \"x\"</b>",
        "items": [1, "two", null],
    });
    for (template, expected) in [
        ("", ""),
        ("plain } { text\n", "plain } { text\n"),
        ("{{now}}", "2023-11-14T22:13:20.123Z"),
        (
            "{{ path }}|{{agent.id}}|{{ trigger.id }}",
            "a/b|agent-1|hub",
        ),
        (
            "{{headers.x_event}} {{headers[\"x-event\"]}} {{headers['X-Event']}}",
            "push push push",
        ),
        ("{{query.page}}{{query.other}}", "2"),
        ("{{payload.a.b[0].c}}", "deep"),
        ("{{payload[\"a\"]['b'][1]}}", "2"),
        ("{{payload.a}}", r#"{"b":[{"c":"deep"},2]}"#),
        ("{{payload.items}}", r#"[1,"two",null]"#),
        (
            "{{payload.z}} {{payload.y}} {{payload.n}}|{{payload.f}}",
            "1 true |1.5",
        ),
        ("{{payload.big}}", "18446744073709551615"),
        ("{{payload[\"with-hyphen\"]}}", "h"),
        ("{{payload.text}}", "<b>{{now}} & \"x\"</b>"),
        (
            "[{{payload.missing}}{{payload.missing.deeper[3].x}}{{payload.z.w}}]",
            "[]",
        ),
        ("{{payload.items[7]}}", ""),
        ("{{payload.items.length}}{{payload.keys}}", ""),
        ("{{headers}}", r#"{"x-event":"push"}"#),
        ("{{query}}", r#"{"page":"2"}"#),
    ] {
        assert_eq!(
            fill(template, &payload).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
    assert_eq!(fill("{{payload}}", &json!("text")).as_deref(), Ok("text"));
    assert_eq!(fill("{{payload.a}}", &json!([1])).as_deref(), Ok(""));
}

#[test]
fn nothing_of_the_template_language_is_there_but_variables() {
    for template in [
        "{{",
        "{{}}",
        "{{ now",
        "{{nothing}}",
        "{{payload.a | upper}}",
        "{{payload.a()}}",
        "{{range(1)}}",
        "{{1 + 1}}",
        "{{'x' * 1000000}}",
        "{{payload.a ~ payload.b}}",
        "{{payload.a if payload.b}}",
        "{{[1, 2]}}",
        "{{payload[payload.a]}}",
        "{{payload[-1]}}",
        "{{payload[1:2]}}",
        "{{payload.a.}}",
        "{{payload..a}}",
        "{{payload.a[}}",
        "{{payload['a}}",
        "{{payload['\\x41']}}",
        "{{headers.x-event}}",
        "{{now.year}}",
        "{{path[0]}}",
        "{{agent}}",
        "{{agent.name}}",
        "{{trigger.id.x}}",
        "{{headers.a.b}}",
        "{{self}}",
        "{{loop.index}}",
        "{{debug()}}",
        "{{- now -}}",
        "{% for x in payload %}{% endfor %}",
        "{% include 'x' %}",
        "{% set x = 1 %}",
        "{# a comment #}",
        "{{now}} {% raw %}",
    ] {
        let error = fill(template, &json!({})).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, TemplateError::Malformed(_)),
            "{template}: {text}"
        );
        assert!(
            text.contains("`message`") && text.contains("{{payload.a.b[0]}}"),
            "{text}"
        );
        assert!(check_template("message", template).is_err(), "{template}");
    }
}

#[test]
fn a_header_with_a_hyphen_is_explained() {
    let fault = check_template("message", "{{headers.x-event}}").unwrap_err();
    assert!(
        fault.to_string().contains("headers[\"x-event\"]"),
        "{fault}"
    );
}

#[test]
fn a_template_and_its_message_have_limits() {
    let long = json!("x".repeat(MESSAGE_BYTES_MAX));
    assert_eq!(fill("{{payload}}", &long).unwrap().len(), MESSAGE_BYTES_MAX);
    assert_eq!(fill("{{payload}}.", &long), Err(TemplateError::TooLong));
    let list = json!(["x".repeat(MESSAGE_BYTES_MAX)]);
    assert_eq!(fill("{{payload}}", &list), Err(TemplateError::TooLong));
    assert!(fill(&"x".repeat(TEMPLATE_BYTES_MAX), &json!(1)).is_ok());
    assert!(fill(&"x".repeat(TEMPLATE_BYTES_MAX + 1), &json!(1)).is_err());
    let deep = "{{payload.a.b.c[0]}}".repeat(256);
    assert!(fill(&deep, &json!({ "a": { "b": { "c": ["x"] } } })).is_ok());
    assert!(fill(&"{{now}}".repeat(257), &json!(1)).is_err());
    let path = format!("{{{{payload{}}}}}", ".a".repeat(8_000));
    assert_eq!(fill(&path, &json!({})).as_deref(), Ok(""));
}

proptest! {
    /// A template that was checked is filled in, whatever the payload.
    #[test]
    fn a_checked_template_does_not_fail(
        template in "([a-z{}%# ]|\\{\\{(now|path|agent\\.id|payload(\\.[a-c]|\\[[0-2]\\]){0,3})\\}\\}){0,20}",
        payload in prop_oneof![
            Just(json!({ "a": { "b": [1, { "c": null }] } })),
            Just(json!([[1, 2], { "a": true }])),
            Just(json!("text")),
            Just(json!(null)),
        ],
    ) {
        let checked = check_template("message", &template);
        prop_assert_eq!(checked.is_ok(), fill(&template, &payload).is_ok());
    }

    #[test]
    fn text_without_braces_stays_as_it_is(text in "[^{}]{0,200}") {
        prop_assert_eq!(fill(&text, &json!({})), Ok(text));
    }
}

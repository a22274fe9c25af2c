//! Tests of CloudEvents in both modes.

use super::*;
use serde_json::json;

fn read(headers: &[(&str, &str)], body: &str) -> Result<Option<CloudEvent>, CloudEventError> {
    let headers: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    CloudEvent::read(&WebhookRequest {
        path: "",
        headers: &headers,
        query: &[],
        body: body.as_bytes(),
    })
}

fn structured_event(event: &Value) -> Result<Option<CloudEvent>, CloudEventError> {
    let media_type = "application/cloudevents+json; charset=UTF-8";
    read(&[("Content-Type", media_type)], &event.to_string())
}

/// An event with some members besides those that every one has.
fn with(members: &Value) -> Value {
    let mut event = json!({ "specversion": "1.0", "id": "7", "source": "/s", "type": "t" });
    let all = event.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    event
}

#[test]
fn both_modes_read_as_the_same_event() {
    let binary = read(
        &[
            ("CE-SpecVersion", "1.0"),
            ("ce-id", "7"),
            ("ce-source", "/s"),
            ("ce-type", "t"),
            ("ce-time", "2026-01-01T00:00:00Z"),
            ("ce-subject", "a%20%C3%A9"),
            ("Content-Type", "application/json"),
        ],
        r#"{"a":1}"#,
    );
    let structured = structured_event(&with(&json!({
        "time": "2026-01-01T00:00:00Z",
        "subject": "a é",
        "datacontenttype": "application/json",
        "data": { "a": 1 },
    })));
    let event = binary.unwrap().unwrap();
    assert_eq!(structured.unwrap().unwrap(), event);
    assert_eq!(event.data, json!({ "a": 1 }));
    assert_eq!(event.key(), "/s 7");
    let headers: Vec<(String, String)> = event.headers().collect();
    assert!(
        headers.contains(&("ce-subject".to_owned(), "a é".to_owned())),
        "{headers:?}"
    );
}

#[test]
fn data_is_what_it_says() {
    for (members, expected) in [
        (json!({}), json!(null)),
        (json!({ "data": "text" }), json!("text")),
        (json!({ "data": [1] }), json!([1])),
        (json!({ "data_base64": "eyJhIjoxfQ==" }), json!("{\"a\":1}")),
        (
            json!({ "data_base64": "eyJhIjoxfQ==", "datacontenttype": "application/json" }),
            json!({ "a": 1 }),
        ),
    ] {
        let event = structured_event(&with(&members)).unwrap().unwrap();
        assert_eq!(event.data, expected, "{members}");
    }
    let numbers = structured_event(&with(&json!({ "n": 5, "flag": true, "none": null })));
    let attributes = numbers.unwrap().unwrap().attributes;
    assert_eq!(attributes.get("n").map(String::as_str), Some("5"));
    assert_eq!(attributes.get("flag").map(String::as_str), Some("true"));
    assert!(!attributes.contains_key("none"));
}

#[test]
fn a_call_without_a_version_is_no_event() {
    assert!(read(&[("ce-id", "7")], "{}").unwrap().is_none());
    assert!(read(&[], "{}").unwrap().is_none());
}

#[test]
fn an_event_that_is_none_is_refused() {
    for members in [
        json!({ "specversion": "0.3" }),
        json!({ "specversion": null }),
        json!({ "id": "" }),
        json!({ "source": null }),
        json!({ "type": "" }),
        json!({ "time": "yesterday" }),
        json!({ "Upper": "x" }),
        json!({ "ext": { "a": 1 } }),
        json!({ "ext": "a\u{0}" }),
        json!({ "data": 1, "data_base64": "AA==" }),
        json!({ "data_base64": "?" }),
        json!({ "data_base64": "/w==" }),
        json!({ "data_base64": 1 }),
        json!({ "datacontenttype": 1 }),
        json!({ "ext": "x".repeat(5_000) }),
    ] {
        let read = structured_event(&with(&members));
        assert!(read.is_err(), "{members}: {read:?}");
    }
    for (media_type, body) in [
        ("application/cloudevents+json", "[]"),
        ("application/cloudevents+json", "{"),
        ("application/cloudevents-batch+json", "[]"),
        ("application/cloudevents+avro", ""),
    ] {
        let read = read(&[("Content-Type", media_type)], body);
        assert!(read.is_err(), "{media_type} {body}");
    }
    let twice = read(
        &[("ce-specversion", "1.0"), ("ce-id", "1"), ("CE-ID", "2")],
        "",
    );
    assert!(twice.is_err());
    let undecodable = read(&[("ce-specversion", "1.0"), ("ce-id", "%F")], "");
    assert!(undecodable.is_err());
}

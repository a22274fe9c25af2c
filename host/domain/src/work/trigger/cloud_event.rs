//! CloudEvents 1.0 in webhooks: in the binary mode, with attributes as headers, and in the
//! structured mode, as one JSON object.

use super::{WebhookRequest, is_json, percent_decoded, read_body};
use crate::values::json::{self, NotTaken};
use crate::values::shown::escaped;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The media type of one event in the structured mode.
const STRUCTURED: &str = "application/cloudevents+json";
/// The beginning of the media types of events in other forms.
const OTHERS: &str = "application/cloudevents";
/// The version that is read.
const VERSION: &str = "1.0";
/// Bytes of an attribute's name.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of an attribute's value.
const VALUE_BYTES_MAX: usize = 4_096;
/// Attributes of one event.
const ATTRIBUTES_MAX: usize = 48;
/// Attributes that every event has.
const NEEDED: [&str; 3] = ["id", "source", "type"];

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvent {
    /// Its attributes by name, `id`, `source` and `type` among them; without `datacontenttype`.
    pub attributes: BTreeMap<String, String>,
    /// Its content: null if it has none.
    pub data: Value,
}

/// The reason why a call that claims to be an event is none.
#[derive(Debug, thiserror::Error)]
pub enum CloudEventError {
    /// Its form is unsupported.
    #[error("`{0}` is not read; send one event at a time, as `{STRUCTURED}` or with `ce-` headers")]
    Form(String),
    /// It is no JSON.
    #[error("the event is no JSON that can be taken")]
    Json(#[from] NotTaken),
    /// It is no JSON object.
    #[error("the event is no JSON object")]
    NotAnObject,
    /// Its version is unsupported.
    #[error("the event's specversion is `{0}`; `{VERSION}` is read")]
    Version(String),
    /// An attribute is missing or empty.
    #[error("the event has no `{0}`")]
    Missing(&'static str),
    /// An attribute is invalid.
    #[error("the event's attribute `{0}` is not as CloudEvents have it")]
    Attribute(String),
    /// There are too many attributes.
    #[error("the event has more than {ATTRIBUTES_MAX} attributes")]
    Attributes,
    /// Its data cannot be read.
    #[error("the event's data is not what it says: {0}")]
    Data(&'static str),
}

impl CloudEvent {
    /// Reads the event of a call; none if it is no event.
    ///
    /// # Errors
    /// It claims to be a CloudEvent, and is not.
    pub fn read(request: &WebhookRequest<'_>) -> Result<Option<Self>, CloudEventError> {
        match request.media_type().as_deref() {
            Some(STRUCTURED) => structured(request.body).map(Some),
            Some(other) if other.starts_with(OTHERS) => Err(CloudEventError::Form(
                other.chars().take(VALUE_BYTES_MAX).collect(),
            )),
            _ => binary(request),
        }
    }

    /// Returns an id that is unique to the event, derived from source and id.
    #[must_use]
    pub fn key(&self) -> String {
        let attribute = |name: &str| self.attributes.get(name).map_or("", String::as_str);
        format!("{} {}", attribute("source"), attribute("id"))
    }

    /// Returns its attributes as headers, as in the binary mode.
    pub fn headers(&self) -> impl Iterator<Item = (String, String)> {
        let attributes = self.attributes.iter();
        attributes.map(|(name, value)| (format!("ce-{name}"), value.clone()))
    }

    fn checked(attributes: BTreeMap<String, String>, data: Value) -> Result<Self, CloudEventError> {
        let attribute = |name: &str| attributes.get(name).map_or("", String::as_str);
        let version = attribute("specversion");
        if version != VERSION {
            return Err(CloudEventError::Version(version.chars().take(16).collect()));
        }
        if let Some(missing) = NEEDED.into_iter().find(|name| attribute(name).is_empty()) {
            return Err(CloudEventError::Missing(missing));
        }
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(CloudEventError::Attributes);
        }
        let time = attributes.get("time");
        if time.is_some_and(|time| time.parse::<jiff::Timestamp>().is_err()) {
            return Err(CloudEventError::Attribute("time".to_owned()));
        }
        let wrong = attributes.iter().find(|(name, value)| {
            !is_attribute_name(name)
                || value.len() > VALUE_BYTES_MAX
                || value.contains(char::is_control)
        });
        match wrong {
            Some((name, _)) => Err(CloudEventError::Attribute(escaped(name))),
            None => Ok(Self { attributes, data }),
        }
    }
}

fn is_attribute_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// Reads the attributes from headers and the data from the body.
fn binary(request: &WebhookRequest<'_>) -> Result<Option<CloudEvent>, CloudEventError> {
    let mut attributes = BTreeMap::new();
    for (name, value) in request.headers {
        let name = name.to_ascii_lowercase();
        let Some(name) = name.strip_prefix("ce-") else {
            continue;
        };
        let read = percent_decoded(value).and_then(|bytes| String::from_utf8(bytes).ok());
        let value = read.ok_or_else(|| CloudEventError::Attribute(name.to_owned()))?;
        if attributes.insert(name.to_owned(), value).is_some() {
            return Err(CloudEventError::Attribute(name.to_owned()));
        }
    }
    if !attributes.contains_key("specversion") {
        return Ok(None);
    }
    let data = if request.body.is_empty() {
        Value::Null
    } else {
        read_body(request.body, request.content_type())
            .map_err(|_| CloudEventError::Data("the body is not of its content type"))?
    };
    CloudEvent::checked(attributes, data).map(Some)
}

/// Reads an event from one JSON object.
fn structured(body: &[u8]) -> Result<CloudEvent, CloudEventError> {
    let text = std::str::from_utf8(body).map_err(|_| CloudEventError::NotAnObject)?;
    let Value::Object(mut members) = json::parse_exact(text)? else {
        return Err(CloudEventError::NotAnObject);
    };
    let media_type = match members.remove("datacontenttype") {
        None | Some(Value::Null) => None,
        Some(Value::String(media_type)) => Some(media_type.to_ascii_lowercase()),
        Some(_) => return Err(CloudEventError::Attribute("datacontenttype".to_owned())),
    };
    let data = structured_data(&mut members, media_type.as_deref())?;
    let mut attributes = BTreeMap::new();
    for (name, value) in members {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => value,
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(CloudEventError::Attribute(name));
            }
        };
        attributes.insert(name, value);
    }
    CloudEvent::checked(attributes, data)
}

fn structured_data(
    members: &mut Map<String, Value>,
    media_type: Option<&str>,
) -> Result<Value, CloudEventError> {
    match (members.remove("data"), members.remove("data_base64")) {
        (data, None) => Ok(data.unwrap_or(Value::Null)),
        (Some(_), Some(_)) => Err(CloudEventError::Data("it has data and data_base64")),
        (None, Some(Value::String(encoded))) => {
            let bytes = BASE64
                .decode(encoded)
                .map_err(|_| CloudEventError::Data("data_base64 is no base64"))?;
            let essence = media_type
                .map(|media_type| media_type.split(';').next().unwrap_or_default().trim());
            let media_type = essence.filter(|media_type| is_json(media_type));
            read_body(&bytes, media_type.or(Some("text/plain")))
                .map_err(|_| CloudEventError::Data("data_base64 is neither JSON nor text"))
        }
        (None, Some(_)) => Err(CloudEventError::Data("data_base64 is no text")),
    }
}

#[cfg(test)]
mod tests {
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
}

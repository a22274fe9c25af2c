//! The faults of a request, one at a time: ids, queries, headers, and bodies as their schemas
//! define them.

use super::document::{Body, Operation, Property};
use super::{NOBODY, Stage, requests};
use domain::user::UserId;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A name that no endpoint knows.
pub(super) const SURPRISE: &str = "surprise";
/// Characters of a text that is too long for a query or an id. It is short enough for a request's
/// head.
const LONG_CHARS: usize = 10_000;

/// The required response to a bad request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// A problem: it is against what is documented.
    BeRefused,
    /// A problem, or an answer: it is odd, and may mean something.
    BeAnswered,
}

/// A bad request.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// A description of its fault.
    pub(super) what: String,
    pub(super) path: String,
    pub(super) must: Must,
    headers: Vec<(String, Vec<u8>)>,
    content_type: Option<&'static str>,
    body: Option<Vec<u8>>,
}

impl Case {
    /// The request as it should be: the others are made from it.
    fn good(stage: &Stage, operation: &Operation) -> Self {
        Self {
            what: "nothing is wrong with it".to_owned(),
            path: requests::path(stage, operation),
            must: Must::BeRefused,
            headers: Vec::new(),
            content_type: Some(if operation.takes_bytes {
                "text/plain"
            } else {
                "application/json"
            }),
            body: if operation.takes_bytes {
                Some(requests::bytes(operation).to_vec())
            } else {
                requests::body(stage, operation).map(|body| body.to_string().into_bytes())
            },
        }
    }

    /// The same request on another path.
    fn on(&self, what: String, path: String) -> Self {
        Self {
            what,
            path,
            ..self.clone()
        }
    }

    /// The same request with a query, beside what it needs of other names.
    fn asking(&self, query: &str, must: Must) -> Self {
        let shown: String = query.chars().take(80).collect();
        let (path, needed) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let name = |query: &str| query.split('=').next().map(str::to_owned);
        let others = needed
            .split('&')
            .filter(|other| !other.is_empty() && name(other) != name(query));
        let query = std::iter::once(query)
            .chain(others)
            .collect::<Vec<_>>()
            .join("&");
        Self {
            must,
            ..self.on(format!("the query `{shown}`"), format!("{path}?{query}"))
        }
    }

    /// The same request with another body.
    pub(super) fn with_body(&self, what: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            what: what.to_owned(),
            body: Some(body.into()),
            ..self.clone()
        }
    }

    /// The same request with its body under another media type.
    pub(super) fn of_type(&self, content_type: Option<&'static str>) -> Self {
        Self {
            what: format!("the content type {content_type:?}"),
            content_type,
            ..self.clone()
        }
    }

    /// Builds the request as one who may make it sends it.
    pub(super) fn request(&self, stage: &Stage, operation: &Operation) -> RequestBuilder {
        let mut request = stage.request(operation, &self.path);
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_slice());
        }
        let Some(body) = &self.body else {
            return request;
        };
        if let Some(content_type) = self.content_type {
            request = request.header("content-type", content_type);
        }
        request.body(body.clone())
    }
}

/// Everything that an endpoint must not take, or at least must not break at.
pub(super) fn all(stage: &Stage, operation: &Operation) -> Vec<Case> {
    let good = Case::good(stage, operation);
    let mut cases = ids(stage, operation, &good);
    cases.extend(queries(operation, &good));
    cases.extend(headers(operation, &good));
    if operation.takes_bytes {
        cases.extend(of_bytes(&good, operation.path.ends_with("/import")));
    }
    if let (Some(body), Some(value)) = (&operation.body, requests::body(stage, operation)) {
        cases.extend(whole(body, &good, &value));
        cases.extend(
            body.properties
                .iter()
                .flat_map(|property| of_property(property, &good, &value)),
        );
    }
    cases
}

/// Ids of nothing, and what is no id.
fn ids(stage: &Stage, operation: &Operation, good: &Case) -> Vec<Case> {
    let digest = "ab".repeat(32);
    let long = "a".repeat(LONG_CHARS);
    let mut cases = Vec::new();
    // Whoever a service may know is a user, and nobody has a list of them.
    let is_anybody = |name: &str, text: &str| {
        name == "user"
            && operation.path.starts_with("/api/users/")
            && text.parse::<UserId>().is_ok()
    };
    for name in &operation.ids {
        for text in [
            NOBODY,
            &digest,
            "not-an-id",
            "-1",
            "%20",
            "..%2f",
            "%00",
            "%ff",
            "%2Flocal%2Fagent%2Fnobody",
            &long,
        ] {
            if is_anybody(name, text) {
                continue;
            }
            let shown: String = text.chars().take(80).collect();
            cases.push(good.on(
                format!("`{shown}` for {{{name}}}"),
                requests::path_with(stage, operation, name, text),
            ));
        }
    }
    let has = |name: &str| operation.ids.iter().any(|id| id == name);
    if has("id") && has("sid") {
        let elsewhere = if good.path.contains(stage.asking.id()) {
            stage.chatting.id()
        } else {
            stage.asking.id()
        };
        cases.push(good.on(
            "the session of another agent".to_owned(),
            requests::path_with(stage, operation, "sid", elsewhere),
        ));
    }
    cases
}

/// Parameters that are none of theirs, twice there or unknown.
fn queries(operation: &Operation, good: &Case) -> Vec<Case> {
    let inspections = operation.method == Method::GET;
    let long = "a".repeat(LONG_CHARS);
    let mut cases = Vec::new();
    for query in &operation.queries {
        let name = &query.name;
        let is_text = query.shape.takes("string") && !query.shape.is_enum;
        for text in ["abc", "-1", "", "1.5", &"9".repeat(40), "%00", "%ff", &long] {
            let must = match (is_text, inspections) {
                (false, _) => Must::BeRefused,
                (true, true) => Must::BeAnswered,
                // What people write may be anything but as long as this; where something changes,
                // the rest would be taken.
                (true, false) if text.len() == LONG_CHARS => Must::BeRefused,
                (true, false) => continue,
            };
            cases.push(good.asking(&format!("{name}={text}"), must));
        }
        if query.shape.takes("integer") {
            // Zero, and the ends of what the host counts in.
            for text in [
                "0",
                "9223372036854775807",
                "9223372036854775808",
                "18446744073709551615",
            ] {
                cases.push(good.asking(&format!("{name}={text}"), Must::BeAnswered));
            }
        }
        if is_text && inspections {
            cases.push(good.asking(&format!("{name}={NOBODY}"), Must::BeAnswered));
        }
        cases.push(good.asking(&format!("{name}=1&{name}=1"), Must::BeRefused));
        if query.is_required {
            // A name that nobody knows in the place of it would be another fault.
            let path = good.path.split('?').next().unwrap_or_default().to_owned();
            cases.push(good.on(format!("no query `{name}`"), path));
        }
    }
    // Where no query is documented none is read, and what changes something would be taken.
    match (
        operation.queries.is_empty() || operation.is_deprecated,
        inspections,
    ) {
        (false, _) => cases.push(good.asking(&format!("{SURPRISE}=1"), Must::BeRefused)),
        (true, true) => cases.push(good.asking(&format!("{SURPRISE}=1"), Must::BeAnswered)),
        (true, false) => {}
    }
    cases
}

/// Headers that are not what they are said to be.
fn headers(operation: &Operation, good: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for name in &operation.headers {
        let bad: Vec<Vec<u8>> = match name.as_str() {
            "Idempotency-Key" => vec![vec![b'k'; 300], Vec::new(), vec![0xe9]],
            "Last-Event-ID" => {
                let numbers = ["garbage", "-1", "1.0", "18446744073709551616"];
                numbers
                    .map(|text| text.as_bytes().to_vec())
                    .into_iter()
                    .chain([vec![0xe9]])
                    .collect()
            }
            _ => panic!("{operation}: say here what is wrong as `{name}`"),
        };
        for value in bad {
            let what = format!("the header {name}: `{}`", String::from_utf8_lossy(&value));
            cases.push(Case {
                what,
                headers: vec![(name.clone(), value)],
                ..good.clone()
            });
        }
    }
    cases
}

/// Lists in each other: more than the parser follows.
const LISTS: usize = 200;
/// Characters of a text that is longer than any text may be.
const TEXT_CHARS: usize = (1 << 20) + 1;
/// Bytes of a body that is longer than any body may be.
const BODY_BYTES: usize = (2 << 20) + 1;
/// Bytes of a file that is longer than any file may be.
const FILE_BYTES: usize = (10 << 20) + 1;
/// Bytes of a session's file that is longer than any may be.
const TRANSCRIPT_BYTES: usize = (32 << 20) + 1;
/// Fields of free text, which may have any characters in it.
const WORDS: [&str; 7] = [
    "content",
    "description",
    "message",
    "reason",
    "system_prompt",
    "system_prompt_override",
    "text",
];

/// Returns the bad variants of a body that may be any bytes: of its length and of its media type.
pub(super) fn of_bytes(good: &Case, is_transcript: bool) -> Vec<Case> {
    let types = ["nonsense", "", "text/", "a b/c", "text/plain, text/html"];
    let mut cases: Vec<Case> = types
        .into_iter()
        .map(|content_type| good.of_type(Some(content_type)))
        .collect();
    let bytes = if is_transcript {
        TRANSCRIPT_BYTES
    } else {
        FILE_BYTES
    };
    cases.push(good.with_body("a file that is too long", vec![0; bytes]));
    if is_transcript {
        let bad = [
            "",
            "nope",
            "\0",
            "[]",
            "{}",
            "{\"type\":\"session\",\"version\":3}",
            "{\"type\":\"user\"}",
        ];
        cases.extend(bad.map(|text| good.with_body("a file that is no session", text)));
    }
    cases
}

/// Returns the bad variants of a body as a whole. `value` is the one that would be taken.
pub(super) fn whole(body: &Body, good: &Case, value: &Value) -> Vec<Case> {
    let text = value.to_string();
    let nested = lists().to_string();
    let mut cases = vec![
        good.with_body(
            "a body that is cut short",
            &text.as_bytes()[..text.len() - 1],
        ),
        good.with_body("a body and something behind it", format!("{text} x")),
        good.with_body("a word for a body", "nope"),
        good.with_body("a zero byte for a body", "\0"),
        good.with_body("a body that is not UTF-8", &b"{\"\xff\":1}"[..]),
        good.with_body("a list of the body", json!([value]).to_string()),
        good.with_body("an empty list for a body", "[]"),
        good.with_body("text for a body", "\"x\""),
        good.with_body("a number for a body", "7"),
        good.with_body("200 lists in each other for a body", nested),
        good.with_body("a body that is too long", " ".repeat(BODY_BYTES)),
        good.of_type(None),
        good.of_type(Some("text/plain")),
        good.of_type(Some("application/x-www-form-urlencoded")),
    ];
    // A body that may be missing may be `null`.
    if body.is_required {
        cases.push(good.with_body("no body", ""));
        cases.push(good.with_body("null for a body", "null"));
    }
    if body.is_closed {
        cases.push(good.with_body("an unknown property", with(value, SURPRISE, "1")));
    }
    cases
}

/// Returns the bad variants of one property of a body.
pub(super) fn of_property(property: &Property, good: &Case, value: &Value) -> Vec<Case> {
    let name = property.name.as_str();
    let shape = &property.shape;
    let mut cases = Vec::new();
    let mut put = |what: &str, text: &str| {
        cases.push(good.with_body(&format!("`{name}`: {what}"), with(value, name, text)))
    };
    for (kind, unknown_sender) in shape.not_taken() {
        put(
            &format!("{kind}, which it is not"),
            &unknown_sender.to_string(),
        );
    }
    for (kind, unknown_sender) in shape.items.iter().flat_map(|items| items.not_taken()) {
        put(
            &format!("a list of {kind}, which is not in it"),
            &json!([unknown_sender]).to_string(),
        );
    }
    if shape.takes("integer") && !shape.takes_anything() {
        for number in ["-1", "18446744073709551616", "1e40"] {
            put(number, number);
        }
        let beyond = [
            shape.minimum.map(|least| least - 1),
            shape.maximum.map(|most| most + 1),
        ];
        for number in beyond.into_iter().flatten() {
            put("a number out of its range", &number.to_string());
        }
    }
    if shape.takes("string") && !shape.takes_anything() {
        put(
            "a text of more than 1 MiB",
            &json!("x".repeat(TEXT_CHARS)).to_string(),
        );
        put("half of a character", r#""\ud800""#);
        if !WORDS.contains(&name) {
            put(
                "control characters",
                &json!("a\0\u{1b}[31m\u{7f}\n").to_string(),
            );
        }
    }
    if shape.takes("object") {
        put(
            "200 lists in each other",
            &json!({ "a": lists() }).to_string(),
        );
    }
    if let Some(there) = value.get(name) {
        let twice = format!("{{{}:{there},{}", json!(name), &value.to_string()[1..]);
        cases.push(good.with_body(&format!("`{name}` twice"), twice));
    }
    if property.is_required {
        cases.push(good.with_body(&format!("no `{name}`"), object(&without(value, name))));
    }
    cases
}

/// Lists in each other.
fn lists() -> Value {
    (0..LISTS).fold(json!(1), |inner, _| Value::Array(vec![inner]))
}

/// The body with this text in the place of a property's value: it need not be JSON.
fn with(value: &Value, name: &str, text: &str) -> String {
    let mut members = without(value, name);
    members.push(format!("{}:{text}", json!(name)));
    object(&members)
}

/// The members of the body but one.
fn without(value: &Value, name: &str) -> Vec<String> {
    let members = value
        .as_object()
        .unwrap()
        .iter()
        .filter(|(other, _)| *other != name);
    members
        .map(|(other, value)| format!("{}:{value}", json!(other)))
        .collect()
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

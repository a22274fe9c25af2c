//! The faults of a request, one at a time: ids, queries and headers. Bodies are in the module
//! beside this one.

use super::document::Operation;
use super::{NOBODY, Stage, bodies, requests};
use domain::user::UserId;
use reqwest::{Method, RequestBuilder};

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
        cases.extend(bodies::of_bytes(&good, operation.path.ends_with("/import")));
    }
    if let (Some(body), Some(value)) = (&operation.body, requests::body(stage, operation)) {
        cases.extend(bodies::whole(body, &good, &value));
        cases.extend(
            body.properties
                .iter()
                .flat_map(|property| bodies::of_property(property, &good, &value)),
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

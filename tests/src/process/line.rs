//! Requests to a host that runs or ran, and its answers.

use super::PATIENCE;
use super::frames::Frames;
use crate::boxed::Boxed;
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

/// Characters of a request's body that a failure shows.
const BODY_SHOWN_CHARS: usize = 300;

/// An answer of the API.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type.
    pub content_type: String,
    /// Seconds after which to try again, if it says so.
    pub retry_after_s: Option<u64>,
    /// The body; null when it is not JSON.
    pub body: Value,
}

impl Answer {
    /// A text of the body; empty when it is not there.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.body
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// Asserts that it has this status and these properties.
    ///
    /// # Panics
    /// When it has others.
    #[track_caller]
    pub fn has(&self, status: u16, properties: &Value) {
        assert_eq!(self.status, status, "{self:?}");
        shows(&self.body, properties);
    }

    /// Asserts that it is a refusal with this status and code.
    ///
    /// # Panics
    /// When it is any other answer.
    #[track_caller]
    pub fn is_refusal(&self, status: u16, code: &str) {
        let found = (self.status, self.text("code"));
        assert_eq!(found, (status, code.to_owned()), "{self:?}");
    }
}

/// Asserts that a document has these values, each at a path such as `items/0/name`.
///
/// # Panics
/// When it has others.
#[track_caller]
pub fn shows(document: &Value, expected: &Value) {
    let paths = expected.as_object().into_iter().flat_map(Map::keys);
    let found = paths.map(|path| {
        let value = document.pointer(&format!("/{path}"));
        (path.clone(), value.cloned().unwrap_or_default())
    });
    let found = Value::Object(found.collect());
    assert_eq!(&found, expected, "{document}");
}

/// Asserts that a text has all these in it.
///
/// # Panics
/// When it has not.
#[track_caller]
pub fn tells(text: &(impl fmt::Display + ?Sized), parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

/// A request with the answer that it has to get, as a line of a table says it.
#[derive(Debug, Clone)]
pub struct Row {
    /// The line, with its names filled in.
    pub shown: String,
    /// The method.
    pub method: Method,
    /// The path with its query.
    pub path: String,
    /// The body, if it has one.
    pub body: Option<Value>,
    /// The status of the answer.
    pub status: u16,
    /// The code of the refusal; empty for any, and for what is no refusal.
    pub code: String,
    /// The field of the refusal; empty for any.
    pub field: String,
}

impl Row {
    /// Reads `POST /path {"a":1} => 409 CODE /a`, in which names in braces stand for these values.
    /// The field may be left out, and the code with it; `*` is any code.
    ///
    /// # Panics
    /// The line has another form.
    #[must_use]
    pub fn of(line: &str, names: &[(&str, &str)]) -> Self {
        let fill = |line: String, (name, value): &(&str, &str)| line.replace(name, value);
        let shown = names.iter().fold(line.to_owned(), fill);
        let (request, answer) = shown.rsplit_once(" => ").expect("an answer");
        let mut parts = request.splitn(3, ' ');
        let mut part = || parts.next().expect("a method and a path");
        let method = part().parse().expect("a method");
        let path = part().to_owned();
        let body = parts.next();
        let body = body.map(|body| serde_json::from_str(body).expect("a body of JSON"));
        let mut words = answer.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        Self {
            method,
            path,
            body,
            status: word().parse().expect("a status"),
            code: word().trim_start_matches('*').to_owned(),
            field: word(),
            shown,
        }
    }
}

/// A request, as failures name it.
struct Asked {
    at: &'static Location<'static>,
    request: Option<RequestBuilder>,
}

impl Asked {
    fn received(&self, answer: reqwest::Result<Answer>) -> Answer {
        answer.unwrap_or_else(|lost| panic!("{self}: no answer: {lost:?}"))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.at)?;
        let request = self.request.as_ref().and_then(RequestBuilder::try_clone);
        let Some(request) = request.and_then(|request| request.build().ok()) else {
            return Ok(());
        };
        let body = request.body().and_then(reqwest::Body::as_bytes);
        let body = String::from_utf8_lossy(body.unwrap_or_default());
        let shown: String = body.chars().take(BODY_SHOWN_CHARS).collect();
        write!(
            formatter,
            ": {} {} {shown}",
            request.method(),
            request.url()
        )
    }
}

/// An answer that is to come. Awaited as it is, it fails the test when the connection is lost.
#[must_use = "a request is sent when its answer is awaited"]
pub struct Reply {
    answer: Boxed<'static, reqwest::Result<Answer>>,
    asked: Asked,
}

impl Reply {
    #[track_caller]
    fn sent(request: RequestBuilder) -> Self {
        let at = Location::caller();
        Self {
            asked: Asked {
                at,
                request: request.try_clone(),
            },
            answer: Box::pin(read(request)),
        }
    }

    /// The answer of a host that may die before.
    #[must_use]
    pub fn attempt(self) -> Boxed<'static, reqwest::Result<Answer>> {
        self.answer
    }

    /// The answer, which has this status.
    ///
    /// # Panics
    /// When it has any other.
    #[must_use]
    pub fn gives(self, status: u16) -> Boxed<'static, Answer> {
        let Self { answer, asked } = self;
        Box::pin(async move {
            let answer = asked.received(answer.await);
            assert_eq!(answer.status, status, "{asked}: {answer:?}");
            answer
        })
    }

    /// The answer, which is a refusal with this status and code.
    ///
    /// # Panics
    /// When it is any other.
    #[must_use]
    pub fn refused(self, status: u16, code: &'static str) -> Boxed<'static, Answer> {
        let Self { answer, asked } = self;
        Box::pin(async move {
            let answer = asked.received(answer.await);
            let found = (answer.status, answer.text("code"));
            assert_eq!(found, (status, code.to_owned()), "{asked}: {answer:?}");
            answer
        })
    }
}

impl Future for Reply {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = self.answer.as_mut().poll(context);
        answer.map(|answer| self.asked.received(answer))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reply to {}", self.asked)
    }
}

/// The address of a host that runs or ran, and the token for it.
#[derive(Debug, Clone)]
pub struct Line {
    /// `http://` and where it listens.
    pub base: String,
    /// Its bearer token.
    pub token: String,
    pub(super) http: reqwest::Client,
}

impl Line {
    /// Returns a line to the same host with another token.
    #[must_use]
    pub fn with_token(&self, token: String) -> Self {
        Self {
            token,
            ..self.clone()
        }
    }

    /// A request with the token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.token)
    }

    /// A request without one.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Sends a request and reads the answer.
    #[track_caller]
    pub fn send(&self, request: RequestBuilder) -> Reply {
        Reply::sent(request)
    }

    /// Sends a request, with a body when there is one, and reads the answer.
    #[track_caller]
    pub fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        Reply::sent(with_body(self.request(method, path), body))
    }

    /// The same under an idempotency key.
    #[track_caller]
    pub fn ask_under(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let request = self.request(method, path).header("idempotency-key", key);
        Reply::sent(with_body(request, body))
    }

    /// Sends the requests of a table, a line each, and checks that each is answered as it says.
    ///
    /// # Panics
    /// One is answered otherwise.
    #[track_caller]
    pub fn answers<'a>(&'a self, names: &[(&str, &str)], lines: &[&str]) -> Boxed<'a, ()> {
        let rows: Vec<Row> = lines.iter().map(|line| Row::of(line, names)).collect();
        let at = Location::caller();
        Box::pin(async move {
            for row in rows {
                let answer = self.ask(row.method, &row.path, row.body.as_ref()).await;
                let is_wanted =
                    |name: &str, wanted: &str| wanted.is_empty() || answer.text(name) == wanted;
                assert!(
                    answer.status == row.status
                        && is_wanted("code", &row.code)
                        && is_wanted("field", &row.field),
                    "{at}: {}: {answer:?}",
                    row.shown
                );
            }
        })
    }

    /// Reads something.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, None)
    }

    /// Sends something.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::POST, path, Some(body))
    }

    /// Replaces something.
    #[track_caller]
    pub fn put(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::PUT, path, Some(body))
    }

    /// Changes something.
    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::PATCH, path, Some(body))
    }

    /// Deletes something.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, path, None)
    }

    /// Posts a file as it is.
    #[track_caller]
    pub fn upload(&self, path: &str, file: Vec<u8>) -> Reply {
        self.send(self.request(Method::POST, path).body(file))
    }

    /// Follows an event stream, after an event or from now on.
    ///
    /// # Errors
    /// The status that was answered instead; none when there is no answer.
    pub fn follow(
        &self,
        path: &str,
        last_event_id: Option<u64>,
    ) -> Boxed<'static, Result<Frames, Option<u16>>> {
        let mut request = self.request(Method::GET, path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        Box::pin(async move {
            let response = request.send().await.map_err(|_| None)?;
            match response.status().as_u16() {
                200 => Ok(Frames::of(response)),
                status => Err(Some(status)),
            }
        })
    }
}

fn with_body(request: RequestBuilder, body: Option<&Value>) -> RequestBuilder {
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}

async fn read(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let content_type = header("content-type");
    let retry_after_s = header("retry-after").parse().ok();
    let body = response.bytes().await?;
    Ok(Answer {
        status,
        content_type,
        retry_after_s,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// A client without trusted certificates: the API speaks plain HTTP.
///
/// # Panics
/// When there can be no client.
#[must_use]
pub fn http() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another one that is installed already does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let tls = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .timeout(PATIENCE)
        .pool_idle_timeout(PATIENCE)
        .build()
        .expect("a client")
}

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
        let names = properties.as_object().into_iter().flat_map(Map::keys);
        let found = names.map(|name| (name.clone(), self.body[name].clone()));
        let found = Value::Object(found.collect());
        assert_eq!((self.status, &found), (status, properties), "{self:?}");
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

/// An answer that is to come. Awaited as it is, it fails the test when the connection is lost.
#[must_use = "a request is sent when its answer is awaited"]
pub struct Reply {
    answer: Boxed<'static, reqwest::Result<Answer>>,
    asked_at: &'static Location<'static>,
}

impl Reply {
    #[track_caller]
    fn sent(request: RequestBuilder) -> Self {
        Self {
            answer: Box::pin(read(request)),
            asked_at: Location::caller(),
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
        let at = self.asked_at;
        Box::pin(async move {
            let answer = self.await;
            assert_eq!(answer.status, status, "{at}: {answer:?}");
            answer
        })
    }

    /// The answer, which is a refusal with this status and code.
    ///
    /// # Panics
    /// When it is any other.
    #[must_use]
    pub fn refused(self, status: u16, code: &'static str) -> Boxed<'static, Answer> {
        let at = self.asked_at;
        Box::pin(async move {
            let answer = self.await;
            let found = (answer.status, answer.text("code"));
            assert_eq!(found, (status, code.to_owned()), "{at}: {answer:?}");
            answer
        })
    }
}

impl Future for Reply {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let at = self.asked_at;
        let answer = self.answer.as_mut().poll(context);
        answer.map(|answer| answer.unwrap_or_else(|lost| panic!("{at}: no answer: {lost:?}")))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reply to {}", self.asked_at)
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

//! Requests to a host that runs or ran, and its answers.

use super::PATIENCE;
use super::frames::Frames;
use crate::boxed::Boxed;
use reqwest::Method;
use serde_json::Value;
use std::sync::Once;

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
}

/// An answer that is to come.
pub type Reply = Boxed<'static, reqwest::Result<Answer>>;

/// The address of a host that runs or ran, and the token for it.
#[derive(Debug, Clone)]
pub struct Line {
    pub(super) base: String,
    pub(super) token: String,
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

    /// Sends a request, with a body when there is one, and reads the answer.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        read(self.request(method, path, body))
    }

    /// The same under an idempotency key.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn ask_under(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let request = self.request(method, path, body);
        read(request.header("idempotency-key", key))
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> reqwest::RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token);
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    /// Posts a file as it is.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn upload(&self, path: &str, file: Vec<u8>) -> Reply {
        read(
            self.http
                .post(format!("{}{path}", self.base))
                .bearer_auth(&self.token)
                .body(file),
        )
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
        let mut request = self
            .http
            .get(format!("{}{path}", self.base))
            .bearer_auth(&self.token);
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

/// Sends a request and reads the answer.
pub(super) fn read(request: reqwest::RequestBuilder) -> Reply {
    Box::pin(async move {
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

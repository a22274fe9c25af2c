//! An answer with its whole body.

use super::error::HttpError;
use super::outgoing::{Outgoing, find};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Characters of an answer's text that an error repeats.
const SAID_CHARS_MAX: usize = 300;
/// Milliseconds that a server can ask to be left alone for: an hour.
const RETRY_AFTER_MS_MAX: u64 = 3_600_000;

/// An answer with its whole body. What is in it, a stranger wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The host that answered, for errors; empty until the answer is received.
    authority: String,
}

impl Response {
    /// An answer without headers and body, for a test's server.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            authority: String::new(),
        }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with this body.
    #[must_use]
    pub fn with_body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        self
    }

    /// The same with a text as its body, and the media type of plain text.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        self.with_body(text)
            .with_header("content-type", "text/plain; charset=utf-8")
    }

    /// The same with a value as its body, as JSON, and the media type of JSON.
    ///
    /// # Panics
    /// When the value has no JSON form.
    #[must_use]
    pub fn with_json(self, value: &(impl Serialize + ?Sized)) -> Self {
        self.with_body(serde_json::to_vec(value).expect("the value has a JSON form"))
            .with_header("content-type", "application/json")
    }

    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns true for a status from 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The headers in their order. Those of the connection and cookies are not among them.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The value of the first header of that name, in whatever case. One that is not UTF-8 is left
    /// out.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body, decompressed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    ///
    /// # Errors
    /// [`HttpError::NotText`] when it is not UTF-8.
    pub fn text(&self) -> Result<&str, HttpError> {
        std::str::from_utf8(&self.body).map_err(|source| HttpError::NotText {
            authority: self.authority.clone(),
            source,
        })
    }

    /// The body, read as JSON, whatever media type it has.
    ///
    /// # Errors
    /// [`HttpError::NotJson`] when it is not JSON of the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|source| HttpError::NotJson {
            authority: self.authority.clone(),
            source,
        })
    }

    /// Returns the answer if its status is from 200 to 299. A redirect that the grant does not
    /// follow is an error too.
    ///
    /// # Errors
    /// [`HttpError::Status`] for any other status, with the beginning of what the server says.
    pub fn error_for_status(self) -> Result<Self, HttpError> {
        if self.is_success() {
            return Ok(self);
        }
        let said: String = String::from_utf8_lossy(&self.body)
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(SAID_CHARS_MAX)
            .collect();
        let retry_after_ms = self
            .header("retry-after")
            .and_then(|seconds| seconds.trim().parse::<u64>().ok())
            .map(|seconds| seconds.saturating_mul(1_000).min(RETRY_AFTER_MS_MAX))
            .and_then(|ms| u32::try_from(ms).ok());
        Err(HttpError::Status {
            status: self.status,
            authority: self.authority,
            said: said.trim().to_owned(),
            retry_after_ms,
        })
    }

    /// The answer to a request, if its body is within the request's limit.
    pub(crate) fn received(self, request: &Outgoing) -> Result<Self, HttpError> {
        let authority = request.authority().to_owned();
        if self.body.len() > request.body_bytes_max {
            return Err(HttpError::ResponseTooLarge {
                authority,
                bytes_max: Some(request.body_bytes_max),
            });
        }
        Ok(Self { authority, ..self })
    }
}

//! HTTP over the requests that the operator granted (`wasi:http`): a request is built, sent, and
//! answered with its whole body.
//!
//! A tool that sends requests names `net.http` among its capabilities. The host decides where a
//! request may go, follows redirects only as far as the grant says, undoes compression, and puts
//! secrets in place of their placeholders. In a native test the requests are answered by
//! [`harness::serve_http`](crate::harness::serve_http).

mod error;
mod outgoing;
mod response;
mod url;

pub use self::error::HttpError;
pub use self::outgoing::Outgoing;
pub(crate) use self::outgoing::secret_in;
pub use self::response::Response;
#[cfg(target_family = "wasm")]
pub(crate) use self::url::Scheme;

pub use agent_host_shapes::limits::tool::URL_BYTES_MAX;

use self::url::Url;
use crate::log;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Bytes of an answer's body that are read unless the request says otherwise: 2 MiB, so that it is
/// within the memory that a component has by default together with what is made of it.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// The client's name for servers, where the request does not give one.
const USER_AGENT: &str = concat!("agent-host-sdk/", env!("CARGO_PKG_VERSION"));

/// A method that a request may have. Grants allow `GET` and `HEAD` unless they name others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Reads the head alone.
    Head,
    /// Hands something over.
    Post,
    /// Puts something in a place.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
    /// Asks for what is possible.
    Options,
}

impl Method {
    /// The method as it stands in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text that stands for a secret, which a component never has. The host puts the value there
/// on the way out if it is bound to the component, the host and this header or parameter.
#[must_use]
pub fn placeholder(secret: &str) -> String {
    format!("{{{{secret.{secret}}}}}")
}

/// A request in the making. A fault in a part of it is told when it is sent.
///
/// ```
/// use agent_host_sdk::harness::serve_http;
/// use agent_host_sdk::http::{Request, Response};
///
/// # fn main() -> Result<(), agent_host_sdk::http::HttpError> {
/// let server = serve_http(|_| Ok(Response::new(200).with_text("two hits")));
/// let hits = Request::get("https://api.example.com/v1/search")
///     .query("q", "tides & winds")
///     .secret_header("authorization", "example")
///     .send()?
///     .error_for_status()?;
/// assert_eq!(hits.text()?, "two hits");
/// assert_eq!(
///     server.requests()[0].url(),
///     "https://api.example.com/v1/search?q=tides%20%26%20winds"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    method: Method,
    url: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    timeout: Option<Duration>,
    body_bytes_max: usize,
    unwritable: Option<serde_json::Error>,
}

impl Request {
    /// A request with this method for a whole URL in printable ASCII, [`URL_BYTES_MAX`] bytes at
    /// most, such as `https://api.example.com/v1`.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: None,
            body_bytes_max: BODY_BYTES_MAX,
            unwritable: None,
        }
    }

    /// A `GET`.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::Get, url)
    }

    /// A `POST`.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(Method::Post, url)
    }

    /// A `PUT`.
    pub fn put(url: impl Into<String>) -> Self {
        Self::new(Method::Put, url)
    }

    /// A `PATCH`.
    pub fn patch(url: impl Into<String>) -> Self {
        Self::new(Method::Patch, url)
    }

    /// A `DELETE`.
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new(Method::Delete, url)
    }

    /// The same with one more parameter in the query, both parts percent-encoded.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// The same with one more header. The host refuses those that say where a request goes or how
    /// it is framed, sets `content-length` and `accept-encoding` itself, and takes credentials such
    /// as `authorization` from [`Request::secret_header`] alone.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with a secret in a header, by the name that it has in the operator's config. A
    /// prefix such as `Bearer ` stands in the grant. The tool also needs `secrets.use`.
    pub fn secret_header(self, name: impl Into<String>, secret: &str) -> Self {
        self.header(name, placeholder(secret))
    }

    /// The same with a secret in a parameter of the query. The tool also needs `secrets.use`.
    pub fn secret_query(self, name: impl Into<String>, secret: &str) -> Self {
        self.query(name, placeholder(secret))
    }

    /// The same with this body. A grant allows 1 MiB unless its `requestBytesMax` says otherwise.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        self
    }

    /// The same with a value as its body, as JSON, and the media type of JSON.
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.body = bytes,
            Err(error) => self.unwritable = Some(error),
        }
        self.header("content-type", "application/json")
    }

    /// The same, given up after so long: the time from sending it to the last byte of the answer.
    /// The grant's `totalMsMax` (30 s by default) and the time of the call end it too. A native
    /// test does not wait for it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with another limit than [`BODY_BYTES_MAX`] for the answer's body, in bytes. The
    /// grant's `responseBytesMax` (8 MiB by default) holds too.
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Sends the request, and reads the whole answer. A status is not an error here:
    /// [`Response::error_for_status`] makes it one. A refusal is written to the log too, with the
    /// line of the config that is missing.
    ///
    /// # Errors
    /// The request makes no sense, is not allowed, or has no whole answer within its limits.
    pub fn send(self) -> Result<Response, HttpError> {
        let outgoing = self.checked()?;
        let sent = crate::wire::http::send(&outgoing);
        if let Err(refused @ HttpError::Refused { .. }) = &sent {
            log::warn(&refused.to_string());
        }
        sent.and_then(|response| response.received(&outgoing))
    }

    fn checked(self) -> Result<Outgoing, HttpError> {
        if let Some(source) = self.unwritable {
            return Err(HttpError::Unwritable { source });
        }
        let url = Url::parse(&self.url, &self.query).map_err(|fault| HttpError::InvalidUrl {
            url: self.url.clone(),
            fault,
        })?;
        let mut headers = self.headers;
        if let Some((name, _)) = headers
            .iter()
            .find(|(name, value)| !is_header_name(name) || !is_header_value(value))
        {
            return Err(HttpError::InvalidHeader { name: name.clone() });
        }
        let is_named = |(name, _): &(String, String)| name.eq_ignore_ascii_case("user-agent");
        if !headers.iter().any(is_named) {
            headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        Ok(Outgoing {
            method: self.method,
            url,
            headers,
            body: self.body,
            timeout: self.timeout,
            body_bytes_max: self.body_bytes_max,
        })
    }
}

/// Returns true for a token as RFC 9110 has it, in section 5.6.2.
fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

fn is_header_value(value: &str) -> bool {
    value.chars().all(|c| c == '\t' || !c.is_control())
}

#[cfg(test)]
mod tests;

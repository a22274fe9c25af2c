//! The way to the network: one request, answered by a head and a body that is read as far as it is
//! wanted.

#[cfg(target_os = "wasi")]
mod granted;

use agent_host_sdk::http::Method;
use std::fmt::{self, Debug};
use std::io::{self, Read};
use url::Url;

/// Milliseconds after which to try again when the host has too much under way.
pub(crate) const BUSY_MS: u32 = 1_000;

/// A request as it is sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: &'a Url,
    /// The headers, with names in lower case.
    pub headers: &'a [(String, String)],
    /// The body; empty for none.
    pub body: &'a [u8],
}

/// Sends requests.
pub trait Network: Debug {
    /// Sends a request and returns once the head of the answer is there.
    ///
    /// # Errors
    /// No server answered, or the request was refused.
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered>;
}

/// The head of an answer, and its body.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers that are text, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body of the answer. Its errors are those of [`Unanswered`].
    pub body: Box<dyn Read>,
}

impl Answer {
    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }
}

impl Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// The reason that there is no answer, or only a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The operator did not grant it, or a rule of the host forbids it.
    Denied,
    /// It has a header that the host lets no component send.
    HeaderRefused,
    /// It is larger than what the operator granted.
    RequestTooLarge,
    /// The host has too much under way.
    Busy,
    /// The address has no server behind it that can be reached.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// The answer is larger than what the operator granted.
    TooLarge,
    /// The server broke off, or does not speak HTTP.
    Broken,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "is not allowed",
            Self::HeaderRefused => {
                "was not asked: a header of the request is one that the host lets no tool send"
            }
            Self::RequestTooLarge => {
                "was not asked: the request is larger than the operator allows"
            }
            Self::Busy => "has to wait: the host has too much under way",
            Self::Unreachable => {
                "cannot be reached: there is no such server, or it does not answer"
            }
            Self::TimedOut => "took too long to answer",
            Self::TooLarge => "is larger than the operator allows",
            Self::Broken => "broke off, or did not answer in HTTP",
        })
    }
}

impl std::error::Error for Unanswered {}

impl From<Unanswered> for io::Error {
    fn from(error: Unanswered) -> Self {
        Self::other(error)
    }
}

/// Reads at most so many bytes, and says whether that is all.
///
/// # Errors
/// The server broke off, or the answer is larger or slower than what is allowed.
pub(crate) fn read(body: &mut dyn Read, bytes_max: usize) -> Result<(Vec<u8>, bool), Unanswered> {
    let mut bytes = Vec::new();
    body.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            let source = error.get_ref();
            let unanswered = source.and_then(|source| source.downcast_ref::<Unanswered>());
            unanswered.copied().unwrap_or(Unanswered::Broken)
        })?;
    let whole = bytes.len() <= bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, whole))
}

/// The network that the operator granted. Natively there is none.
#[derive(Debug)]
pub(crate) struct Granted;

impl Network for Granted {
    #[cfg(target_os = "wasi")]
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered> {
        granted::send(request)
    }

    #[cfg(not(target_os = "wasi"))]
    fn send(&self, _: &Request<'_>) -> Result<Answer, Unanswered> {
        Err(Unanswered::Denied)
    }
}

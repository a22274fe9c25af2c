//! The way to the network: one GET, answered by a head and a body that is read as far as it is
//! wanted.

#[cfg(target_os = "wasi")]
mod granted;

use std::fmt::Debug;
use std::io::Read;
use url::Url;

/// Sends requests.
pub trait Network: Debug {
    /// Asks for a URL and returns once the head of the answer is there.
    ///
    /// # Errors
    /// No server answered, or the request was refused.
    fn get(&self, url: &Url, accept: &str) -> Result<Answer, Unanswered>;
}

/// The head of an answer, and its body.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header `content-type`, where there is one that is text.
    pub content_type: Option<String>,
    /// The header `location`, where there is one that is text.
    pub location: Option<String>,
    /// The body of the answer. Its errors are those of [`Unanswered`].
    pub body: Box<dyn Read>,
}

impl Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// The reason that there is no answer, or only a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The operator did not grant it, or a rule of the host forbids it.
    Denied,
    /// The host has too much under way.
    Busy,
    /// The address has no server behind it that can be reached.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// It is larger than what the operator granted.
    TooLarge,
    /// The server broke off, or does not speak HTTP.
    Broken,
}

/// The network that the operator granted. Natively there is none.
#[derive(Debug)]
pub(crate) struct Granted;

impl Network for Granted {
    #[cfg(target_os = "wasi")]
    fn get(&self, url: &Url, accept: &str) -> Result<Answer, Unanswered> {
        granted::get(url, accept)
    }

    #[cfg(not(target_os = "wasi"))]
    fn get(&self, _: &Url, _: &str) -> Result<Answer, Unanswered> {
        Err(Unanswered::Denied)
    }
}

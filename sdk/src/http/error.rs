//! The errors of a request, as far as the host lets a component tell them apart.

use crate::tool::ToolError;
use std::error::Error;

/// Milliseconds after which to try again what was not answered because somebody is busy.
const BUSY_MS: u32 = 1_000;

/// The reason that a request has no answer, or not one that can be used.
///
/// The host keeps the reason of a refusal and the state of the network from components. The
/// operator finds both in the audit ledger: `agent-host audit --capability net.http`.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The URL makes no sense. Nothing was sent.
    #[error("`{url}` is no URL for a request: {fault}")]
    InvalidUrl {
        /// The URL as it was given.
        url: String,
        /// The rule that it breaks.
        fault: &'static str,
    },
    /// The name or the value of a header cannot be sent. Nothing was sent.
    #[error("the header `{name}` cannot be sent")]
    InvalidHeader {
        /// Its name.
        name: String,
    },
    /// The value for the body has no JSON form. Nothing was sent.
    #[error("the body of the request has no JSON form")]
    Unwritable {
        /// The reason.
        source: serde_json::Error,
    },
    /// The host refused the request, which was not sent: the component is not granted it, the tool
    /// does not name `net.http` (or `secrets.use`) among its capabilities, the calling agent may
    /// not use them, or another rule of the host forbids it.
    #[error("the host refused {asked}; the lines of the component's entry that grant it: {grants}")]
    Refused {
        /// The request, or the part of it that was refused.
        asked: String,
        /// The lines of the config that grant it.
        grants: String,
    },
    /// The host has too much under way, or the call has sent too many different requests.
    #[error("the host has too many requests under way")]
    Busy,
    /// No connection: there is no such name, nothing answers there, or no TLS is agreed on.
    #[error(
        "`{authority}` cannot be reached: there is no such host, it does not answer, or TLS failed"
    )]
    Unreachable {
        /// The host, with its port where one is written.
        authority: String,
    },
    /// The whole answer did not come in time. The server may have carried the request out.
    #[error("`{authority}` took too long to answer")]
    TimedOut {
        /// The host, with its port where one is written.
        authority: String,
    },
    /// The request is larger than the grant allows: 1 MiB of body by default.
    #[error("the request to `{authority}` is larger than its grant allows (`requestBytesMax`)")]
    RequestTooLarge {
        /// The host, with its port where one is written.
        authority: String,
    },
    /// The answer is larger than the request or its grant allows. The server carried the request
    /// out.
    #[error("the answer of `{authority}` has more than {}", limit(.bytes_max))]
    ResponseTooLarge {
        /// The host, with its port where one is written.
        authority: String,
        /// The request's own limit in bytes, where that was the one.
        bytes_max: Option<usize>,
    },
    /// The server broke off, or what it sent is not HTTP. It may have carried the request out.
    #[error("`{authority}` broke off, or did not answer in HTTP")]
    Broken {
        /// The host, with its port where one is written.
        authority: String,
    },
    /// The status is not one of success. Only
    /// [`Response::error_for_status`](super::Response::error_for_status) says so.
    #[error("`{authority}` answers with status {status}{}", repeated(.said))]
    Status {
        /// The host, with its port where one is written.
        authority: String,
        /// The status code.
        status: u16,
        /// The beginning of what it says besides, 300 characters at most. A stranger wrote it.
        said: String,
        /// Milliseconds after which the server wants to be asked again, an hour at most.
        retry_after_ms: Option<u32>,
    },
    /// The body is not UTF-8.
    #[error("the answer of `{authority}` is not text")]
    NotText {
        /// The host, with its port where one is written.
        authority: String,
        /// The first fault.
        source: std::str::Utf8Error,
    },
    /// The body is not JSON of the type.
    #[error("the answer of `{authority}` is not the JSON that was expected")]
    NotJson {
        /// The host, with its port where one is written.
        authority: String,
        /// The first fault.
        source: serde_json::Error,
    },
    /// A native test answers no requests. Never in a component.
    #[error(
        "`{url}` is not asked in a native test: answer it with \
         `agent_host_sdk::harness::serve_http(|request| Ok(Response::new(200)))`"
    )]
    Unscripted {
        /// The URL of the request.
        url: String,
    },
}

fn limit(bytes_max: &Option<usize>) -> String {
    bytes_max.map_or_else(
        || "its grant allows (`responseBytesMax`)".to_owned(),
        |bytes| format!("{bytes} bytes"),
    )
}

fn repeated(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    }
}

/// The conversion for `?` in a tool.
///
/// Only what was not carried out is to be tried again: a busy host or server. A refusal is
/// [`ToolError::Denied`], a status of 404 or 410 [`ToolError::NotFound`], everything else
/// [`ToolError::Failed`] with the reason.
impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Refused { .. } => Self::Denied,
            HttpError::Busy => Self::RetryLater(BUSY_MS),
            HttpError::Status {
                status: 429 | 503,
                retry_after_ms,
                ..
            } => Self::RetryLater(retry_after_ms.unwrap_or(BUSY_MS)),
            HttpError::Status {
                status: 404 | 410, ..
            } => Self::NotFound(error.to_string()),
            HttpError::InvalidUrl { .. }
            | HttpError::InvalidHeader { .. }
            | HttpError::Unwritable { .. }
            | HttpError::Unreachable { .. }
            | HttpError::TimedOut { .. }
            | HttpError::RequestTooLarge { .. }
            | HttpError::ResponseTooLarge { .. }
            | HttpError::Broken { .. }
            | HttpError::Status { .. }
            | HttpError::NotText { .. }
            | HttpError::NotJson { .. }
            | HttpError::Unscripted { .. } => Self::Failed(match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }),
        }
    }
}

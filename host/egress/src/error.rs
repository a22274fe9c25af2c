//! Errors of a request: in full for the operator, and as little of it as a guest may see.

use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use domain::egress::{Barred, Denied, TargetError};
use std::io;

/// The reason why a request has no answer, or an answer no end.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// A rule says no. Nothing was sent on this hop.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Too many requests are under way, and none of them ended in time.
    #[error("too many requests are under way")]
    Busy,
    /// The caller's budget of bytes is spent.
    #[error("the budget of bytes is spent")]
    BudgetSpent,
    /// No connection.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Something took too long.
    #[error("{phase} took longer than {ms_max} ms")]
    TimedOut {
        /// The part that took too long.
        phase: Phase,
        /// Its limit.
        ms_max: u64,
    },
    /// Something is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The server broke the protocol, or off.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// The rule that refuses a request.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The URL is not accepted.
    #[error("the URL is not accepted")]
    Url(#[source] TargetError),
    /// A header is not the caller's to set, or contradicts the body.
    #[error("the header `{name}` cannot be set")]
    Header {
        /// Its name.
        name: String,
    },
    /// No grant allows it.
    #[error("no grant allows the request")]
    Denied(#[source] Denied),
    /// An address behind the host is not open.
    #[error("an address of `{host}` is not open")]
    Barred {
        /// The host.
        host: String,
        /// The address, and the kind of network to which it leads.
        #[source]
        source: Barred,
    },
    /// The server redirects to a URL that is not accepted.
    #[error("the server redirects to what is no accepted URL")]
    Location(#[source] TargetError),
    /// The server redirects from `https` to `http`.
    #[error("the server redirects from https to http, to `{host}`")]
    Downgrade {
        /// The host that it leads to.
        host: String,
    },
    /// The server redirects to another origin, and a secret that the caller could use stands in the
    /// URL.
    #[error("`{host}` redirects to another origin with a secret in the URL")]
    SecretInUrl {
        /// The host that redirects.
        host: String,
    },
    /// The server redirects more often than the grant follows.
    #[error("the server redirects more than {hops_max} times")]
    Redirects {
        /// The grant's limit.
        hops_max: u8,
    },
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The name cannot be resolved.
    #[error("`{host}` cannot be resolved")]
    Unresolved {
        /// The name.
        host: String,
        /// The resolver's error.
        #[source]
        source: io::Error,
    },
    /// The name has no address.
    #[error("`{host}` has no address")]
    NoAddress {
        /// The name.
        host: String,
    },
    /// None of the addresses that were tried answers. The cause is the last one's.
    #[error("`{host}` does not answer")]
    Dial {
        /// The host.
        host: String,
        /// The error of the last attempt.
        #[source]
        source: io::Error,
    },
    /// No agreement on TLS; a certificate that is not trusted or for another host is one cause.
    #[error("no TLS connection with `{host}`")]
    Tls {
        /// The host.
        host: String,
        /// The TLS library's error.
        #[source]
        source: io::Error,
    },
}

/// The part that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// The request's headers.
    #[error("the request has more than {HEADERS_MAX} headers or {HEAD_BYTES_MAX} bytes of them")]
    RequestHead,
    /// The request's body.
    #[error("the request's body has {bytes} bytes; {bytes_max} are granted")]
    RequestBody {
        /// Its size.
        bytes: u64,
        /// The grant's limit.
        bytes_max: u64,
    },
    /// The head of the answer, or what comes before it.
    #[error("the answer has too many headers, or too much before its body")]
    ResponseHead,
    /// The body of the answer, before or after decompression.
    #[error("the answer's body has more than {bytes_max} bytes")]
    ResponseBody {
        /// The grant's limit.
        bytes_max: u64,
    },
}

/// The way in which the server broke the protocol.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The bytes that it sent are no HTTP, or end too early.
    #[error("the server breaks the protocol or the connection")]
    Protocol(#[source] hyper::Error),
    /// It changes to another protocol, which was not asked for.
    #[error("the server changes to another protocol")]
    Upgrade,
    /// It answers in an encoding that was not asked for.
    #[error("the answer is encoded in a way that nobody asked for")]
    Encoding,
    /// It answers a request that carried a secret with a part of an answer.
    #[error(
        "the answer to a request with a secret is a part of one, in which an echo of the \
             secret would not be found"
    )]
    Partial,
    /// It answers a request that carried a secret in an alphabet that is not searched.
    #[error(
        "the answer to a request with a secret is in a character set in which an echo of the \
             secret would not be found"
    )]
    Charset,
    /// The compressed body cannot be decompressed, or ends too early.
    #[error("the answer cannot be decompressed")]
    Gzip(#[source] io::Error),
}

/// A part of a request that has a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The lookup of the name.
    Resolve,
    /// The connection.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// The wait for the head of the answer.
    FirstByte,
    /// The wait for the next byte of the body.
    Idle,
    /// All of it.
    Total,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Resolve => "the lookup of the name",
            Self::Connect => "the connection",
            Self::Tls => "the handshake of TLS",
            Self::FirstByte => "the head of the answer",
            Self::Idle => "the next byte of the body",
            Self::Total => "the request",
        })
    }
}

/// The origin of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A rule of the operator's or the host's.
    Rule,
    /// A limit.
    Limit,
    /// The other side, or the network.
    Outside,
}

/// The part of an error that a guest learns: enough to go on, and nothing of the rules, the
/// addresses or the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestError {
    /// The guest's own URL or header makes no sense.
    Invalid,
    /// Not allowed. Never says by which rule.
    Denied,
    /// Not now.
    Busy,
    /// No connection.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// It is too large.
    TooLarge,
    /// The server broke off or spoke nonsense.
    Broken,
}

impl EgressError {
    /// Returns the part of it that the guest learns.
    #[must_use]
    pub fn seen(&self) -> GuestError {
        self.facts().0
    }

    /// Returns its origin.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.facts().1
    }

    /// A stable code for the ledger and the operator.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.facts().2
    }

    fn facts(&self) -> (GuestError, Cause, &'static str) {
        match self {
            Self::Refused(refused) => {
                let (seen, code) = match refused {
                    Refused::Url(_) => (GuestError::Invalid, "url-refused"),
                    Refused::Header { .. } => (GuestError::Invalid, "header-refused"),
                    Refused::Denied(_) => (GuestError::Denied, "not-granted"),
                    Refused::Barred { .. } => (GuestError::Denied, "address-barred"),
                    Refused::Location(_)
                    | Refused::Downgrade { .. }
                    | Refused::SecretInUrl { .. }
                    | Refused::Redirects { .. } => (GuestError::Denied, "redirect-refused"),
                };
                (seen, Cause::Rule, code)
            }
            Self::Busy => (GuestError::Busy, Cause::Limit, "busy"),
            Self::BudgetSpent => (GuestError::Denied, Cause::Limit, "budget-spent"),
            Self::Unreachable(unreachable) => {
                let code = match unreachable {
                    Unreachable::Unresolved { .. } | Unreachable::NoAddress { .. } => "unresolved",
                    Unreachable::Dial { .. } => "unreachable",
                    Unreachable::Tls { .. } => "tls-failed",
                };
                (GuestError::Unreachable, Cause::Outside, code)
            }
            Self::TimedOut { .. } => (GuestError::TimedOut, Cause::Limit, "timed-out"),
            Self::TooLarge(part) => {
                let code = match part {
                    TooLarge::RequestHead | TooLarge::RequestBody { .. } => "request-too-large",
                    TooLarge::ResponseHead | TooLarge::ResponseBody { .. } => "response-too-large",
                };
                (GuestError::TooLarge, Cause::Limit, code)
            }
            Self::Broken(_) => (GuestError::Broken, Cause::Outside, "broken"),
        }
    }

    /// All that is behind it, in one line, for the ledger.
    #[must_use]
    pub fn detail(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(inner) = source {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            source = inner.source();
        }
        text
    }
}

impl GuestError {
    /// The one word that a guest gets.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed-out",
            Self::TooLarge => "too-large",
            Self::Broken => "broken",
        }
    }
}

//! One leg of a request: what is sent on one hop, and what of it goes along on the next.

use crate::error::{EgressError, Refused};
use crate::request::Credentials;
use bytes::Bytes;
use domain::egress::{Method, Scheme, Target, crosses_origins};
use domain::redact::Redactor;
use http::header::{CONTENT_LENGTH, HeaderMap, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};

/// The request that is sent on one hop.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) bound: Credentials,
    pub(crate) body: Bytes,
    /// Redirects that led here.
    pub(crate) hop: u8,
}

/// The parts of an answer that say where to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
}

impl Leg {
    /// Returns the leg to which an answer redirects the request. None if the answer is no redirect
    /// or names no place. The next hop finds out whether the new target is allowed.
    ///
    /// # Errors
    /// It leads from `https` to `http`, or nowhere that is accepted, or to another origin with a
    /// secret in the URL, or has led on more often than the grant follows.
    pub(crate) fn next(
        &self,
        answer: &Head<'_>,
        hops_max: u8,
        redactor: &Redactor,
    ) -> Result<Option<Self>, EgressError> {
        let Head { status, headers } = *answer;
        let followed = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) && hops_max > 0;
        let Some(location) = headers.get(LOCATION).filter(|_| followed) else {
            return Ok(None);
        };
        if self.hop >= hops_max {
            return Err(Refused::Redirects { hops_max }.into());
        }
        let followed = self.target.follow(location.as_bytes());
        let target = followed.map_err(Refused::Location)?;
        if self.target.scheme() == Scheme::Https && target.scheme() == Scheme::Http {
            return Err(Refused::Downgrade {
                host: target.host().to_string(),
            }
            .into());
        }
        if !target.is_same_origin(&self.target) && carries(redactor, location, &target) {
            return Err(Refused::SecretInUrl {
                host: self.target.host().to_string(),
            }
            .into());
        }
        let mut next = Self {
            method: method_after(self.method, status),
            hop: self.hop + 1,
            target,
            ..self.clone()
        };
        if next.method != self.method {
            next.body = Bytes::new();
            keep(&mut next.headers, |name| {
                !name.as_str().starts_with("content-")
            });
        }
        next.bound = if next.target.is_same_origin(&self.target) {
            next.bound.without_url()
        } else {
            Credentials::default()
        };
        if !next.target.is_same_origin(&self.target) {
            // The length is the host's own and checked against the body.
            keep(&mut next.headers, |name| {
                name == CONTENT_LENGTH || crosses_origins(name.as_str())
            });
        }
        Ok(Some(next))
    }
}

/// Returns true if a location has a secret in it, as the server wrote it or as it is followed.
fn carries(redactor: &Redactor, location: &HeaderValue, target: &Target) -> bool {
    redactor.bytes(location.as_bytes()).is_some()
        || redactor.bytes(target.url().as_bytes()).is_some()
}

/// The method after a redirect (RFC 9110, section 15.4): what was handed over is not handed over
/// again, unless the status says so.
fn method_after(method: Method, status: StatusCode) -> Method {
    match (status.as_u16(), method) {
        (303, Method::Head) => Method::Head,
        (303, _) | (301 | 302, Method::Post) => Method::Get,
        _ => method,
    }
}

fn keep(headers: &mut HeaderMap, wanted: impl Fn(&HeaderName) -> bool) {
    let unwanted: Vec<HeaderName> = headers
        .keys()
        .filter(|name| !wanted(name))
        .cloned()
        .collect();
    for name in unwanted {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;

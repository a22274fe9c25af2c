//! Headers on the way out and on the way in, by the rules of the domain.

use crate::error::{Broken, EgressError, Refused, TooLarge};
use crate::leg::Leg;
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use domain::egress::{
    RequestHeader, TargetError, divides_echo, request_header, response_header, shows_ascii, trailer,
};
use domain::redact::Redactor;
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};

/// Bytes that a header takes beside name and value: the colon, a space and the end of the line.
const BYTES_AROUND_HEADER: usize = 4;

/// The treatment of the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Close,
    Keep,
}

/// Returns the headers to send. They are the caller's, as far as they are its own to set, those
/// that the host bound, and the host's own.
pub(crate) fn outgoing(leg: &Leg, after: After) -> Result<HeaderMap, EgressError> {
    let mut out = HeaderMap::new();
    check_length(leg)?;
    for (name, value) in &leg.headers {
        if !leg.bound.is_empty() && divides_echo(name.as_str()) {
            return Err(refused(name));
        }
        match request_header(name.as_str()) {
            RequestHeader::Sent => _ = out.append(name, value.clone()),
            RequestHeader::HostsOwn => {}
            RequestHeader::Credential | RequestHeader::Forbidden => return Err(refused(name)),
        }
    }
    for (name, value) in leg.bound.headers() {
        match request_header(name.as_str()) {
            RequestHeader::Sent | RequestHeader::Credential => _ = out.append(name, value.clone()),
            RequestHeader::HostsOwn | RequestHeader::Forbidden => return Err(refused(name)),
        }
    }
    let bytes: usize = out
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + BYTES_AROUND_HEADER)
        .sum();
    if out.len() > HEADERS_MAX || bytes > HEAD_BYTES_MAX {
        return Err(TooLarge::RequestHead.into());
    }
    let host = HeaderValue::try_from(leg.target.authority())
        .map_err(|_| Refused::Url(TargetError::Character))?;
    out.insert(HOST, host);
    // Whoever wants an answer as it comes, chunk by chunk, does not want it packed.
    let plain = leg
        .headers
        .get(ACCEPT_ENCODING)
        .is_some_and(|accepted| accepted == "identity");
    out.insert(
        ACCEPT_ENCODING,
        HeaderValue::from_static(if plain { "identity" } else { "gzip" }),
    );
    match after {
        After::Close => _ = out.insert(CONNECTION, HeaderValue::from_static("close")),
        After::Keep => {}
    }
    out.entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(concat!(
            "agent-host/",
            env!("CARGO_PKG_VERSION")
        )));
    Ok(out)
}

/// A length that the caller states must be the body's, and be stated once: two readers of two
/// lengths see two requests.
fn check_length(leg: &Leg) -> Result<(), EgressError> {
    let mut stated = leg.headers.get_all(CONTENT_LENGTH).iter();
    let first = stated
        .next()
        .is_none_or(|length| length.as_bytes() == leg.body.len().to_string().as_bytes());
    if first && stated.next().is_none() {
        Ok(())
    } else {
        Err(refused(&CONTENT_LENGTH))
    }
}

fn refused(name: &HeaderName) -> EgressError {
    Refused::Header {
        name: name.as_str().to_owned(),
    }
    .into()
}

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
}

/// Looks at the head of the answer to a request that carried a secret, on whichever of its legs: an
/// echo of it would not be found in a part of the answer, or in another alphabet.
pub(crate) fn check_searchable(status: StatusCode, headers: &HeaderMap) -> Result<(), EgressError> {
    let partial = matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::IM_USED)
        || headers.contains_key(CONTENT_RANGE);
    let types = || headers.get_all(CONTENT_TYPE).iter();
    let shown = types().all(|value| std::str::from_utf8(value.as_bytes()).is_ok_and(shows_ascii));
    match (partial, shown) {
        (true, _) => Err(Broken::Partial.into()),
        (false, false) => Err(Broken::Charset.into()),
        (false, true) => Ok(()),
    }
}

/// The encoding of an answer. What the connection itself is said to pack stays packed, and hides
/// what is in it.
pub(crate) fn encoding(headers: &HeaderMap) -> Result<Encoding, EgressError> {
    let framing = |value: &HeaderValue| {
        [&b"chunked"[..], b"identity"]
            .iter()
            .any(|known| value.as_bytes().eq_ignore_ascii_case(known))
    };
    if !headers.get_all(TRANSFER_ENCODING).iter().all(framing) {
        return Err(Broken::Encoding.into());
    }
    let mut all = headers.get_all(CONTENT_ENCODING).iter();
    match (
        all.next()
            .map(|value| value.as_bytes().to_ascii_lowercase()),
        all.next(),
    ) {
        (None, _) => Ok(Encoding::Plain),
        (Some(one), None) => match one.as_slice() {
            b"gzip" | b"x-gzip" => Ok(Encoding::Gzip),
            b"identity" | b"" => Ok(Encoding::Plain),
            _ => Err(Broken::Encoding.into()),
        },
        (Some(_), Some(_)) => Err(Broken::Encoding.into()),
    }
}

/// Returns the headers that a caller gets to see. Length and encoding are removed where they are no
/// longer those of the body.
pub(crate) fn incoming(
    mut headers: HeaderMap,
    encoding: Encoding,
    redactor: &Redactor,
) -> HeaderMap {
    if encoding == Encoding::Gzip {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
    }
    filtered(&headers, response_header, redactor)
}

/// The trailers that a caller gets to see.
pub(crate) fn trailers(headers: &HeaderMap, redactor: &Redactor) -> HeaderMap {
    filtered(headers, trailer, redactor)
}

fn filtered(headers: &HeaderMap, keep: fn(&str) -> bool, redactor: &Redactor) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if keep(name.as_str()) {
            let redacted = redactor
                .bytes(value.as_bytes())
                .and_then(|value| HeaderValue::from_bytes(&value).ok());
            kept.append(name, redacted.unwrap_or_else(|| value.clone()));
        }
    }
    kept
}

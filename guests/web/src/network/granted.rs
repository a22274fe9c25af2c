//! One request over `wasi:http`.

use super::{Answer, Request, Unanswered};
use agent_host_sdk::http::Method;
use std::io::{self, Read};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method as WireMethod, OutgoingBody,
    OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, StreamError};

/// The name of the client for servers.
const USER_AGENT: &str = concat!("agent-host-web/", env!("CARGO_PKG_VERSION"));
/// Bytes that are asked for at a time.
const READ_BYTES: u64 = 64 << 10;
/// Bytes that the host takes in one blocking write, as `wasi:io` says.
const WRITE_BYTES_MAX: usize = 4_096;

/// A body that is being read. The fields are dropped in their order, as the host wants it: what
/// came from something goes before it.
struct Body {
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self
                .stream
                .blocking_read((into.len() as u64).min(READ_BYTES))
            {
                // Nothing yet.
                Ok(bytes) if bytes.is_empty() && !into.is_empty() => {}
                Ok(bytes) => return bytes.as_slice().read(into),
                Err(StreamError::Closed) => return Ok(0),
                Err(StreamError::LastOperationFailed(error)) => {
                    return Err(http_error_code(&error)
                        .map_or(Unanswered::Broken, |code| unanswered(&code))
                        .into());
                }
            }
        }
    }
}

pub(super) fn send(request: &Request<'_>) -> Result<Answer, Unanswered> {
    let outgoing = outgoing(request)?;
    let writing = if request.body.is_empty() {
        None
    } else {
        Some(outgoing.body().map_err(|()| Unanswered::Broken)?)
    };
    let answer = handle(outgoing, None).map_err(|code| unanswered(&code))?;
    if let Some(body) = writing {
        write(body, request.body)?;
    }
    answer.subscribe().block();
    let Some(Ok(response)) = answer.get() else {
        return Err(Unanswered::Broken);
    };
    let response = response.map_err(|code| unanswered(&code))?;
    let status = response.status();
    let entries = response.headers().entries();
    let headers = entries
        .into_iter()
        .filter_map(|(name, value)| {
            let value = String::from_utf8(value).ok()?;
            Some((name.to_ascii_lowercase(), value))
        })
        .collect();
    let body = response.consume().map_err(|()| Unanswered::Broken)?;
    let stream = body.stream().map_err(|()| Unanswered::Broken)?;
    Ok(Answer {
        status,
        headers,
        body: Box::new(Body {
            stream,
            _body: body,
            _response: response,
        }),
    })
}

/// The request as the host takes it.
fn outgoing(request: &Request<'_>) -> Result<OutgoingRequest, Unanswered> {
    let Request {
        method,
        url,
        headers,
        ..
    } = *request;
    let fields = Fields::new();
    for (name, value) in headers {
        fields
            .append(name, value.as_bytes())
            .map_err(|_| Unanswered::HeaderRefused)?;
    }
    if !headers.iter().any(|(name, _)| name == "user-agent") {
        fields
            .append("user-agent", USER_AGENT.as_bytes())
            .map_err(|_| Unanswered::HeaderRefused)?;
    }
    let scheme = if url.scheme() == "http" {
        Scheme::Http
    } else {
        Scheme::Https
    };
    let path = url.query().map_or_else(
        || url.path().to_owned(),
        |query| format!("{}?{query}", url.path()),
    );
    let method = match method {
        Method::Get => WireMethod::Get,
        Method::Head => WireMethod::Head,
        Method::Post => WireMethod::Post,
        Method::Put => WireMethod::Put,
        Method::Patch => WireMethod::Patch,
        Method::Delete => WireMethod::Delete,
        Method::Options => WireMethod::Options,
    };
    let outgoing = OutgoingRequest::new(fields);
    outgoing
        .set_method(&method)
        .and(outgoing.set_scheme(Some(&scheme)))
        .and(outgoing.set_authority(Some(url.authority())))
        .and(outgoing.set_path_with_query(Some(&path)))
        .map_err(|()| Unanswered::Denied)?;
    Ok(outgoing)
}

/// Writes the body. A host that does not take all of it says why in its answer.
fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), Unanswered> {
    let stream = body.write().map_err(|()| Unanswered::Broken)?;
    let written = bytes
        .chunks(WRITE_BYTES_MAX)
        .try_for_each(|chunk| stream.blocking_write_and_flush(chunk));
    drop(stream);
    match written {
        Ok(()) => OutgoingBody::finish(body, None).map_err(|code| unanswered(&code)),
        Err(_) => Ok(()),
    }
}

fn unanswered(code: &ErrorCode) -> Unanswered {
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::HttpRequestUriInvalid => Unanswered::Denied,
        ErrorCode::ConnectionLimitReached => Unanswered::Busy,
        ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationNotFound
        | ErrorCode::DnsError(_)
        | ErrorCode::ConnectionRefused => Unanswered::Unreachable,
        ErrorCode::HttpResponseTimeout
        | ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout => Unanswered::TimedOut,
        ErrorCode::HttpRequestBodySize(_) => Unanswered::RequestTooLarge,
        ErrorCode::HttpResponseBodySize(_) => Unanswered::TooLarge,
        // The rest says in more detail what nobody here can do anything about.
        _ => Unanswered::Broken,
    }
}

//! One GET over `wasi:http`.

use super::{Answer, Unanswered};
use std::io::{self, Read};
use url::Url;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, StreamError};

/// The name of the client for servers.
const USER_AGENT: &str = concat!("agent-host-web/", env!("CARGO_PKG_VERSION"));
/// Bytes that are asked for at a time.
const READ_BYTES: u64 = 64 << 10;

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

pub(super) fn get(url: &Url, accept: &str) -> Result<Answer, Unanswered> {
    let headers = Fields::from_list(&[
        ("accept".to_owned(), accept.as_bytes().to_vec()),
        ("user-agent".to_owned(), USER_AGENT.as_bytes().to_vec()),
    ]);
    let request = OutgoingRequest::new(headers.map_err(|_| Unanswered::Denied)?);
    let scheme = if url.scheme() == "http" {
        Scheme::Http
    } else {
        Scheme::Https
    };
    let path = url.query().map_or_else(
        || url.path().to_owned(),
        |query| format!("{}?{query}", url.path()),
    );
    request
        .set_scheme(Some(&scheme))
        .and(request.set_authority(Some(url.authority())))
        .and(request.set_path_with_query(Some(&path)))
        .map_err(|()| Unanswered::Denied)?;
    let answer = handle(request, None).map_err(|code| unanswered(&code))?;
    answer.subscribe().block();
    let Some(Ok(response)) = answer.get() else {
        return Err(Unanswered::Broken);
    };
    let response = response.map_err(|code| unanswered(&code))?;
    let status = response.status();
    let headers = response.headers();
    let header = |name: &str| {
        headers
            .get(name)
            .into_iter()
            .next()
            .and_then(|value| String::from_utf8(value).ok())
    };
    let content_type = header("content-type");
    let location = header("location");
    drop(headers);
    let body = response.consume().map_err(|()| Unanswered::Broken)?;
    let stream = body.stream().map_err(|()| Unanswered::Broken)?;
    Ok(Answer {
        status,
        content_type,
        location,
        body: Box::new(Body {
            stream,
            _body: body,
            _response: response,
        }),
    })
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
        ErrorCode::HttpResponseBodySize(_) => Unanswered::TooLarge,
        // The rest says in more detail what nobody here can do anything about.
        _ => Unanswered::Broken,
    }
}

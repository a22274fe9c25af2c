//! Sending a request: over `wasi:http` in a component, to the test's server in a native test.

#[cfg(target_family = "wasm")]
pub(crate) use self::host::send;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::harness::answer as send;

#[cfg(target_family = "wasm")]
mod host {
    use crate::http::{HttpError, Method, Outgoing, Response, Scheme, secret_in};
    use std::time::Duration;
    use wasip2::clocks::monotonic_clock::subscribe_duration;
    use wasip2::http::outgoing_handler::handle;
    use wasip2::http::types as wire;
    use wasip2::http::types::{ErrorCode, Fields, HeaderError, OutgoingBody, OutgoingRequest};
    use wasip2::io::poll::{Pollable, poll};
    use wasip2::io::streams::{InputStream, OutputStream, StreamError};

    /// Bytes that are read at a time.
    const READ_BYTES: u64 = 64 << 10;

    /// Sends a request and reads its answer, one byte more of the body than the request allows at
    /// most.
    pub(crate) fn send(request: &Outgoing) -> Result<Response, HttpError> {
        let exchange = Exchange {
            request,
            deadline: Deadline::after(request.timeout()),
        };
        exchange.run()
    }

    /// The end of the time that a request has, if it has one.
    struct Deadline(Option<Pollable>);

    impl Deadline {
        fn after(timeout: Option<Duration>) -> Self {
            Self(timeout.map(|timeout| {
                subscribe_duration(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
            }))
        }

        /// Waits until something is ready. Returns false if the deadline comes first.
        fn wait(&self, on: &Pollable) -> bool {
            match &self.0 {
                Some(deadline) => poll(&[on, deadline]).contains(&0),
                None => {
                    on.block();
                    true
                }
            }
        }
    }

    /// The reason that a body is not written to its end.
    enum Unwritten {
        TimedOut,
        /// The host does not take it; its answer says why.
        Closed,
    }

    struct Exchange<'a> {
        request: &'a Outgoing,
        deadline: Deadline,
    }

    // The host wants handles back in the order opposite to that in which it gave them. So variables
    // are declared in that order, and dropped in the opposite one.
    impl Exchange<'_> {
        fn run(&self) -> Result<Response, HttpError> {
            let outgoing = self.outgoing()?;
            let body = self.request.body();
            let writing = if body.is_empty() {
                None
            } else {
                Some(outgoing.body().map_err(|()| self.broken())?)
            };
            let answer = handle(outgoing, None).map_err(|code| self.error(&code))?;
            if let Some(writing) = writing {
                self.write(writing, body)?;
            }
            if !self.deadline.wait(&answer.subscribe()) {
                return Err(self.timed_out());
            }
            let Some(Ok(answered)) = answer.get() else {
                return Err(self.broken());
            };
            let incoming = answered.map_err(|code| self.error(&code))?;
            let mut response = Response::new(incoming.status());
            for (name, value) in incoming.headers().entries() {
                if let Ok(value) = String::from_utf8(value) {
                    response = response.with_header(name, value);
                }
            }
            let body = incoming.consume().map_err(|()| self.broken())?;
            let stream = body.stream().map_err(|()| self.broken())?;
            Ok(response.with_body(self.read(&stream)?))
        }

        fn outgoing(&self) -> Result<OutgoingRequest, HttpError> {
            let headers = Fields::new();
            for (name, value) in self.request.headers() {
                headers
                    .append(name, value.as_bytes())
                    .map_err(|error| match error {
                        HeaderError::Forbidden => self.forbidden(name, value),
                        HeaderError::InvalidSyntax | HeaderError::Immutable => {
                            HttpError::InvalidHeader { name: name.clone() }
                        }
                    })?;
            }
            let url = &self.request.url;
            let scheme = match url.scheme {
                Scheme::Http => wire::Scheme::Http,
                Scheme::Https => wire::Scheme::Https,
            };
            let method = match self.request.method() {
                Method::Get => wire::Method::Get,
                Method::Head => wire::Method::Head,
                Method::Post => wire::Method::Post,
                Method::Put => wire::Method::Put,
                Method::Patch => wire::Method::Patch,
                Method::Delete => wire::Method::Delete,
                Method::Options => wire::Method::Options,
            };
            let outgoing = OutgoingRequest::new(headers);
            outgoing
                .set_method(&method)
                .and(outgoing.set_scheme(Some(&scheme)))
                .and(outgoing.set_authority(Some(&url.authority)))
                .and(outgoing.set_path_with_query(Some(&url.path_and_query)))
                .map_err(|()| HttpError::InvalidUrl {
                    url: url.text(),
                    fault: "the host cannot read it",
                })?;
            Ok(outgoing)
        }

        fn write(&self, body: OutgoingBody, bytes: &[u8]) -> Result<(), HttpError> {
            let stream = body.write().map_err(|()| self.broken())?;
            let written = self.write_all(&stream, bytes);
            drop(stream);
            match written {
                Ok(()) => OutgoingBody::finish(body, None).map_err(|code| self.error(&code)),
                Err(Unwritten::TimedOut) => Err(self.timed_out()),
                Err(Unwritten::Closed) => Ok(()),
            }
        }

        fn write_all(&self, stream: &OutputStream, bytes: &[u8]) -> Result<(), Unwritten> {
            let closed = |_: StreamError| Unwritten::Closed;
            let mut rest = bytes;
            loop {
                if !self.deadline.wait(&stream.subscribe()) {
                    return Err(Unwritten::TimedOut);
                }
                let room = stream.check_write().map_err(closed)?;
                let now = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
                let (chunk, later) = rest.split_at(now);
                stream.write(chunk).map_err(closed)?;
                rest = later;
                if rest.is_empty() {
                    return stream.flush().map_err(closed);
                }
            }
        }

        fn read(&self, stream: &InputStream) -> Result<Vec<u8>, HttpError> {
            let mut bytes = Vec::new();
            while bytes.len() <= self.request.body_bytes_max {
                match stream.read(READ_BYTES) {
                    Ok(chunk) if chunk.is_empty() => {
                        if !self.deadline.wait(&stream.subscribe()) {
                            return Err(self.timed_out());
                        }
                    }
                    Ok(chunk) => bytes.extend(chunk),
                    Err(StreamError::Closed) => break,
                    Err(StreamError::LastOperationFailed(error)) => {
                        return Err(wire::http_error_code(&error)
                            .map_or_else(|| self.broken(), |code| self.error(&code)));
                    }
                }
            }
            Ok(bytes)
        }

        /// The error of a header that the component may not set: a credential without a secret that
        /// is bound there, or one of the connection.
        fn forbidden(&self, name: &str, value: &str) -> HttpError {
            let secret = secret_in(value).unwrap_or("NAME");
            let grant = self.request.secret_grant(secret, "header", name);
            HttpError::Refused {
                asked: format!("the header `{name}`"),
                grants: format!("secrets = [{grant}]"),
            }
        }

        fn error(&self, code: &ErrorCode) -> HttpError {
            match code {
                ErrorCode::HttpRequestDenied
                | ErrorCode::HttpRequestUriInvalid
                | ErrorCode::HttpRequestMethodInvalid
                | ErrorCode::DestinationIpProhibited => self.request.refused(),
                ErrorCode::ConnectionLimitReached => HttpError::Busy,
                ErrorCode::DestinationUnavailable
                | ErrorCode::DestinationNotFound
                | ErrorCode::DestinationIpUnroutable
                | ErrorCode::DnsError(_)
                | ErrorCode::ConnectionRefused
                | ErrorCode::TlsProtocolError
                | ErrorCode::TlsCertificateError
                | ErrorCode::TlsAlertReceived(_) => HttpError::Unreachable {
                    authority: self.authority(),
                },
                ErrorCode::HttpResponseTimeout
                | ErrorCode::DnsTimeout
                | ErrorCode::ConnectionTimeout
                | ErrorCode::ConnectionReadTimeout
                | ErrorCode::ConnectionWriteTimeout => self.timed_out(),
                ErrorCode::HttpRequestBodySize(_)
                | ErrorCode::HttpRequestUriTooLong
                | ErrorCode::HttpRequestHeaderSize(_)
                | ErrorCode::HttpRequestHeaderSectionSize(_) => HttpError::RequestTooLarge {
                    authority: self.authority(),
                },
                ErrorCode::HttpResponseBodySize(_)
                | ErrorCode::HttpResponseHeaderSize(_)
                | ErrorCode::HttpResponseHeaderSectionSize(_) => HttpError::ResponseTooLarge {
                    authority: self.authority(),
                    bytes_max: None,
                },
                // The rest says in more detail what nobody here can do anything about.
                _ => self.broken(),
            }
        }

        fn timed_out(&self) -> HttpError {
            HttpError::TimedOut {
                authority: self.authority(),
            }
        }

        fn broken(&self) -> HttpError {
            HttpError::Broken {
                authority: self.authority(),
            }
        }

        fn authority(&self) -> String {
            self.request.authority().to_owned()
        }
    }
}

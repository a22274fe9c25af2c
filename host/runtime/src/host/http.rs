//! `wasi:http`: a guest's requests go out through egress under what its call is bound to, and in no
//! other way.
//!
//! The guest's call becomes one [`Request`]; every rule is kept by egress, which also makes the
//! records. Here bodies are collected and handed back, and errors go to the guest without a reason:
//! all refusals look the same.

use crate::call_audit::CallAudit;
use crate::host::audit_recorder::AuditRecorder;
use crate::host::secrets::{BoundSecrets, describe_use};
use bytes::Bytes;
use domain::egress::{
    EgressGrant, HOP_KINDS_MAX, Method, RequestHeader, Target, permit, request_header,
};
use domain::grant::capability;
use egress::{ByteBudget, Caller, Egress, EgressError, GuestError, Request, Response};
use http::HeaderName;
use http::uri::Scheme;
use http_body_util::BodyExt;
use std::future::ready;
use std::sync::Arc;
use tokio::sync::Semaphore;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

/// Requests of one call whose body is collected, or whose answer is waited for, at the same time;
/// more wait.
const CALL_REQUESTS_MAX: usize = 8;
/// Bytes of an outgoing body that the host holds until they are read.
const BODY_CHUNK_BYTES_MAX: usize = 64 << 10;

type Later<T> = Box<dyn Future<Output = T> + Send>;
type Answered = Result<(http::Response<WasiBody>, Later<Result<(), Error>>), Error>;

/// A call's way out, or the lack of one.
#[derive(Debug, Default)]
pub(crate) struct EgressScope {
    open: Option<Open>,
    /// Headers that a guest may write because a secret is bound to them.
    secret_headers: Arc<[HeaderName]>,
    recorder: AuditRecorder,
}

#[derive(Debug, Clone)]
struct Open {
    egress: Arc<Egress>,
    grants: Arc<[EgressGrant]>,
    secrets: BoundSecrets,
    recorder: AuditRecorder,
    caller: Caller,
    requests: Arc<Semaphore>,
    audit: CallAudit,
}

/// The call whose requests go out.
pub(crate) struct Sender<'a> {
    /// The name under which its component's requests are counted.
    pub(crate) component: String,
    /// The requests that it may send.
    pub(crate) network: &'a [EgressGrant],
    /// Bytes that all its requests may send and receive together.
    pub(crate) bytes_max: u64,
    pub(crate) secrets: BoundSecrets,
    pub(crate) recorder: AuditRecorder,
    pub(crate) audit: &'a CallAudit,
}

impl EgressScope {
    /// Opens the way out of one call. Without an egress there is none, even if requests are
    /// granted.
    pub(crate) fn open(egress: Option<Arc<Egress>>, sender: Sender<'_>) -> Self {
        let Sender {
            component,
            network,
            bytes_max,
            secrets,
            recorder,
            audit,
        } = sender;
        let records = audit.records();
        let secret_headers = secrets.headers();
        let redactor = secrets.redactor();
        let open = egress.map(|egress| Open {
            egress,
            grants: network.into(),
            secrets,
            recorder: recorder.clone(),
            caller: Caller {
                component,
                budget: ByteBudget::of(bytes_max),
                records,
                redactor,
            },
            requests: Arc::new(Semaphore::new(CALL_REQUESTS_MAX)),
            audit: audit.clone(),
        });
        Self {
            open,
            secret_headers,
            recorder,
        }
    }
}

/// Notes a refusal that egress did not hear of.
fn record_refusal(recorder: &AuditRecorder, authority: &str, why: &str) {
    recorder.refused(capability::NET_HTTP, || {
        format!("wasi:http/outgoing-handler.handle `{authority}`{why}")
    });
}

impl WasiHttpHooks for EgressScope {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Later<Result<(), Error>>,
    ) -> Later<Answered> {
        let authority = request
            .uri()
            .authority()
            .map_or("", |authority| authority.as_str())
            .to_owned();
        let Some(open) = self.open.clone() else {
            record_refusal(&self.recorder, &authority, "");
            return Box::new(ready(Err(Error::HttpRequestDenied)));
        };
        let method = match Method::parse(request.method().as_str()) {
            Ok(method) => method,
            Err(error) => {
                let why = format!(": the method: {error}");
                record_refusal(&self.recorder, &authority, &why);
                return Box::new(ready(Err(Error::HttpRequestDenied)));
            }
        };
        Box::new(async move {
            let response = match open.send(method, request).await? {
                Ok(response) => response,
                Err(error) => return Err(guest_error(&error)),
            };
            let body = response.body.map_err(|error| guest_error(&error));
            let mut answer = http::Response::new(body.boxed_unsync());
            *answer.status_mut() = response.status;
            *answer.headers_mut() = response.headers;
            let nothing_more: Later<Result<(), Error>> = Box::new(ready(Ok(())));
            Ok((answer, nothing_more))
        })
    }

    /// Checks a header that a guest writes to its own fields. The filter is also for those of
    /// answers.
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        let forbidden = (self.forbidden_header_filter())(name);
        if forbidden {
            self.recorder.refused(capability::NET_HTTP, || {
                format!("wasi:http/types.fields `{name}`")
            });
        }
        forbidden
    }

    /// Refuses such a header at once when a guest sets it. In an answer, a header of that name is
    /// withheld.
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        let secret_headers = self.secret_headers.clone();
        Arc::new(move |name| match request_header(name.as_str()) {
            RequestHeader::Forbidden => true,
            RequestHeader::Credential => !secret_headers.contains(name),
            RequestHeader::Sent | RequestHeader::HostsOwn => false,
        })
    }

    fn is_supported_scheme(&mut self, scheme: &Scheme) -> bool {
        *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS
    }

    /// Egress says where the request goes.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES_MAX
    }
}

impl Open {
    /// Sends a request. The outer error is that of a guest that does not finish its own body.
    async fn send(
        self,
        method: Method,
        request: http::Request<WasiBody>,
    ) -> Result<Result<Response, EgressError>, Error> {
        let Ok(_turn) = self.requests.acquire().await else {
            return Err(Error::ConnectionLimitReached);
        };
        if self.audit.is_full() {
            self.recorder.limited(capability::NET_HTTP, || {
                format!("more than {HOP_KINDS_MAX} different requests")
            });
            return Err(Error::ConnectionLimitReached);
        }
        let (mut parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let placed = self.secrets.credentials(&url, &mut parts.headers);
        let (bound, uses) = placed.map_err(|misplaced| {
            self.recorder
                .refused(capability::SECRETS_USE, || misplaced.to_string());
            Error::HttpRequestDenied
        })?;
        // What will be refused is not waited for. The refusal itself is made by egress, so that it
        // is on record.
        let target = Target::parse(&url).ok();
        let permitted = target.and_then(|target| permit(&target, method, &self.grants).ok());
        let bytes_max = permitted.map(|permit| permit.limits().request_bytes_max);
        let body = match bytes_max {
            Some(bytes_max) => collected(body, bytes_max).await?,
            None => Bytes::new(),
        };
        for grant in uses.into_iter().filter(|_| bytes_max.is_some()) {
            self.recorder.used(&describe_use(grant));
        }
        let request = Request {
            caller: self.caller,
            method,
            url,
            headers: parts.headers,
            bound,
            body,
        };
        Ok(Box::pin(self.egress.send(request, &self.grants)).await)
    }
}

/// A guest's body, as far as it takes to see that it is too large. Trailers do not go out.
async fn collected(mut body: WasiBody, bytes_max: u64) -> Result<Bytes, Error> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        all.extend_from_slice(&data);
        if all.len() as u64 > bytes_max {
            break;
        }
    }
    Ok(all.into())
}

/// Returns the guest's error for an error of egress.
fn guest_error(error: &EgressError) -> Error {
    match error.seen() {
        GuestError::Invalid | GuestError::Denied => Error::HttpRequestDenied,
        GuestError::Busy => Error::ConnectionLimitReached,
        GuestError::Unreachable => Error::DestinationUnavailable,
        GuestError::TimedOut => Error::HttpResponseTimeout,
        GuestError::TooLarge if error.code() == "request-too-large" => {
            Error::HttpRequestBodySize(None)
        }
        GuestError::TooLarge => Error::HttpResponseBodySize(None),
        GuestError::Broken => Error::HttpProtocolError,
    }
}

//! `wasi:http`: a guest's requests go out through egress under what its call is bound to, and in no other way.
//!
//! The guest's words become one [`Request`]; every rule is kept by egress, which also makes the records. Here bodies are collected and
//! handed back, and errors are told to the guest without a reason: all refusals look the same.

use crate::host::denials::Denials;
use bytes::Bytes;
use domain::egress::{EgressGrant, Hop, Method, RequestHeader, Target, Traffic, permit, request_header};
use egress::{ByteBudget, Caller, Egress, EgressError, Record, Records, Request, Response, Seen};
use http::uri::Scheme;
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

/// Bytes that all requests of one call may send and receive together: 1 GiB.
const CALL_BYTES_MAX: u64 = 1 << 30;
/// Requests of one call whose body is collected, or whose answer is waited for, at the same time; more wait.
const CALL_REQUESTS_MAX: usize = 8;
/// Bytes of an outgoing body that the host holds while nobody reads them.
const BODY_CHUNK_BYTES_MAX: usize = 64 << 10;
/// Milliseconds that the end of a call waits for requests that it cut off to be put on record.
const CUT_OFF_MS_MAX: u64 = 1_000;

type Later<T> = Box<dyn Future<Output = T> + Send>;
type Answered = Result<(http::Response<WasiBody>, Later<Result<(), Error>>), Error>;

/// What a call's requests leave behind.
#[derive(Debug, Default)]
struct Log {
    traffic: Traffic,
    denials: Denials,
}

/// A call's way out, or the lack of one.
#[derive(Debug, Default)]
pub(crate) struct WayOut {
    open: Option<Open>,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Clone)]
struct Open {
    egress: Arc<Egress>,
    grants: Arc<[EgressGrant]>,
    caller: Caller,
    requests: Arc<Semaphore>,
}

/// What a call's way out leaves behind, to be collected when the call has ended and its store is gone.
#[derive(Debug)]
pub(crate) struct Passed {
    log: Arc<Mutex<Log>>,
    /// Closed once no request can be put on record any more.
    over: mpsc::Receiver<Infallible>,
}

/// Where egress puts the records of one call.
#[derive(Debug)]
struct Ledger {
    log: Arc<Mutex<Log>>,
    _over: mpsc::Sender<Infallible>,
}

impl WayOut {
    /// The way out of one call of a component under these grants. Without an egress there is none, whatever is granted.
    pub(crate) fn open(egress: Option<Arc<Egress>>, grants: &[EgressGrant], component: String) -> (Self, Passed) {
        let log = Arc::<Mutex<Log>>::default();
        let (sender, over) = mpsc::channel(1);
        let records = Arc::new(Ledger { log: log.clone(), _over: sender });
        let open = egress.map(|egress| Open {
            egress,
            grants: grants.into(),
            caller: Caller { component, budget: ByteBudget::of(CALL_BYTES_MAX), records },
            requests: Arc::new(Semaphore::new(CALL_REQUESTS_MAX)),
        });
        (Self { open, log: log.clone() }, Passed { log, over })
    }

    /// The refusals so far. Leaves none behind.
    pub(crate) fn denied(&self) -> Vec<String> {
        locked(&self.log).denials.take()
    }
}

impl Passed {
    /// Every hop of the call. Those that its end cut off are closed first.
    pub(crate) async fn collect(mut self) -> Traffic {
        // What does not go in time is not waited for: its record is lost, and nothing else.
        let _ = timeout(Duration::from_millis(CUT_OFF_MS_MAX), self.over.recv()).await;
        std::mem::take(&mut locked(&self.log).traffic)
    }
}

impl Records for Ledger {
    fn put(&self, record: Record) {
        let Record { method, scheme, host, port, path, status, outcome, bytes_in, bytes_out, ms, .. } = record;
        let hop = Hop { method, scheme, host, port, path, status, verdict: outcome.to_owned(), bytes_in, bytes_out, ms };
        locked(&self.log).traffic.add(hop);
    }
}

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a refusal for the operator, with the rule behind it, if any.
fn note(log: &Mutex<Log>, authority: &str, rule: Option<&str>) {
    let rule = rule.map(|rule| format!(": {rule}")).unwrap_or_default();
    locked(log).denials.note(&format!("wasi:http/outgoing-handler.handle `{authority}`{rule}"));
}

impl WasiHttpHooks for WayOut {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Later<Result<(), Error>>,
    ) -> Later<Answered> {
        let authority = request.uri().authority().map_or("", |authority| authority.as_str()).to_owned();
        let method = Method::parse(request.method().as_str());
        let (open, method) = match (self.open.clone(), method) {
            (Some(open), Ok(method)) => (open, method),
            (None, _) => {
                note(&self.log, &authority, None);
                return Box::new(ready(Err(Error::HttpRequestDenied)));
            }
            (Some(_), Err(error)) => {
                note(&self.log, &authority, Some(&format!("the method: {error}")));
                return Box::new(ready(Err(Error::HttpRequestDenied)));
            }
        };
        let log = self.log.clone();
        Box::new(async move {
            let response = match open.send(method, request).await? {
                Ok(response) => response,
                Err(error) => {
                    if matches!(error.seen(), Seen::Invalid | Seen::Denied) {
                        note(&log, &authority, Some(&error.detail()));
                    }
                    return Err(told(&error));
                }
            };
            let Response { status, headers, body, .. } = response;
            let mut response = http::Response::new(body.map_err(|error| told(&error)).boxed_unsync());
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            let nothing_more: Later<Result<(), Error>> = Box::new(ready(Ok(())));
            Ok((response, nothing_more))
        })
    }

    /// A guest that sets such a header is told so when it does. Of an answer, what is so called is withheld.
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|name| matches!(request_header(name.as_str()), RequestHeader::Forbidden | RequestHeader::Credential))
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
    async fn send(self, method: Method, request: http::Request<WasiBody>) -> Result<Result<Response, EgressError>, Error> {
        let Self { egress, grants, caller, requests } = self;
        let Ok(_turn) = requests.acquire().await else { return Err(Error::ConnectionLimitReached) };
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        // What will be refused is not waited for. The refusal itself is made by egress, so that it is on record.
        let bytes_max = Target::parse(&url).ok().and_then(|target| Some(permit(&target, method, &grants).ok()?.limits().request_bytes_max));
        let body = match bytes_max {
            Some(bytes_max) => collected(body, bytes_max).await?,
            None => Bytes::new(),
        };
        let request = Request { caller, method, url, headers: parts.headers, bound: http::HeaderMap::new(), body };
        Ok(Box::pin(egress.send(request, &grants)).await)
    }
}

/// A guest's body, as far as it takes to see that it is too large. Trailers do not go out.
async fn collected(mut body: WasiBody, bytes_max: u64) -> Result<Bytes, Error> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        all.extend_from_slice(&data);
        if all.len() as u64 > bytes_max {
            break;
        }
    }
    Ok(all.into())
}

/// What a guest is told of an error.
fn told(error: &EgressError) -> Error {
    match error.seen() {
        Seen::Invalid | Seen::Denied => Error::HttpRequestDenied,
        Seen::Busy => Error::ConnectionLimitReached,
        Seen::Unreachable => Error::DestinationUnavailable,
        Seen::TimedOut => Error::HttpResponseTimeout,
        Seen::TooLarge if error.code() == "request-too-large" => Error::HttpRequestBodySize(None),
        Seen::TooLarge => Error::HttpResponseBodySize(None),
        Seen::Broken => Error::HttpProtocolError,
    }
}

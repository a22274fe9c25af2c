//! The sequence of gates, once for each hop.

use crate::awake::{Instant, sleep_until};
use crate::body::{Body, Gzip, Open, Response};
use crate::dial::{Deadline, Dial, Resolve};
use crate::error::{EgressError, Refused, TooLarge};
use crate::exchange::{ConnectionKey, Home, Pool};
use crate::exchange::{Link, Unanswered, exchange};
use crate::headers::{self, After, Encoding};
use crate::leg::{Head, Leg};
use crate::limits::Limits;
use crate::record::Trace;
use crate::request::{Caller, Request, RequestPermit, RequestSemaphore};
use crate::wire::{ByteBudget, Meter};
use bytes::Bytes;
use domain::egress::{EgressGrant, RequestLimits, Target, TargetError, permit};
use domain::redact::Redactor;
use http::uri::PathAndQuery;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use std::sync::Arc;
use std::time::Duration;

/// The way out. One for all components, so that what is under way can be counted.
#[derive(Debug)]
pub struct Egress {
    resolver: Arc<dyn Resolve>,
    tls: Arc<rustls::ClientConfig>,
    limits: Limits,
    requests: RequestSemaphore,
    pool: Arc<Pool>,
    refusals: Refusals,
}

/// The answer to a request that no grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusals {
    /// The refusal.
    Reported,
    /// A stand-in for the server's answer.
    Rehearsed,
}

/// The state that all hops of a request share. It is made on the first hop that is permitted.
struct Passage {
    deadline: Deadline,
    request_permit: RequestPermit,
}

/// The head of an answer, and what is left to read.
struct Answer {
    head: http::Response<Incoming>,
    link: Link,
    home: Option<Home>,
    limits: RequestLimits,
    redirects_max: u8,
}

impl Egress {
    /// A way out by this resolver and this TLS: [`SystemResolver`](crate::SystemResolver) and
    /// [`system_tls`](crate::system_tls), unless a test says otherwise. TLS offers HTTP/1.1 and
    /// nothing else, and resumes no session.
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolve>, mut tls: rustls::ClientConfig, limits: Limits) -> Self {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        tls.resumption = rustls::client::Resumption::disabled();
        let pool = Arc::new(Pool::new(
            limits.idle_connections_max,
            limits.idle_connection_ms_max,
        ));
        Self {
            resolver,
            tls: Arc::new(tls),
            requests: RequestSemaphore::new(&limits),
            limits,
            pool,
            refusals: Refusals::Reported,
        }
    }

    /// The same way out for trying calls: a request that no grant allows is recorded as refused and
    /// goes nowhere, and its caller gets an empty JSON object with status 200. A call then goes on
    /// to its next requests. Never for calls that count.
    #[must_use]
    pub fn rehearsing(self) -> Self {
        Self {
            refusals: Refusals::Rehearsed,
            ..self
        }
    }

    /// Sends a request under these grants and follows redirects as far as the grants do. The answer
    /// is there when its head is; its body is still to be read. A caller that stops waiting ends
    /// the connection.
    ///
    /// # Errors
    /// The request is refused, nobody answers, or the answer is too large, too slow or broken. Each
    /// hop has its record by then.
    pub async fn send(
        &self,
        request: Request,
        grants: &[EgressGrant],
    ) -> Result<Response, EgressError> {
        let Request {
            caller,
            method,
            url,
            headers,
            bound,
            body,
        } = request;
        let mut trace = Trace::begin(&caller, 0, method);
        let target = recorded(
            &mut trace,
            Target::parse(&url).map_err(|error| Refused::Url(error).into()),
        )?;
        let mut leg = Leg {
            target,
            method,
            headers,
            bound,
            body,
            hop: 0,
        };
        let mut passage = None;
        // Whoever got a secret on one leg may send it back on a later one that carries none.
        let mut has_secret_in_url = false;
        loop {
            has_secret_in_url |= !leg.bound.is_empty();
            trace.target(&leg.target);
            // On the heap: it is large, and lives in the caller's own future.
            let answer = Box::pin(self.hop(&caller, &leg, grants, &mut passage, &mut trace)).await;
            let answer = match recorded(&mut trace, answer) {
                Err(error) if self.rehearses(&error) => return Ok(Response::stand_in(leg.target)),
                answer => answer?,
            };
            let head = Head {
                status: answer.head.status(),
                headers: answer.head.headers(),
            };
            match recorded(
                &mut trace,
                leg.next(&head, answer.redirects_max, &caller.redactor),
            )? {
                None => {
                    if has_secret_in_url {
                        recorded(
                            &mut trace,
                            headers::check_searchable(head.status, head.headers),
                        )?;
                    }
                    return self.response(leg.target, answer, passage, trace, caller.redactor);
                }
                Some(next) => {
                    trace.end("redirected");
                    trace = Trace::begin(&caller, next.hop, next.method);
                    leg = next;
                }
            }
        }
    }

    /// Returns whether an error is answered with a stand-in.
    fn rehearses(&self, error: &EgressError) -> bool {
        let is_denied = matches!(error, EgressError::Refused(Refused::Denied(_)));
        is_denied && self.refusals == Refusals::Rehearsed
    }

    /// One hop: a grant that fits, a permit of the semaphore, dial, exchange.
    async fn hop(
        &self,
        caller: &Caller,
        leg: &Leg,
        grants: &[EgressGrant],
        passage: &mut Option<Passage>,
        trace: &mut Trace,
    ) -> Result<Answer, EgressError> {
        let permit = permit(&leg.target, leg.method, grants).map_err(Refused::Denied)?;
        trace.permit(&permit);
        let limits = permit.limits();
        let after = if self.pool.keeps() {
            After::Keep
        } else {
            After::Close
        };
        let request = request(leg, &limits, after)?;
        if caller.budget.left() == 0 {
            return Err(EgressError::BudgetSpent);
        }
        let Passage {
            deadline,
            request_permit,
        } = match passage {
            Some(passage) => passage,
            None => {
                let total_ms_max = self.limits.total_ms_max.unwrap_or(limits.total_ms_max);
                let deadline = Deadline {
                    at: Instant::now() + Duration::from_millis(total_ms_max),
                    total_ms_max,
                };
                let request_permit = deadline
                    .cover(self.requests.acquire(&caller.component))
                    .await?;
                passage.insert(Passage {
                    deadline,
                    request_permit,
                })
            }
        };
        let dial = Dial {
            target: &leg.target,
            permit: &permit,
            resolver: self.resolver.as_ref(),
            tls: &self.tls,
            limits: &self.limits,
            deadline: *deadline,
        };
        let key = ConnectionKey::new(&caller.component, &leg.target);
        let asking = self.ask(&dial, &key, request, &caller.budget, request_permit, trace);
        let (head, link) = asking.await?;
        trace.status(head.status().as_u16());
        let home = self.pool.home(key);
        Ok(Answer {
            head,
            link,
            home,
            limits,
            redirects_max: permit.grant.redirects(),
        })
    }

    /// Sends a request over a waiting connection that was not closed meanwhile, or else over a new
    /// one.
    async fn ask(
        &self,
        dial: &Dial<'_>,
        key: &ConnectionKey,
        request: http::Request<Full<Bytes>>,
        budget: &ByteBudget,
        request_permit: &RequestPermit,
        trace: &mut Trace,
    ) -> Result<(http::Response<Incoming>, Link), EgressError> {
        let tally = Arc::clone(trace.tally());
        let first_byte_ms_max = self.limits.first_byte_ms_max;
        while let Some(mut link) = self.pool.take(key, dial.permit).await {
            trace.addresses(&[link.address()]);
            trace.dialled(link.address());
            link.meter().pass_on(Arc::clone(&tally), budget.clone());
            let request = request.clone();
            match exchange(&mut link, request, &tally, dial.deadline, first_byte_ms_max).await {
                Ok(head) => return Ok((head, link)),
                Err(Unanswered::Unsent(_)) => {}
                Err(Unanswered::Failed(error)) => return Err(error),
            }
        }
        let dialled = dial.open(request_permit, trace).await?;
        let meter = Meter::new(Arc::clone(&tally), budget.clone());
        let mut link = Link::begin(dialled, meter).await?;
        match exchange(&mut link, request, &tally, dial.deadline, first_byte_ms_max).await {
            Ok(head) => Ok((head, link)),
            Err(Unanswered::Unsent(error) | Unanswered::Failed(error)) => Err(error),
        }
    }

    /// Makes the response of a request whose last hop has the head of an answer.
    fn response(
        &self,
        target: Target,
        answer: Answer,
        passage: Option<Passage>,
        mut trace: Trace,
        redactor: Redactor,
    ) -> Result<Response, EgressError> {
        let Answer {
            head,
            link,
            home,
            limits,
            ..
        } = answer;
        let (parts, incoming) = head.into_parts();
        // No hop was permitted without a passage.
        let Some(Passage {
            deadline,
            request_permit,
        }) = passage
        else {
            return Err(EgressError::Busy);
        };
        let bytes_max = limits.response_bytes_max;
        let stated = incoming.size_hint().lower();
        let size = if stated > bytes_max {
            Err(TooLarge::ResponseBody { bytes_max }.into())
        } else {
            Ok(())
        };
        recorded(&mut trace, size)?;
        // Nothing is to be unpacked where nothing comes, as after HEAD; the header then speaks of
        // what would have come.
        let encoding = if incoming.is_end_stream() {
            Encoding::Plain
        } else {
            recorded(&mut trace, headers::encoding(&parts.headers))?
        };
        let headers = headers::incoming(parts.headers, encoding, &redactor);
        let body = Body::new(Open {
            incoming,
            link,
            home,
            gzip: (encoding == Encoding::Gzip).then(Gzip::new),
            wire_left: bytes_max,
            left: bytes_max,
            bytes_max,
            over: Box::pin(sleep_until(deadline.at)),
            deadline,
            idle: None,
            idle_ms_max: self.limits.idle_ms_max,
            redaction: (!redactor.is_empty()).then(|| redactor.begin()),
            redactor,
            last: None,
            trace,
            _request_permit: request_permit,
        });
        Ok(Response {
            status: parts.status,
            headers,
            body,
            target,
        })
    }
}

/// Puts an error on record on its way up.
fn recorded<T>(trace: &mut Trace, result: Result<T, EgressError>) -> Result<T, EgressError> {
    result.inspect_err(|error| trace.fail(error))
}

/// Builds the request of one hop as it goes over the wire. Its first line has the path and query of
/// the target, the credentials are put in, and it has nothing else.
fn request(
    leg: &Leg,
    limits: &RequestLimits,
    after: After,
) -> Result<http::Request<Full<Bytes>>, EgressError> {
    let bytes = leg.body.len() as u64;
    let bytes_max = limits.request_bytes_max;
    if bytes > bytes_max {
        return Err(TooLarge::RequestBody { bytes, bytes_max }.into());
    }
    let headers = headers::outgoing(leg, after)?;
    let unsendable = || Refused::Url(TargetError::Character);
    let path: PathAndQuery = leg
        .bound
        .put_into(leg.target.path(), leg.target.query())
        .try_into()
        .map_err(|_| unsendable())?;
    let mut request = http::Request::new(Full::new(leg.body.clone()));
    *request.method_mut() =
        http::Method::from_bytes(leg.method.as_str().as_bytes()).map_err(|_| unsendable())?;
    *request.uri_mut() = path.into();
    *request.headers_mut() = headers;
    Ok(request)
}

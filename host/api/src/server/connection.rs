//! One connection, from its first byte to its last, with a deadline in every phase.

use super::body::{EndingBody, TimedBody};
use super::limits::{HEADER_BYTES_MAX, Limits};
use super::pulse::{Phase, Pulse};
use super::socket::Socket;
use axum::Router;
use axum::body::Body;
use http::HeaderValue;
use http::header::CONNECTION;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// The connection on which a request came, in the extensions of every request.
#[derive(Debug, Clone)]
pub struct Connected {
    /// The peer.
    pub peer: SocketAddr,
    /// Closes the connection at once when cancelled: the way to part with a client that does not
    /// read.
    pub hang_up: CancellationToken,
}

/// Serves one connection until it ends, is hung up on, or misses a deadline. When `stop` is
/// cancelled it finishes the request in progress and takes no other.
pub(crate) async fn serve(
    stream: TcpStream,
    connected: Connected,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let pulse = Arc::new(Pulse::new());
    let hang_up = connected.hang_up.clone();
    let service = {
        let pulse = pulse.clone();
        service_fn(move |request| answer(request, router.clone(), &pulse, &connected, &limits))
    };
    let socket = Socket::new(TokioIo::new(stream), pulse.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The pulse keeps the time: hyper's own limit would also end idle connections.
        .header_read_timeout(None)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(socket, service);

    let mut connection = pin!(connection);
    let mut stopped = pin!(stop.cancelled());
    let mut hung_up = pin!(hang_up.cancelled());
    let mut alarm = pin!(sleep_until(
        pulse.deadline(&limits).unwrap_or_else(Instant::now)
    ));
    let mut finishing = false;
    let mut answering = false;
    poll_fn(|cx| {
        if hung_up.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !finishing && stopped.as_mut().poll(cx).is_ready() {
            finishing = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(result) = connection.as_mut().poll(cx) {
            if let Err(error) = result {
                tracing::debug!(%error, "a connection ended early");
            }
            return Poll::Ready(());
        }
        if answering && pulse.phase() == Phase::Idle {
            // The peer has its answer, and nobody else knows yet that it has.
            store::point("api.answered");
        }
        answering = pulse.phase() == Phase::Busy;
        // The alarm is only moved forward, and looks at the true deadline when it rings: requests
        // that go well cost no timer.
        loop {
            let Some(deadline) = pulse.deadline(&limits) else {
                return Poll::Pending;
            };
            if deadline < alarm.deadline() {
                alarm.as_mut().reset(deadline);
            }
            ready!(alarm.as_mut().poll(cx));
            if deadline <= Instant::now() {
                tracing::debug!(phase = ?pulse.phase(), "a connection missed its deadline and was \
                                                         closed");
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
    })
    .await;
}

fn answer(
    mut request: http::Request<Incoming>,
    mut router: Router,
    pulse: &Arc<Pulse>,
    connected: &Connected,
    limits: &Limits,
) -> impl Future<Output = Result<http::Response<EndingBody<Body>>, Infallible>> + use<> {
    pulse.enter(Phase::Busy);
    request.extensions_mut().insert(connected.clone());
    pulse.owes(!request.body().is_end_stream());
    let body_ms_max = limits.body_ms_max;
    let request = request.map(|body| match body.is_end_stream() {
        true => Body::empty(),
        false => Body::new(TimedBody::new(
            body,
            Instant::now() + Duration::from_millis(body_ms_max),
            pulse.clone(),
        )),
    });
    let pulse = pulse.clone();
    let response = router.call(request);
    async move {
        let mut response = response.await?;
        if pulse.is_owing() {
            // hyper ends such a connection after the answer, and tells nobody: a client would send
            // its next request into it.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| EndingBody { body, pulse }))
    }
}

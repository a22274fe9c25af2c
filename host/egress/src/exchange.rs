//! One exchange over one connection: the request out, the head of the answer in.
//!
//! Nothing runs on its own: whoever waits for the answer drives the connection, and whoever drops it closes the connection.

use crate::dial::Deadline;
use crate::error::{Broken, EgressError, Phase, TooLarge};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::wire::{Tally, Wire};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// A connection that somebody has to drive. It is gone when it has ended.
pub(crate) type Driven = Option<Pin<Box<Connection<TokioIo<Wire>, Full<Bytes>>>>>;

/// Lets the connection do what it can.
pub(crate) fn drive(driven: &mut Driven, cx: &mut Context<'_>) -> Result<(), hyper::Error> {
    let Some(connection) = driven else { return Ok(()) };
    match connection.as_mut().poll(cx) {
        Poll::Pending => Ok(()),
        Poll::Ready(ended) => {
            *driven = None;
            ended
        }
    }
}

/// What an error of the HTTP library's is: the wire knows better than the library why it stopped.
pub(crate) fn failure(error: hyper::Error, tally: &Tally) -> EgressError {
    if tally.budget_is_spent() {
        EgressError::BudgetSpent
    } else if tally.prelude_is_exceeded() || error.is_parse_too_large() {
        TooLarge::ResponseHead.into()
    } else {
        Broken::Protocol(error).into()
    }
}

/// Sends a request and waits for the head of its answer.
///
/// # Errors
/// The server does not answer in time, or with nonsense, or with too much.
pub(crate) async fn exchange(
    wire: Wire,
    request: http::Request<Full<Bytes>>,
    tally: &Tally,
    waits: (Deadline, u64),
) -> Result<(http::Response<Incoming>, Driven), EgressError> {
    let (deadline, first_byte_ms_max) = waits;
    let mut builder = Builder::new();
    builder.max_headers(HEADERS_MAX).max_header_size(HEAD_BYTES_MAX).max_buf_size(HEAD_BYTES_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(wire)).await.map_err(Broken::Protocol)?;
    let mut driven: Driven = Some(Box::pin(connection));
    let mut answer = pin!(sender.send_request(request));
    let head = poll_fn(|cx| {
        if let Poll::Ready(head) = answer.as_mut().poll(cx) {
            return Poll::Ready(head);
        }
        if let Err(error) = drive(&mut driven, cx) {
            return Poll::Ready(Err(error));
        }
        answer.as_mut().poll(cx)
    });
    let head = deadline.cover(first_byte(head, tally, first_byte_ms_max)).await?;
    let head = head.map_err(|error| failure(error, tally))?;
    tally.head_is_done();
    if head.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(Broken::Upgrade.into());
    }
    Ok((head, driven))
}

/// Waits for the head. The time runs from the last byte that went out, so that a long request over a slow line is not cut.
async fn first_byte<T>(head: impl Future<Output = T>, tally: &Tally, ms_max: u64) -> Result<T, EgressError> {
    let mut head = pin!(head);
    loop {
        let sent = tally.bytes_out();
        match timeout(Duration::from_millis(ms_max), head.as_mut()).await {
            Ok(head) => return Ok(head),
            Err(_) if tally.bytes_out() > sent => {}
            Err(_) => return Err(EgressError::TimedOut { phase: Phase::FirstByte, ms_max }),
        }
    }
}

//! Bodies with a deadline (requests) and with an end that is noticed (responses).

use super::pulse::{Phase, Pulse};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// A request's body was not complete in time.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the request's body did not arrive in time")]
pub(crate) struct Late;

/// A request's body with a deadline for all of it. A client that sends a byte now and then cannot
/// hold resources for long.
#[derive(Debug)]
pub(crate) struct TimedBody {
    body: Incoming,
    deadline: Instant,
    /// Receives a signal when all of it has arrived.
    pulse: Arc<Pulse>,
    /// Made when the body has to be waited for: most bodies arrive with their headers.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(crate) fn new(body: Incoming, deadline: Instant, pulse: Arc<Pulse>) -> Self {
        Self {
            body,
            deadline,
            pulse,
            sleep: None,
        }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if frame.is_none() || self.body.is_end_stream() {
                self.pulse.owes(false);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let deadline = self.deadline;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The reason why reading a body failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// The body was longer than allowed.
    TooLarge,
    /// The body was not complete in time.
    Late,
    /// The connection broke, or the encoding was wrong.
    Broken,
}

impl BodyFault {
    /// Looks for the cause in the chain of sources.
    pub(crate) fn from_error(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut at = Some(error);
        while let Some(error) = at {
            if error.is::<LengthLimitError>() {
                return Self::TooLarge;
            }
            if error.is::<Late>() {
                return Self::Late;
            }
            at = error.source();
        }
        Self::Broken
    }
}

/// A response's body that signals its connection's pulse when it is done.
#[derive(Debug)]
pub(crate) struct EndingBody<B> {
    pub(crate) body: B,
    pub(crate) pulse: Arc<Pulse>,
}

impl<B: Body + Unpin> Body for EndingBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for EndingBody<B> {
    fn drop(&mut self) {
        self.pulse.enter(Phase::Idle);
    }
}

//! One exchange over one connection: the request out, the head of the answer in; and the
//! connections that are kept for the next.
//!
//! Nothing runs on its own: the task that waits for the answer drives the connection, and dropping
//! it closes the connection.

use crate::awake::timeout;
use crate::dial::{Deadline, Dialled};
use crate::error::{Broken, EgressError, Phase, TooLarge};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::wire::{Meter, Tally, Wire};
use bytes::Bytes;
use domain::egress::{Permit, Scheme, Target};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::Instant;

/// Turns that a connection gets to see that an answer is over, or that the server has gone.
const TURNS_TO_SETTLE: usize = 2;

type Request = http::Request<Full<Bytes>>;

/// The part of an exchange that failed.
enum Lost {
    Connection(hyper::Error),
    Request(Box<TrySendError<Request>>),
}

/// A connection as hyper drives it.
type Driven = Pin<Box<Connection<TokioIo<Wire>, Full<Bytes>>>>;

/// A connection, as its user has it.
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// The connection itself, which has to be driven. It is gone when it has ended.
    driven: Option<Driven>,
    meter: Arc<Meter>,
    address: IpAddr,
}

/// The reason why there is no answer.
pub(crate) enum Unanswered {
    /// Nothing of the request went out: the connection was closed meanwhile.
    Unsent(EgressError),
    /// Anything else.
    Failed(EgressError),
}

impl Link {
    /// Speaks HTTP over a connection.
    ///
    /// # Errors
    /// The connection is closed already.
    pub(crate) async fn begin(dialled: Dialled, meter: Arc<Meter>) -> Result<Self, EgressError> {
        let Dialled { stream, address } = dialled;
        let mut builder = Builder::new();
        builder
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        let wire = TokioIo::new(Wire::new(stream, Arc::clone(&meter)));
        let (sender, connection) = builder.handshake(wire).await.map_err(Broken::Protocol)?;
        Ok(Self {
            sender,
            driven: Some(Box::pin(connection)),
            meter,
            address,
        })
    }

    /// The address at its other end.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the meter that counts the bytes that pass from here on.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Lets the connection do what it can.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) -> Result<(), hyper::Error> {
        let Some(connection) = &mut self.driven else {
            return Ok(());
        };
        match connection.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(ended) => {
                self.driven = None;
                ended
            }
        }
    }

    /// Returns whether a request can be sent over it now. A change of that is not notified.
    pub(crate) fn is_usable(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let driven = (0..TURNS_TO_SETTLE).all(|_| self.drive(&mut cx).is_ok());
        driven && self.driven.is_some() && self.sender.is_ready()
    }
}

/// Converts an error of the HTTP library. The wire knows better than the library why it stopped.
pub(crate) fn failure(error: hyper::Error, tally: &Tally) -> EgressError {
    if tally.budget_is_spent() {
        EgressError::BudgetSpent
    } else if tally.prelude_is_exceeded() || error.is_parse_too_large() {
        TooLarge::ResponseHead.into()
    } else {
        Broken::Protocol(error).into()
    }
}

/// Sends a request and waits for the head of its answer, whose first byte comes within so many
/// milliseconds.
///
/// # Errors
/// The server does not answer in time, or with nonsense, or with too much; or the connection was
/// closed before anything was sent.
pub(crate) async fn exchange(
    link: &mut Link,
    request: Request,
    tally: &Tally,
    deadline: Deadline,
    first_byte_ms_max: u64,
) -> Result<http::Response<Incoming>, Unanswered> {
    let mut answer = pin!(link.sender.try_send_request(request));
    let head = poll_fn(|cx| {
        let mut driven = Ok(());
        let mut head = answer.as_mut().poll(cx);
        if head.is_pending() {
            driven = link.drive(cx);
            head = answer.as_mut().poll(cx);
        }
        match (head, driven) {
            (Poll::Ready(head), _) => {
                Poll::Ready(head.map_err(|lost| Lost::Request(Box::new(lost))))
            }
            (Poll::Pending, Err(error)) => Poll::Ready(Err(Lost::Connection(error))),
            (Poll::Pending, Ok(())) => Poll::Pending,
        }
    });
    let head = deadline
        .cover(first_byte(head, tally, first_byte_ms_max))
        .await
        .map_err(Unanswered::Failed)?;
    let head = head.map_err(|lost| match lost {
        Lost::Connection(error) => Unanswered::Failed(failure(error, tally)),
        Lost::Request(mut lost) => {
            let unsent = lost.take_message().is_some();
            let error = failure(lost.into_error(), tally);
            if unsent {
                Unanswered::Unsent(error)
            } else {
                Unanswered::Failed(error)
            }
        }
    })?;
    tally.head_is_done();
    if head.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(Unanswered::Failed(Broken::Upgrade.into()));
    }
    Ok(head)
}

/// Waits for the head. The time runs from the last byte that went out, so that a long request over
/// a slow line is not cut.
async fn first_byte<T>(
    head: impl Future<Output = T>,
    tally: &Tally,
    ms_max: u64,
) -> Result<T, EgressError> {
    let mut head = pin!(head);
    loop {
        let sent = tally.bytes_out();
        match timeout(Duration::from_millis(ms_max), head.as_mut()).await {
            Ok(head) => return Ok(head),
            Err(_) if tally.bytes_out() > sent => {}
            Err(_) => {
                return Err(EgressError::TimedOut {
                    phase: Phase::FirstByte,
                    ms_max,
                });
            }
        }
    }
}

/// The target of a connection, and the component that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    component: String,
    scheme: Scheme,
    host: String,
    port: u16,
}

impl ConnectionKey {
    pub(crate) fn new(component: &str, target: &Target) -> Self {
        Self {
            component: component.to_owned(),
            scheme: target.scheme(),
            host: target.host().to_string(),
            port: target.port(),
        }
    }
}

/// A connection that waits.
struct Idle {
    key: ConnectionKey,
    link: Link,
    since: Instant,
}

/// The connections that wait for the next request to the same target.
///
/// None is ever handed to another component, to another scheme, host or port, or to a request whose
/// grant does not open the address at its other end. They are not driven while they wait. One that
/// the server has closed, or that has waited too long, is found out and dropped at the next search
/// for one, so that no more than the limit are ever open.
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    connections_max: usize,
    wait_max: Duration,
}

/// The pool to which a connection returns when its answer has been read.
#[derive(Debug)]
pub(crate) struct Home {
    pool: Arc<Pool>,
    key: ConnectionKey,
}

impl Pool {
    pub(crate) fn new(connections_max: usize, wait_ms_max: u64) -> Self {
        Self {
            idle: Mutex::default(),
            connections_max,
            wait_max: Duration::from_millis(wait_ms_max),
        }
    }

    /// Returns true if connections are kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.connections_max > 0
    }

    /// Takes the connection that has waited for the shortest time among those that lead there. The
    /// permit has to open its address.
    pub(crate) async fn take(&self, key: &ConnectionKey, permit: &Permit<'_>) -> Option<Link> {
        loop {
            let mut link = self.latest(key, permit)?;
            // Until the next turn nobody knows what has come meanwhile, such as the news that the
            // server has gone.
            yield_now().await;
            if link.is_usable() {
                return Some(link);
            }
        }
    }

    fn latest(&self, key: &ConnectionKey, permit: &Permit<'_>) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|idle| idle.since.elapsed() < self.wait_max);
        let at = idle
            .iter()
            .rposition(|idle| idle.key == *key && permit.admits(idle.link.address()).is_ok())?;
        Some(idle.remove(at).link)
    }

    /// Returns the home of a connection; none if no connections are kept.
    pub(crate) fn home(self: &Arc<Self>, key: ConnectionKey) -> Option<Home> {
        self.keeps().then(|| Home {
            pool: Arc::clone(self),
            key,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    /// Takes a connection back, if another request can be sent over it.
    pub(crate) fn receive(self, mut link: Link) {
        if !link.is_usable() {
            return;
        }
        let Self { pool, key } = self;
        let mut idle = pool.idle();
        idle.retain(|idle| idle.since.elapsed() < pool.wait_max);
        let over = (idle.len() + 1).saturating_sub(pool.connections_max);
        idle.drain(..over);
        idle.push(Idle {
            key,
            link,
            since: Instant::now(),
        });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}

//! The wire: counts what passes, and stops it where it is too much or a budget is spent.

use crate::limits::PRELUDE_BYTES_MAX;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The count of what has passed on one hop, and the reason for a stop.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// True once the head of the answer is complete.
    head_done: AtomicBool,
    prelude_exceeded: AtomicBool,
    budget_spent: AtomicBool,
}

impl Tally {
    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_out(&self) -> u64 {
        self.bytes_out.load(Ordering::Relaxed)
    }

    pub(crate) fn head_is_done(&self) {
        self.head_done.store(true, Ordering::Relaxed);
    }

    pub(crate) fn prelude_is_exceeded(&self) -> bool {
        self.prelude_exceeded.load(Ordering::Relaxed)
    }

    pub(crate) fn budget_is_spent(&self) -> bool {
        self.budget_spent.load(Ordering::Relaxed)
    }
}

/// Bytes that may still pass, in both directions together, heads included. Clones share what is
/// left.
#[derive(Debug, Clone)]
pub struct ByteBudget(Arc<AtomicU64>);

impl ByteBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Returns the bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes what has passed, down to nothing. False if nothing was left before: then it is spent.
    /// It can be overdrawn by one read or write for each request under way, at most 32 KiB.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left.saturating_sub(bytes))
            });
        taken.is_ok()
    }
}

/// A connection, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug> Stream for T {}

/// The hop that a connection serves at present, and the budget that pays for what passes.
#[derive(Debug)]
pub(crate) struct Meter(Mutex<Account>);

#[derive(Debug, Clone)]
struct Account {
    tally: Arc<Tally>,
    budget: ByteBudget,
}

impl Meter {
    pub(crate) fn new(tally: Arc<Tally>, budget: ByteBudget) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Account { tally, budget })))
    }

    /// Passes the connection on to another hop and budget.
    pub(crate) fn pass_on(&self, tally: Arc<Tally>, budget: ByteBudget) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Account { tally, budget };
    }

    fn account(&self) -> Account {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Account {
    /// The cause is read from the tally: what the HTTP library makes of this error is of no use.
    fn spend(&self, bytes: u64) -> io::Result<()> {
        if bytes == 0 || self.budget.take(bytes) {
            return Ok(());
        }
        self.tally.budget_spent.store(true, Ordering::Relaxed);
        Err(io::Error::other("the budget of bytes is spent"))
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        let before = self.tally.bytes_in.fetch_add(bytes, Ordering::Relaxed);
        if !self.tally.head_done.load(Ordering::Relaxed) && before + bytes > PRELUDE_BYTES_MAX {
            self.tally.prelude_exceeded.store(true, Ordering::Relaxed);
            return Err(io::Error::other("too much came before the answer"));
        }
        self.spend(bytes)
    }

    fn sent(&self, written: io::Result<usize>) -> io::Result<usize> {
        let bytes = written?;
        self.tally
            .bytes_out
            .fetch_add(bytes as u64, Ordering::Relaxed);
        self.spend(bytes as u64)?;
        Ok(bytes)
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    meter: Arc<Meter>,
}

impl Wire {
    pub(crate) fn new(stream: Box<dyn Stream>, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(
            self.meter
                .account()
                .received((buffer.filled().len() - before) as u64),
        )
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(self.meter.account().sent(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

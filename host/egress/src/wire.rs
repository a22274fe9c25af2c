//! The wire: counts what passes, and stops it where it is too much.

use crate::budget::ByteBudget;
use crate::limits::PRELUDE_BYTES_MAX;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

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

/// A connection, with or without TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

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
    stream: Stream,
    meter: Arc<Meter>,
}

impl Wire {
    pub(crate) fn new(stream: Stream, meter: Arc<Meter>) -> Self {
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
        ready!(match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        })?;
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
        let written = ready!(match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        });
        Poll::Ready(self.meter.account().sent(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

//! A socket that reports its traffic to its connection's pulse. It closes so that the peer can read
//! its last response.
//!
//! A request may be answered before all of it has arrived. Were the socket then closed with bytes
//! unread, the peer's system would throw the answer away together with the connection. So the last
//! answer is followed by the end of the stream, and what the peer still sends is read and dropped
//! for a while.

use super::limits::LINGER_BYTES_MAX;
use super::pulse::{Phase, Pulse};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that are dropped at a time.
const DROPPED_BYTES: usize = 8 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Socket {
    io: TokioIo<TcpStream>,
    pulse: Arc<Pulse>,
    /// Bytes that may still be dropped.
    linger_bytes_left: usize,
}

impl Socket {
    pub(crate) fn new(io: TokioIo<TcpStream>, pulse: Arc<Pulse>) -> Self {
        Self {
            io,
            pulse,
            linger_bytes_left: LINGER_BYTES_MAX,
        }
    }

    /// Reads what still comes, to its end or to the limit. The pulse ends it when it takes too
    /// long.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut dropped = [0; DROPPED_BYTES];
        while self.linger_bytes_left > 0 {
            let mut buffer = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(self.io.inner_mut()).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
            self.linger_bytes_left = self.linger_bytes_left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(())
    }

    fn note<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        // What is answered without the service is a head that hyper refuses, and more may follow
        // it.
        if self.pulse.phase() == Phase::Head {
            self.pulse.owes(true);
        }
        if poll.is_pending() {
            self.pulse.stalls();
        } else {
            self.pulse.wrote();
        }
        poll
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_read(cx, buf);
        if poll.is_ready() {
            self.pulse.heard();
        }
        poll
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(cx, buf);
        self.note(poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pulse.phase() != Phase::Lingering {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            if !self.pulse.is_owing() {
                return Poll::Ready(Ok(()));
            }
            self.pulse.enter(Phase::Lingering);
        }
        self.linger(cx).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.note(poll)
    }
}

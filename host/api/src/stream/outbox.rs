//! The outbox of one client of an event stream: bounded, and aware of its size.

use bytes::Bytes;
use futures::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// The client does not read, or has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HungUp;

/// The end that is written to.
#[derive(Debug)]
pub(super) struct Outbox {
    chunks: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<Backlog>,
    waiting_bytes_max: usize,
    patience: Duration,
    hang_up: CancellationToken,
}

/// The end that the connection reads.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: mpsc::UnboundedReceiver<Bytes>,
    waiting: Arc<Backlog>,
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    taken: Notify,
}

/// Both ends. `hang_up` closes the connection of a client that has more than `waiting_bytes_max`
/// waiting and takes nothing for `patience`.
pub(super) fn channel(
    waiting_bytes_max: usize,
    patience: Duration,
    hang_up: CancellationToken,
) -> (Outbox, Chunks) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(Backlog::default());
    (
        Outbox {
            chunks: sender,
            waiting: waiting.clone(),
            waiting_bytes_max,
            patience,
            hang_up,
        },
        Chunks {
            chunks: receiver,
            waiting,
        },
    )
}

impl Outbox {
    /// Puts something out. While more than allowed waits, this waits for the client; what it is
    /// waited for with stays in the store.
    pub(super) async fn push(&self, chunk: Bytes) -> Result<(), HungUp> {
        if self.waiting.bytes.load(Ordering::Relaxed) > self.waiting_bytes_max {
            self.make_room().await?;
        }
        self.waiting.bytes.fetch_add(chunk.len(), Ordering::Relaxed);
        self.chunks.send(chunk).map_err(|_| HungUp)
    }

    /// Waits until at most half of what may wait does.
    async fn make_room(&self) -> Result<(), HungUp> {
        loop {
            let taken = self.waiting.taken.notified();
            if self.waiting.bytes.load(Ordering::Relaxed) <= self.waiting_bytes_max / 2 {
                return Ok(());
            }
            tokio::select! {
                () = taken => {}
                () = self.chunks.closed() => return Err(HungUp),
                () = tokio::time::sleep(self.patience) => {
                    tracing::debug!("a client does not read its event stream and is disconnected");
                    self.hang_up.cancel();
                    return Err(HungUp);
                }
            }
        }
    }

    /// Waits until the client has disconnected.
    pub(super) async fn closed(&self) {
        self.chunks.closed().await;
    }
}

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = std::task::ready!(self.chunks.poll_recv(cx));
        Poll::Ready(chunk.map(|chunk| {
            self.waiting.bytes.fetch_sub(chunk.len(), Ordering::Relaxed);
            self.waiting.taken.notify_waiters();
            Ok(chunk)
        }))
    }
}

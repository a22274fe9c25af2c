//! Feeds one client: first what it missed, then everything as it happens, both at its own pace.

use super::outbox::{Outbox, Parted};
use crate::wire;
use broker::Frame;
use domain::event::Recorded;
use std::time::Duration;
use store::{EventFilter, ReadError, Store};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// Events that are read at a time: one of them may be megabytes.
const PAGE: usize = 32;
/// Milliseconds after which a client is asked to come back when the host ends the stream.
const RETRY_MS: u64 = 2_000;
/// Milliseconds until events are read again after too many reads waited.
const BUSY_MS: u64 = 50;

/// See the module.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) store: Store,
    pub(super) filter: EventFilter,
    /// The last position that the client has, or needs not have.
    pub(super) position: u64,
    pub(super) durable: watch::Receiver<u64>,
    pub(super) live: broadcast::Receiver<Frame>,
    pub(super) out: Outbox,
    pub(super) heartbeat: Duration,
    pub(super) stopping: CancellationToken,
}

/// Why a stream ends.
enum End {
    /// The client is gone.
    Parted,
    /// The host ends it; the client may come back.
    Retry,
}

impl From<Parted> for End {
    fn from(_: Parted) -> Self {
        Self::Parted
    }
}

impl Feed {
    /// Feeds until the client goes, does not read, or the host stops.
    pub(super) async fn run(mut self) {
        if let Err(End::Retry) = self.feed().await {
            // The client may be gone as well.
            let _ = self.out.push(format!("retry: {RETRY_MS}\n\n")).await;
        }
    }

    async fn feed(&mut self) -> Result<(), End> {
        self.out.push(": agent-host\n\n".to_owned()).await?;
        self.send_committed().await?;
        let mut heartbeat = interval_at(Instant::now() + self.heartbeat, self.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(End::Parted),
                () = self.stopping.cancelled() => return Err(End::Retry),
                changed = self.durable.changed() => {
                    changed.map_err(|_| End::Retry)?;
                    // What was shown before the commit goes out before it.
                    self.send_shown().await?;
                    self.send_committed().await?;
                }
                shown = self.live.recv() => match shown {
                    Ok(frame) => self.show(&frame).await?,
                    // Nothing that was missed matters.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Err(End::Retry),
                },
                _ = heartbeat.tick() => self.out.push(": heartbeat\n\n".to_owned()).await?,
            }
        }
    }

    async fn send_committed(&mut self) -> Result<(), End> {
        let until = *self.durable.borrow_and_update();
        while self.position < until {
            let page = match self.store.events(self.position, self.filter, PAGE).await {
                Ok(page) => page,
                Err(ReadError::Busy) => {
                    tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "an event stream cannot be read on");
                    return Err(End::Retry);
                }
            };
            for recorded in &page {
                self.out.push(committed(recorded)).await?;
                self.position = recorded.position;
            }
            if page.len() < PAGE {
                self.position = self.position.max(until);
            }
        }
        Ok(())
    }

    async fn send_shown(&mut self) -> Result<(), End> {
        loop {
            match self.live.try_recv() {
                Ok(frame) => self.show(&frame).await?,
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    async fn show(&self, frame: &Frame) -> Result<(), Parted> {
        let wanted = self.filter.agent.is_none_or(|agent| agent == frame.agent)
            && self.filter.session.is_none_or(|session| session == frame.session);
        if !wanted {
            return Ok(());
        }
        let (name, data) = wire::frame(frame);
        self.out.push(format!("event: {name}\ndata: {data}\n\n")).await
    }
}

/// An event as a frame. JSON has no line breaks of its own, so its data is one line.
fn committed(recorded: &Recorded) -> String {
    let data = serde_json::to_string(&wire::event(recorded)).unwrap_or_default();
    format!("id: {}\nevent: {}\ndata: {data}\n\n", recorded.position, recorded.kind)
}

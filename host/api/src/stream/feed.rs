//! Feeds one client: first what it missed, then everything as it happens, both at its own pace.

use super::outbox::{Outbox, Parted};
use super::scope::Scope;
use crate::wire::{self, Spawned};
use broker::Frame;
use domain::event::Recorded;
use serde_json::json;
use std::time::Duration;
use store::{ReadError, Store};
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
    pub(super) scope: Scope,
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
        while let Err(error) = self.scope.open(&self.store).await {
            wait_out(&error).await?;
        }
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
            let page = match self.scope.read(&self.store, self.position, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    wait_out(&error).await?;
                    continue;
                }
            };
            for recorded in &page {
                let spawned = recorded.subject.session.and_then(|session| self.scope.spawned(session));
                self.out.push(committed(recorded, spawned.cloned())).await?;
                store::point("api.stream.pushed");
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
        if !self.scope.has(frame.agent, frame.session) {
            return Ok(());
        }
        let (name, mut data) = wire::frame(frame);
        if let (Some(spawned), Some(data)) = (self.scope.spawned(frame.session), data.as_object_mut()) {
            data.insert("spawned".to_owned(), json!(spawned));
        }
        self.out.push(format!("event: {name}\ndata: {data}\n\n")).await
    }
}

/// Waits where reading again makes sense.
async fn wait_out(error: &ReadError) -> Result<(), End> {
    if let ReadError::Busy = error {
        tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
        return Ok(());
    }
    tracing::warn!(error = error as &dyn std::error::Error, "an event stream cannot be read on");
    Err(End::Retry)
}

/// An event as a frame. JSON has no line breaks of its own, so its data is one line.
fn committed(recorded: &Recorded, spawned: Option<Spawned>) -> String {
    let data = serde_json::to_string(&wire::Event { spawned, ..wire::event(recorded) }).unwrap_or_default();
    format!("id: {}\nevent: {}\ndata: {data}\n\n", recorded.position, recorded.kind)
}

//! Feeds one visitor: first what the page missed, then everything as it happens.

use super::frames::{self, Said};
use super::presence::Presence;
use crate::chat::{Chat, Visitor};
use crate::stream::frame;
use crate::stream::outbox::{HungUp, Outbox};
use crate::stream::tail::{Next, Tail};
use broker::{Broker, Frame, Joined};
use bytes::Bytes;
use domain::connector::ReplyRoute;
use domain::event::{DeliveryQueued, Event, Recorded};
use std::time::Duration;
use store::{ReadError, Store};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// Deliveries that are read at a time.
const PAGE: usize = 32;
/// Milliseconds after which a page is asked to come back when the host ends the stream.
const RETRY_MS: u64 = 2_000;
/// Milliseconds until deliveries are read again after too many reads waited.
const BUSY_MS: u64 = 50;
/// The bytes sent when nothing happens.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// See the module.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) broker: Broker,
    pub(super) chat: Chat,
    pub(super) visitor: Visitor,
    /// The chat with the visitor, as deliveries name it.
    pub(super) route: ReplyRoute,
    /// The position that the page came back with, when it is ahead of all events.
    pub(super) ahead: Option<u64>,
    /// The last position that the page has, or needs not have.
    pub(super) position: u64,
    pub(super) presence: Presence,
    /// The events that are stored from when the page came on. It was opened before that.
    pub(super) tail: Tail,
    /// The frames since the page came. Up to its position the store is asked.
    pub(super) joined: Joined,
    pub(super) out: Outbox,
    pub(super) heartbeat: Duration,
    pub(super) stopping: CancellationToken,
}

/// The reason why a stream ends.
enum End {
    /// There is no such visitor any more.
    Dismissed,
    /// The page has disconnected.
    HungUp,
    /// The host ends it; the page may come back.
    Retry,
}

impl From<HungUp> for End {
    fn from(_: HungUp) -> Self {
        Self::HungUp
    }
}

impl Feed {
    /// Feeds until the page goes, does not read, or the host stops.
    pub(super) async fn run(mut self) {
        let (reason, comes_back) = match self.feed().await {
            Ok(()) | Err(End::HungUp) => return,
            Err(End::Retry) => ("the host ends the stream; come back", true),
            Err(End::Dismissed) => ("there is no such visitor any more", false),
        };
        // The page may be gone as well.
        let _ = self.out.push(frames::disconnected(reason)).await;
        if comes_back {
            let _ = self.out.push(frame::retry(RETRY_MS)).await;
        }
    }

    async fn feed(&mut self) -> Result<(), End> {
        self.out.push(frame::GREETING).await?;
        // Again, since the position: what follows from later events is told with them.
        self.look().await?;
        let typing = self.is_typing();
        let waits = self.presence.waits();
        let connected = frames::connected(self.visitor.id(), &waits, typing);
        self.out.push(connected).await?;
        if self.ahead.is_some() {
            // The page begins anew, with what there is.
            self.position = 0;
            self.out.push(frames::reset(0)).await?;
        }
        self.send_stored(self.joined.position).await?;
        for frame in std::mem::take(&mut self.joined.so_far) {
            self.show(&frame).await?;
        }
        let mut heartbeat = interval_at(Instant::now() + self.heartbeat, self.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(End::HungUp),
                () = self.stopping.cancelled() => return Err(End::Retry),
                until = self.tail.more() => {
                    let until = until.ok_or(End::Retry)?;
                    // What was shown before the commit goes out before it.
                    self.send_shown().await?;
                    self.send_new(until).await?;
                }
                shown = self.joined.frames.recv() => match shown {
                    Ok(frame) => self.show(&frame).await?,
                    // Pieces of a reply are missing, and the whole follows.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(End::Retry),
                },
                _ = heartbeat.tick() => {
                    self.stands().await?;
                    self.out.push(HEARTBEAT).await?;
                }
            }
        }
    }

    fn store(&self) -> &Store {
        self.broker.store()
    }

    fn is_typing(&self) -> bool {
        self.chat.shows_typing && self.presence.is_typing()
    }

    /// Looks at what goes on, and tells what was closed meanwhile.
    async fn look(&mut self) -> Result<(), End> {
        loop {
            match self.presence.look(&self.broker).await {
                Ok(closed) => {
                    for question in closed {
                        self.out.push(frames::question_closed(question)).await?;
                    }
                    return Ok(());
                }
                Err(error) => wait_out(&error).await?,
            }
        }
    }

    /// Ends the stream of a visitor whose key was unbound.
    async fn stands(&self) -> Result<(), End> {
        match self.store().connector_key(&self.visitor.key).await {
            Ok(Some(row)) if row.user == self.visitor.user => Ok(()),
            Ok(_) => Err(End::Dismissed),
            Err(error) => wait_out(&error.into()).await,
        }
    }

    /// Sends what is new, up to the end of a commit.
    async fn send_new(&mut self, until: u64) -> Result<(), End> {
        while self.position < until {
            match self.tail.next(self.position) {
                Next::Event(happened) => {
                    let recorded = &happened.recorded;
                    self.send(recorded).await?;
                    self.position = recorded.position;
                }
                // Too far behind, with a page that reads slowly.
                Next::Stored => {
                    let typing = self.is_typing();
                    self.look().await?;
                    self.tell_typing(typing).await?;
                    return self.send_stored(until).await;
                }
                Next::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    async fn send(&mut self, recorded: &Recorded) -> Result<(), End> {
        let typing = self.is_typing();
        for question in self.presence.witness(recorded) {
            self.out.push(frames::question_closed(question)).await?;
        }
        if let Some(Event::DeliveryQueued(queued)) = &recorded.event
            && self.is_ours(queued)
        {
            let said = Said::queued(recorded.position, queued);
            if let Some((question, session)) = said.question() {
                self.presence.ask(question, session);
            }
            self.push_stored(said.frame(true)).await?;
        }
        self.tell_typing(typing).await
    }

    fn is_ours(&self, queued: &DeliveryQueued) -> bool {
        queued.connector == self.route.connector && queued.chat == self.route.chat
    }

    async fn tell_typing(&self, before: bool) -> Result<(), End> {
        let typing = self.is_typing();
        if typing != before {
            self.out.push(frames::typing(typing)).await?;
        }
        Ok(())
    }

    /// Sends what the store has, page by page.
    async fn send_stored(&mut self, until: u64) -> Result<(), End> {
        while self.position < until {
            let read = self
                .store()
                .deliveries_of_chat(&self.route, self.position, PAGE);
            let page = match read.await {
                Ok(page) => page,
                Err(error) => {
                    wait_out(&error.into()).await?;
                    continue;
                }
            };
            // What is stored after `until` is told with everything else of its commits.
            let within = page.iter().take_while(|row| row.position <= until);
            for row in within {
                let said = Said::stored(row);
                let is_open = said
                    .question()
                    .is_some_and(|(question, session)| self.presence.repeat(question, session));
                self.push_stored(said.frame(is_open)).await?;
                self.position = row.position;
            }
            if page.len() < PAGE || page.last().is_some_and(|last| last.position > until) {
                self.position = self.position.max(until);
            }
        }
        Ok(())
    }

    async fn push_stored(&self, frame: Bytes) -> Result<(), HungUp> {
        self.out.push(frame).await?;
        store::point("api.stream.pushed");
        Ok(())
    }

    /// Sends what was shown by now.
    async fn send_shown(&mut self) -> Result<(), End> {
        loop {
            match self.joined.frames.try_recv() {
                Ok(frame) => self.show(&frame).await?,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    async fn show(&self, frame: &Frame) -> Result<(), HungUp> {
        if !self.chat.spec.deltas || !self.presence.has(frame.session) {
            return Ok(());
        }
        match frames::shown(frame) {
            Some(shown) => self.out.push(shown).await,
            None => Ok(()),
        }
    }
}

/// Waits where reading again makes sense.
async fn wait_out(error: &broker::Error) -> Result<(), End> {
    if let broker::Error::Unavailable(source) = error
        && matches!(source.downcast_ref(), Some(ReadError::Busy))
    {
        tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
        return Ok(());
    }
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the stream of a visitor ends because it cannot be read"
    );
    Err(End::Retry)
}

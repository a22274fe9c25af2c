//! Feeds one visitor: first what the page missed, then everything as it happens.

use super::PAGE;
use super::frames::{self, VisitorFrame, VisitorLine};
use super::page::{Line, Page, end_of_full};
use super::presence::Presence;
use crate::chat::{Chat, Visitor};
use crate::stream::end::{End, heartbeat_every, push_committed, wait_out};
use crate::stream::frame;
use crate::stream::outbox::{HungUp, Outbox};
use crate::stream::tail::{Next, Tail};
use broker::{Broker, Frame, Joined, Placed};
use bytes::Bytes;
use domain::connector::ReplyRoute;
use domain::event::{Event, InputAccepted, OutboundMessageQueued, Recorded, Source};
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio_util::sync::CancellationToken;

/// The bytes sent when nothing happens.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// See the module.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) broker: Broker,
    pub(super) chat: Chat,
    pub(super) visitor: Visitor,
    /// The chat with the visitor, as outbound messages name it.
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

impl Feed {
    /// Feeds until the page goes, does not read, or the host stops.
    pub(super) async fn run(mut self) {
        let Err(end) = self.feed().await else { return };
        let Some(farewell) = end.farewell("there is no such visitor any more") else {
            return;
        };
        let reported = VisitorFrame::Disconnected {
            reason: farewell.reason,
        };
        let reported = reported.bytes();
        for frame in std::iter::once(reported).chain(farewell.retry) {
            // The page may be gone as well.
            let _ = self.out.push(frame).await;
        }
    }

    async fn feed(&mut self) -> Result<(), End> {
        self.out.push(frame::GREETING).await?;
        // Again, since the position: what follows from later events is told with them.
        self.inspect().await?;
        let typing = self.is_typing();
        let waits = self.presence.waits();
        let connected = VisitorFrame::Connected {
            visitor_id: self.visitor.id(),
            open_question_ids: waits,
            typing,
        };
        self.out.push(connected.bytes()).await?;
        if self.ahead.is_some() {
            // The page begins anew, with what there is.
            self.position = 0;
            self.out.push(frames::reset(0)).await?;
        }
        self.send_stored(self.joined.position).await?;
        for frame in std::mem::take(&mut self.joined.so_far) {
            self.show(&frame).await?;
        }
        let mut heartbeat = heartbeat_every(self.heartbeat);
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
                    Ok(shown) => self.show_placed(&shown).await?,
                    // Chunks of a reply are missing, and the whole follows.
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

    fn is_typing(&self) -> bool {
        self.chat.shows_typing && self.presence.is_typing()
    }

    /// Looks at what goes on, and tells what was closed meanwhile.
    async fn inspect(&mut self) -> Result<(), End> {
        loop {
            match self.presence.inspect(&self.broker).await {
                Ok(closed) => {
                    for question in closed {
                        self.out
                            .push(
                                VisitorFrame::QuestionClosed {
                                    question_id: question,
                                }
                                .bytes(),
                            )
                            .await?;
                    }
                    return Ok(());
                }
                Err(error) => wait_out(error).await?,
            }
        }
    }

    /// Ends the stream of a visitor whose key was unbound.
    async fn stands(&self) -> Result<(), End> {
        match self.broker.connectors().get(&self.visitor.key).await {
            Ok(Some(row)) if row.user == self.visitor.user => Ok(()),
            Ok(_) => Err(End::Dismissed),
            Err(error) => wait_out(error).await,
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
                    self.inspect().await?;
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
            self.out
                .push(
                    VisitorFrame::QuestionClosed {
                        question_id: question,
                    }
                    .bytes(),
                )
                .await?;
        }
        if let Some(Event::OutboundMessageQueued(queued)) = &recorded.event
            && self.is_ours(queued)
        {
            let said = VisitorLine::queued(recorded.position, queued);
            if let Some((question, session)) = said.question() {
                self.presence.ask(question, session);
            }
            push_committed(&self.out, said.frame(true)).await?;
        }
        if let Some(Event::InputAccepted(accepted)) = &recorded.event
            && self.is_own(accepted)
        {
            let own = frames::own(recorded.position, accepted);
            push_committed(&self.out, own).await?;
        }
        self.tell_typing(typing).await
    }

    fn is_ours(&self, queued: &OutboundMessageQueued) -> bool {
        queued.connector == self.route.connector && queued.chat == self.route.chat
    }

    /// Returns whether an input is what the visitor said here.
    fn is_own(&self, accepted: &InputAccepted) -> bool {
        matches!(&accepted.source, Source::Connector { reply_to, .. } if *reply_to == self.route)
    }

    async fn tell_typing(&self, before: bool) -> Result<(), End> {
        let typing = self.is_typing();
        if typing != before {
            self.out
                .push(VisitorFrame::Typing { typing }.bytes())
                .await?;
        }
        Ok(())
    }

    /// Sends what the store has, page by page.
    async fn send_stored(&mut self, until: u64) -> Result<(), End> {
        while self.position < until {
            match self.page(until).await {
                Ok(page) => {
                    for line in &page.lines {
                        let frame = self.stored_frame(line);
                        push_committed(&self.out, frame).await?;
                        self.position = line.position();
                    }
                    self.position = self.position.max(page.end);
                }
                Err(error) => wait_out(error).await?,
            }
        }
        Ok(())
    }

    /// Reads what was said on both sides after the position. What is stored after `until` is told
    /// with everything else of its commits.
    async fn page(&self, until: u64) -> Result<Page, broker::Error> {
        let (reported, own) = self
            .broker
            .messages()
            .of_chat(&self.visitor.user, &self.route, self.position, PAGE)
            .await?;
        let ends = [
            end_of_full(&reported, |row| row.position),
            end_of_full(&own, |(position, _)| *position),
        ];
        let reported = reported
            .into_iter()
            .map(|row| Line::Reported(Box::new(row)));
        let own = own
            .into_iter()
            .map(|(position, accepted)| Line::Own(position, Box::new(accepted)));
        Ok(Page::new(reported.chain(own), ends, until))
    }

    fn stored_frame(&mut self, line: &Line) -> Bytes {
        match line {
            Line::Reported(row) => {
                let said = VisitorLine::stored(row);
                let is_open = said
                    .question()
                    .is_some_and(|(question, session)| self.presence.repeat(question, session));
                said.frame(is_open)
            }
            Line::Own(position, accepted) => frames::own(*position, accepted),
        }
    }

    /// Sends what was shown by now.
    async fn send_shown(&mut self) -> Result<(), End> {
        loop {
            match self.joined.frames.try_recv() {
                Ok(shown) => self.show_placed(&shown).await?,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Shows a frame after all that was stored before it.
    async fn show_placed(&mut self, placed: &Placed) -> Result<(), End> {
        if self.position < placed.after {
            self.tail.reached(placed.after).await.ok_or(End::Retry)?;
            self.send_new(placed.after).await?;
        }
        Ok(self.show(&placed.frame).await?)
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

//! Feeds one client: first what it missed, then everything as it happens, both at its own pace.

use super::end::{End, heartbeat_every, push_committed, wait_out};
use super::frame::{self, View};
use super::outbox::{HungUp, Outbox};
use super::scope::StreamScope;
use super::tail::{FramedEvent, Next, Tail};
use super::thread::Thread;
use super::viewer::Viewer;
use crate::wire::{PendingActionView, Repeatable, SessionFrame, Spawned};
use broker::{Frame, Joined, Live, Placed};
use bytes::Bytes;
use domain::event::{Event, Recorded};
use domain::id::{OperationId, SessionId};
use std::time::Duration;
use store::Store;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Events that are read at a time: one of them may be megabytes.
const PAGE: usize = 32;

/// See the module.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) store: Store,
    pub(super) scope: StreamScope,
    pub(super) viewer: Viewer,
    pub(super) view: View,
    /// The first frame for the client, and the questions that were waiting before it came.
    pub(super) welcome: Option<Welcome>,
    /// The thread that is told before the events; none where those tell everything.
    pub(super) thread: Option<Thread>,
    /// The position that the client came back with, when it is ahead of all events.
    pub(super) ahead: Option<u64>,
    /// The last position that the client has, or needs not have.
    pub(super) position: u64,
    /// The event of which the client has some frames already, and how many.
    pub(super) begun: Option<(u64, usize)>,
    /// The events that are stored from when the client came on. It was opened before that.
    pub(super) tail: Tail,
    /// The frames since the client came. Up to its position the store is asked.
    pub(super) joined: Joined,
    /// The source of these frames, to join it again.
    pub(super) live: Live,
    pub(super) out: Outbox,
    pub(super) heartbeat: Duration,
    pub(super) stopping: CancellationToken,
}

/// The first frames for a client that shows a session.
#[derive(Debug)]
pub(super) struct Welcome {
    /// The frame `connected`.
    pub(super) connected: Bytes,
    /// The questions that wait for their answers. They are repeated, unless they are among the
    /// events that the client has missed.
    pub(super) pending: Vec<Pending>,
}

/// A question that waits.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) session: SessionId,
    pub(super) question: PendingActionView,
}

impl Feed {
    /// Feeds until the client goes, does not read, or the host stops.
    pub(super) async fn run(mut self) {
        let Err(end) = self.feed().await else { return };
        let Some(farewell) = end.farewell("you may not follow this agent any more") else {
            return;
        };
        let reported = self.view.disconnected(farewell.reason);
        for frame in reported.into_iter().chain(farewell.retry) {
            // The client may be gone as well.
            let _ = self.out.push(frame).await;
        }
    }

    async fn feed(&mut self) -> Result<(), End> {
        self.out.push(frame::GREETING).await?;
        while let Err(error) = self.scope.open(&self.store).await {
            wait_out(error).await?;
        }
        if let Some(welcome) = &self.welcome {
            self.out.push(welcome.connected.clone()).await?;
        }
        if let Some(asked) = self.ahead {
            self.out.push(self.view.reset(self.position, asked)).await?;
        }
        self.send_thread().await?;
        self.send_stored(self.joined.position).await?;
        let waiting = self.welcome.take().map(|welcome| welcome.pending);
        for pending in waiting.into_iter().flatten() {
            let spawned = self.scope.spawned(pending.session);
            let asked_again = SessionFrame::ClientAction {
                question: pending.question,
                of: Repeatable::again(pending.session, spawned),
            };
            self.out.push(frame::bytes(&asked_again)).await?;
        }
        self.catch_up().await?;
        let mut heartbeats = 0;
        let mut heartbeat = heartbeat_every(self.heartbeat);
        loop {
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(End::HungUp),
                () = self.stopping.cancelled() => return Err(End::Retry),
                until = self.tail.more() => {
                    let until = until.ok_or(End::Retry)?;
                    // What was shown before the commit goes out before it.
                    let lagged = self.send_shown().await?;
                    self.send_new(until).await?;
                    if lagged {
                        self.join_again().await?;
                    }
                }
                shown = self.joined.frames.recv() => match shown {
                    Ok(shown) => self.show_placed(&shown).await?,
                    Err(broadcast::error::RecvError::Lagged(_)) => self.join_again().await?,
                    Err(broadcast::error::RecvError::Closed) => return Err(End::Retry),
                },
                _ = heartbeat.tick() => {
                    heartbeats += 1;
                    self.out.push(self.view.heartbeat(heartbeats)).await?;
                }
            }
        }
    }

    /// Sends the thread before the events.
    async fn send_thread(&mut self) -> Result<(), End> {
        let Some(mut thread) = self.thread.take() else {
            return Ok(());
        };
        loop {
            match thread.page(&self.store).await {
                Ok(None) => return Ok(()),
                Ok(Some(page)) => {
                    for frame in page {
                        self.out.push(frame).await?;
                    }
                }
                Err(error) => wait_out(error).await?,
            }
        }
    }

    /// Sends what is new, up to the end of a commit.
    async fn send_new(&mut self, until: u64) -> Result<(), End> {
        if self.position < until
            && self
                .tail
                .any(self.position, |recorded| self.scope.may_grow_with(recorded))
        {
            return self.send_stored(until).await;
        }
        while self.position < until {
            match self.tail.next(self.position) {
                Next::Event(happened) => {
                    self.viewer.witness(&happened.recorded);
                    if !self.viewer.may_follow() {
                        return Err(End::Dismissed);
                    }
                    self.send(&happened).await?;
                    self.position = happened.recorded.position;
                }
                // Too far behind, with a client that reads slowly.
                Next::Stored => return self.send_stored(until).await,
                Next::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    async fn send(&mut self, happened: &FramedEvent) -> Result<(), End> {
        let recorded = &happened.recorded;
        if !self.scope.shows(recorded) || !self.sees(recorded).await? {
            return Ok(());
        }
        let frame = match self.spawned(recorded) {
            // The same bytes for all.
            None if self.seen_of(recorded).is_none() => happened.frame(self.view),
            spawned => self.written(recorded, spawned),
        };
        Ok(push_committed(&self.out, frame).await?)
    }

    /// Returns the number of frames that the client has of an event, if it is the one it has some
    /// of.
    fn seen_of(&self, recorded: &Recorded) -> Option<usize> {
        let (position, frames) = self.begun?;
        (position == recorded.position).then_some(frames)
    }

    /// Returns the frames of a stored event that the client does not have yet.
    fn written(&self, recorded: &Recorded, spawned: Option<&Spawned>) -> Bytes {
        let seen = self.seen_of(recorded).unwrap_or_default();
        self.view.committed(recorded, spawned, seen)
    }

    async fn sees(&mut self, recorded: &Recorded) -> Result<bool, End> {
        loop {
            match self.viewer.sees(&self.store, recorded).await {
                Ok(sees) => return Ok(sees),
                Err(error) => wait_out(error).await?,
            }
        }
    }

    /// Sends what the store has, page by page.
    async fn send_stored(&mut self, until: u64) -> Result<(), End> {
        while self.position < until {
            let page = match self.scope.read(&self.store, self.position, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    wait_out(error).await?;
                    continue;
                }
            };
            // After the page was read: whoever lost their role before that sees nothing of it.
            while let Err(error) = self.viewer.refresh(&self.store).await {
                wait_out(error).await?;
            }
            if !self.viewer.may_follow() {
                return Err(End::Dismissed);
            }
            // What is stored after `until` is told with everything else of its commits.
            let within = page
                .iter()
                .take_while(|recorded| recorded.position <= until);
            for recorded in within {
                // A page has the events of sessions below that the operator's rules hide as well.
                if self.scope.shows(recorded) && self.sees(recorded).await? {
                    if let Some(welcome) = &mut self.welcome {
                        welcome
                            .pending
                            .retain(|pending| !asks(recorded, pending.question.tool_call_id));
                    }
                    let frame = self.written(recorded, self.spawned(recorded));
                    push_committed(&self.out, frame).await?;
                }
                self.position = recorded.position;
            }
            if page.len() < PAGE || page.last().is_some_and(|last| last.position > until) {
                self.position = self.position.max(until);
            }
        }
        Ok(())
    }

    fn spawned(&self, recorded: &Recorded) -> Option<&Spawned> {
        recorded
            .subject
            .session
            .and_then(|session| self.scope.spawned(session))
    }

    /// Sends what was shown by now. Returns whether some of it was missed.
    async fn send_shown(&mut self) -> Result<bool, End> {
        loop {
            match self.joined.frames.try_recv() {
                Ok(shown) => self.show_placed(&shown).await?,
                Err(broadcast::error::TryRecvError::Lagged(_)) => return Ok(true),
                Err(
                    broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed,
                ) => return Ok(false),
            }
        }
    }

    /// Goes on after frames were missed: with what is stored by now, and then with the whole text
    /// of each reply in the making.
    async fn join_again(&mut self) -> Result<(), End> {
        self.joined = self
            .live
            .join(|agent, session| self.scope.may_have(agent, session));
        self.send_stored(self.joined.position).await?;
        self.catch_up().await
    }

    /// Sends what was said so far of the replies in the making.
    async fn catch_up(&mut self) -> Result<(), End> {
        for frame in std::mem::take(&mut self.joined.so_far) {
            if self.scope.has(frame.agent, frame.session) && self.is_open(&frame).await {
                self.show(&frame).await?;
            }
        }
        Ok(())
    }

    /// Returns whether a frame's run is still open. The work of one that was ended from outside is
    /// stopped a moment after its end is stored.
    async fn is_open(&self, frame: &Frame) -> bool {
        let run = self.store.run(frame.run).await;
        run.is_ok_and(|run| run.is_some_and(|run| run.end.is_none()))
    }

    /// Shows a frame after all that was stored before it, such as the results that a reply is made
    /// from.
    async fn show_placed(&mut self, placed: &Placed) -> Result<(), End> {
        if self.position < placed.after {
            self.tail.reached(placed.after).await.ok_or(End::Retry)?;
            self.send_new(placed.after).await?;
        }
        Ok(self.show(&placed.frame).await?)
    }

    async fn show(&mut self, frame: &Frame) -> Result<(), HungUp> {
        // Nothing is lost with one that cannot be judged just now.
        let sees = self.scope.has(frame.agent, frame.session)
            && self
                .viewer
                .sees_session(&self.store, frame.session)
                .await
                .unwrap_or(false);
        match self.view.shown(frame, self.scope.spawned(frame.session)) {
            Some(shown) if sees => self.out.push(shown).await,
            _ => Ok(()),
        }
    }
}

/// Returns whether an event asked this question.
pub(super) fn asks(recorded: &Recorded, call: OperationId) -> bool {
    let Some(event) = &recorded.event else {
        return false;
    };
    if let Event::OperationContinued(continuation) = event {
        let calls = continuation.call.as_ref();
        return continuation.question() == call
            || calls.is_some_and(|made| made.started.id.approval() == call);
    }
    let mut started = event.step().into_iter().flat_map(|step| &step.started);
    started.any(|started| [started.id, started.id.approval()].contains(&call))
}

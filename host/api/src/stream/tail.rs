//! The newest events of the host, read once for all event streams.
//!
//! Were every stream to ask the store for what is new to it, ten thousand that follow one agent
//! would ask ten thousand times for the same event. So one task reads each event when it is stored,
//! writes its frame, and keeps the newest few; streams take from there what they show. A stream
//! that is further behind, because its client comes back or reads slowly, asks the store by itself.

use super::frame::{self, View};
use bytes::Bytes;
use domain::event::Recorded;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Events that are read at a time: one of them may be megabytes.
const PAGE: usize = 32;
/// Events that are kept.
const EVENTS_MAX: usize = 1_024;
/// Bytes of all kept frames, in the form of the log. The newest event is kept whatever its size.
const BYTES_MAX: usize = 4 << 20;
/// Milliseconds until events are read again after too many reads waited.
const BUSY_MS: u64 = 50;

/// A stored event with its frame, which is the same for every stream that adds nothing to it.
#[derive(Debug)]
pub(crate) struct FramedEvent {
    pub(super) recorded: Recorded,
    /// The frame in the form of the log.
    log: Bytes,
    /// The frame in the form for a client that shows a session, made on first use.
    session: OnceLock<Bytes>,
}

impl FramedEvent {
    fn new(recorded: Recorded) -> Self {
        Self {
            log: frame::committed(&recorded, None),
            recorded,
            session: OnceLock::new(),
        }
    }

    /// Its frame in a view.
    pub(super) fn frame(&self, view: View) -> Bytes {
        match view {
            View::Log => self.log.clone(),
            View::Session => self
                .session
                .get_or_init(|| view.committed(&self.recorded, None, 0))
                .clone(),
        }
    }
}

/// The answer to a lookup after a position.
#[derive(Debug)]
pub(super) enum Next {
    /// This event, right after it.
    Event(Arc<FramedEvent>),
    /// Nothing yet.
    Nothing,
    /// Events that are not kept any more, or never were: the store has them.
    Stored,
}

/// See the module. Clones see the same events, each at its own pace.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    kept: Arc<Mutex<Kept>>,
    /// The last position that can be asked for; always the end of a commit. It ends with the task
    /// that reads.
    published: watch::Receiver<u64>,
}

impl Tail {
    /// Begins after the last stored event. It comes with a task that reads on until it is stopped
    /// or the store is closed.
    pub(crate) fn begin<F>(
        durable: watch::Receiver<u64>,
        events: impl Fn(u64, usize) -> F + Send + Sync + 'static,
        stopping: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static)
    where
        F: Future<Output = Result<Vec<Recorded>, broker::Error>> + Send,
    {
        let last = *durable.borrow();
        let kept = Arc::new(Mutex::new(Kept {
            begins_after: last,
            ..Kept::default()
        }));
        let (sender, published) = watch::channel(last);
        let reading = Reading {
            events,
            durable,
            kept: Arc::clone(&kept),
            published: sender,
        };
        let read = async move {
            stopping.run_until_cancelled(reading.run()).await;
        };
        (Self { kept, published }, read)
    }

    /// Waits until there is more, and returns the new end. None when there will be nothing more.
    pub(super) async fn more(&mut self) -> Option<u64> {
        self.published.changed().await.ok()?;
        Some(*self.published.borrow_and_update())
    }

    /// Waits until everything up to a position can be asked for. None when that will never be.
    pub(super) async fn reached(&self, position: u64) -> Option<()> {
        // A copy waits, so that [`Tail::more`] tells of the same end.
        let mut published = self.published.clone();
        let reached = published.wait_for(|end| *end >= position).await;
        reached.ok().map(drop)
    }

    /// Returns the event right after a position.
    pub(super) fn next(&self, position: u64) -> Next {
        lock(&self.kept).next(position)
    }

    /// Returns whether one of the kept events after a position fulfils a condition.
    pub(super) fn any(&self, position: u64, is_like: impl Fn(&Recorded) -> bool) -> bool {
        let kept = lock(&self.kept);
        kept.events
            .iter()
            .rev()
            .take_while(|happened| happened.recorded.position > position)
            .any(|happened| is_like(&happened.recorded))
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The events after a position, without gaps.
#[derive(Debug, Default)]
struct Kept {
    begins_after: u64,
    events: VecDeque<Arc<FramedEvent>>,
    /// Size of all frames together.
    bytes: usize,
}

impl Kept {
    fn next(&self, position: u64) -> Next {
        let Some(index) = position.checked_sub(self.begins_after) else {
            return Next::Stored;
        };
        let event = usize::try_from(index)
            .ok()
            .and_then(|index| self.events.get(index));
        event.map_or(Next::Nothing, |event| Next::Event(Arc::clone(event)))
    }

    /// Adds the next event, and drops the oldest that are then too many.
    fn push(&mut self, recorded: Recorded) {
        let happened = FramedEvent::new(recorded);
        self.bytes += happened.log.len();
        self.events.push_back(Arc::new(happened));
        while self.events.len() > EVENTS_MAX || (self.bytes > BYTES_MAX && self.events.len() > 1) {
            let Some(oldest) = self.events.pop_front() else {
                return;
            };
            self.bytes -= oldest.log.len();
            self.begins_after = oldest.recorded.position;
        }
    }

    /// Keeps nothing of what was stored up to a position.
    fn skip_to(&mut self, position: u64) {
        *self = Self {
            begins_after: position,
            ..Self::default()
        };
    }

    fn ends_at(&self) -> u64 {
        self.begins_after + self.events.len() as u64
    }
}

/// The task that reads.
struct Reading<R> {
    /// Reads so many events after a position.
    events: R,
    durable: watch::Receiver<u64>,
    kept: Arc<Mutex<Kept>>,
    published: watch::Sender<u64>,
}

impl<R, F> Reading<R>
where
    R: Fn(u64, usize) -> F,
    F: Future<Output = Result<Vec<Recorded>, broker::Error>>,
{
    async fn run(mut self) {
        while self.durable.changed().await.is_ok() {
            let until = *self.durable.borrow_and_update();
            // The one that others are cloned from follows nothing.
            let is_followed = self.published.receiver_count() > 1;
            if !is_followed || !self.read(until).await {
                lock(&self.kept).skip_to(until);
            }
            self.published.send_replace(until);
        }
    }

    /// Reads up to a position. Returns false if the store does not let it: then each stream sees
    /// for itself.
    async fn read(&self, until: u64) -> bool {
        loop {
            let after = lock(&self.kept).ends_at();
            let wanted = usize::try_from(until.saturating_sub(after))
                .map_or(PAGE, |wanted| wanted.min(PAGE));
            if wanted == 0 {
                return true;
            }
            match (self.events)(after, wanted).await {
                // Something that is stored is missing.
                Ok(page) if page.is_empty() => return false,
                Ok(page) => {
                    let mut kept = lock(&self.kept);
                    page.into_iter().for_each(|recorded| kept.push(recorded));
                }
                Err(error) if error.is_busy() => {
                    tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the shared reader of event streams cannot read new events"
                    );
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

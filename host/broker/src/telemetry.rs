//! Telemetry for whoever listens: what happens on the host, as it happens.
//!
//! While nobody listens, all of it costs one read of a number wherever something could be told.
//! While somebody does, one task tells of stored events in their order, and of calls of models in
//! between. What a listener does not take in time is counted and lost: nobody ever waits for a
//! listener, and nothing is told again.

mod relay;
#[cfg(test)]
mod tests;

pub(crate) use relay::relay;

use domain::telemetry::{TelemetryEvent, TelemetryFilter};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// Number of events that wait for one listener. Further ones are lost to it.
pub const TELEMETRY_WAITING_MAX: usize = 1_024;
/// Number of events about models that wait for the task that tells of them. Further ones are lost
/// to everybody.
const UNTOLD_MAX: usize = 8_192;

/// The telemetry of a broker. Clones tell and listen to the same.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Number of listeners, and of those that want content.
    listening: AtomicUsize,
    wanting_content: AtomicUsize,
    listeners: Mutex<Vec<Place>>,
    /// The position after which the first of the present listeners began.
    from: AtomicU64,
    /// Wakes the task that tells when the first listener comes.
    begun: Notify,
    untold: mpsc::Sender<Untold>,
    /// The other end, until the task that tells takes it.
    to_tell: Mutex<Option<mpsc::Receiver<Untold>>>,
    /// Number of events that found no room in `untold`.
    unheard: AtomicU64,
}

/// An event that is not told yet, with the position of the last stored event before it.
#[derive(Debug)]
struct Untold {
    after: u64,
    event: TelemetryEvent,
}

/// The way to one listener.
#[derive(Debug)]
struct Place {
    seat: Arc<Seat>,
    events: mpsc::Sender<TelemetryEvent>,
}

/// The requests of one listener, and its losses.
#[derive(Debug)]
struct Seat {
    /// The position of the last stored event when the listener came.
    from: u64,
    filter: TelemetryFilter,
    content: bool,
    /// Number of events that were lost since the listener was last told.
    lost: AtomicU64,
}

/// Something that a listener hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event.
    Event(Box<TelemetryEvent>),
    /// So many events were lost to this listener since it was last told of some.
    Lost(u64),
}

/// A listener. It hears what happens from when it began until it is dropped.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    seat: Arc<Seat>,
    events: mpsc::Receiver<TelemetryEvent>,
}

impl Default for Telemetry {
    fn default() -> Self {
        let (untold, to_tell) = mpsc::channel(UNTOLD_MAX);
        Self {
            shared: Arc::new(Shared {
                listening: AtomicUsize::new(0),
                wanting_content: AtomicUsize::new(0),
                listeners: Mutex::default(),
                from: AtomicU64::new(0),
                begun: Notify::new(),
                untold,
                to_tell: Mutex::new(Some(to_tell)),
                unheard: AtomicU64::new(0),
            }),
        }
    }
}

impl Telemetry {
    /// Returns whether anybody listens. Telling costs nothing more than this while nobody does.
    #[must_use]
    pub(crate) fn is_heard(&self) -> bool {
        self.shared.listening.load(Ordering::Relaxed) > 0
    }

    /// Returns whether anybody listens who wants the text of replies.
    #[must_use]
    pub(crate) fn is_content_wanted(&self) -> bool {
        self.shared.wanting_content.load(Ordering::Relaxed) > 0
    }

    /// Tells of something that is not stored, if anybody listens. It is told after the stored
    /// events up to the position `after`. Never waits.
    pub(crate) fn tell(&self, after: impl FnOnce() -> u64, event: impl FnOnce() -> TelemetryEvent) {
        if !self.is_heard() {
            return;
        }
        let untold = Untold {
            after: after(),
            event: event(),
        };
        if self.shared.untold.try_send(untold).is_err() {
            self.shared.unheard.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Listens to what a filter selects, from the position `from` of the last stored event on. With
    /// `content`, chunks of replies come with their text: the caller has the reading on record.
    pub(crate) fn listen(&self, from: u64, filter: TelemetryFilter, content: bool) -> Listener {
        let (sender, events) = mpsc::channel(TELEMETRY_WAITING_MAX);
        let seat = Arc::new(Seat {
            from,
            filter,
            content,
            lost: AtomicU64::new(0),
        });
        let place = Place {
            seat: seat.clone(),
            events: sender,
        };
        let mut places = self.shared.places();
        if places.is_empty() {
            self.shared.from.store(from, Ordering::Relaxed);
        }
        places.push(place);
        drop(places);
        if content {
            self.shared.wanting_content.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.listening.fetch_add(1, Ordering::Relaxed);
        self.shared.begun.notify_one();
        Listener {
            shared: self.shared.clone(),
            seat,
            events,
        }
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        // Each change of it is whole.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event to all who listen to its like, and came when no stored event after `after`
    /// was there yet.
    fn spread(&self, after: u64, event: &TelemetryEvent) {
        for place in self.places().iter() {
            if place.seat.from <= after && place.seat.filter.selects(event) {
                place.take(event);
            }
        }
    }

    /// Tells all listeners that events were lost to everybody.
    fn spread_loss(&self, count: u64) {
        for place in self.places().iter() {
            place.seat.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl Place {
    fn take(&self, event: &TelemetryEvent) {
        let content = event.content.clone().filter(|_| self.seat.content);
        let event = TelemetryEvent {
            content,
            ..event.clone()
        };
        if self.events.try_send(event).is_err() {
            self.seat.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Listener {
    /// Waits for what comes next; none when nothing more will. What was lost is told first, before
    /// what still waits. Dropped before its end, it has taken nothing.
    pub async fn hear(&mut self) -> Option<Heard> {
        let lost = self.seat.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            return Some(Heard::Lost(lost));
        }
        self.events
            .recv()
            .await
            .map(|event| Heard::Event(Box::new(event)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared
            .places()
            .retain(|place| !Arc::ptr_eq(&place.seat, &self.seat));
        if self.seat.content {
            self.shared.wanting_content.fetch_sub(1, Ordering::Relaxed);
        }
        self.shared.listening.fetch_sub(1, Ordering::Relaxed);
    }
}

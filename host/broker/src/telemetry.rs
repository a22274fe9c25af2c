//! Telemetry for listeners: the activity of the host, as it happens.
//!
//! Without a listener, all of it costs one read of a number wherever an event could be sent. With
//! one, a task sends stored events in their order, and events of model calls in between. Events
//! that a listener does not receive in time are counted and lost: nothing ever waits for a
//! listener, and no event is sent again.

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
/// Number of events about models that wait for the sending task. Further ones are lost to all
/// listeners.
const UNTOLD_MAX: usize = 8_192;

/// The telemetry of a broker. Clones share it.
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
    /// Wakes the sending task when the first listener arrives.
    begun: Notify,
    untold: mpsc::Sender<Untold>,
    /// The receiving end, until the sending task takes it.
    to_tell: Mutex<Option<mpsc::Receiver<Untold>>>,
    /// Number of events that found no room in `untold`.
    unheard: AtomicU64,
}

/// An event that is not sent yet, with the position of the last stored event before it.
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
    /// The position of the last stored event when the listener arrived.
    from: u64,
    filter: TelemetryFilter,
    content: bool,
    /// Number of lost events since the listener was last notified of losses.
    lost: AtomicU64,
}

/// Something that a listener hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event.
    Event(Box<TelemetryEvent>),
    /// So many events were lost to this listener since the last such notice.
    Lost(u64),
}

/// A listener. It receives events from its beginning until it is dropped.
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
    /// Returns whether there is a listener. Without one, telemetry costs nothing more than this
    /// call.
    #[must_use]
    pub(crate) fn is_heard(&self) -> bool {
        self.shared.listening.load(Ordering::Relaxed) > 0
    }

    /// Returns whether anybody listens who wants the text of replies.
    #[must_use]
    pub(crate) fn is_content_wanted(&self) -> bool {
        self.shared.wanting_content.load(Ordering::Relaxed) > 0
    }

    /// Sends an event that is not stored, if there is a listener. It follows the stored events up
    /// to the position `after`. Never waits.
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

    /// Listens to the events that a filter selects, from the position `from` of the last stored
    /// event on. With `content`, chunks of replies include their text: the caller has recorded the
    /// reading.
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
        // Each change of it is complete.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to all listeners for its kind that arrived before any stored event after
    /// `after`.
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
    /// Waits for the next event; none when no more will follow. A notice of lost events comes
    /// before the waiting ones. If dropped before its end, it has taken nothing.
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

//! The places of one component: how many of its calls run at the same time. Calls under different
//! limits share one count.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The number of places that are taken, and the queue for one.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    count: u32,
    waiting: VecDeque<Waiting>,
}

/// A call that waits until fewer than `max` others run.
#[derive(Debug)]
struct Waiting {
    max: u32,
    place: oneshot::Sender<Place>,
}

/// A place. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>);

impl Places {
    /// A place while fewer than `max` are taken. None when too many wait already or it took too
    /// long.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        max: u32,
        waiting_max: usize,
        wait_max: Duration,
    ) -> Option<Place> {
        let max = max.max(1);
        let place = {
            let mut taken = self.taken();
            if taken.count < max {
                taken.count += 1;
                return Some(Place(self.clone()));
            }
            taken.waiting.retain(|waiting| !waiting.place.is_closed());
            if taken.waiting.len() >= waiting_max {
                return None;
            }
            let (place, given) = oneshot::channel();
            taken.waiting.push_back(Waiting { max, place });
            given
        };
        timeout(wait_max, place).await.ok()?.ok()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nobody who holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place back, and to the first who waits and may have it.
    fn leave(self: &Arc<Self>) {
        let next = {
            let mut taken = self.taken();
            taken.count -= 1;
            taken.waiting.retain(|waiting| !waiting.place.is_closed());
            let first = taken
                .waiting
                .iter()
                .position(|waiting| taken.count < waiting.max);
            let next = first.and_then(|first| taken.waiting.remove(first));
            taken.count += u32::from(next.is_some());
            next
        };
        if let Some(Waiting { place, .. }) = next {
            // Who gave up in this moment gives it back by dropping it.
            let _ = place.send(Place(self.clone()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}

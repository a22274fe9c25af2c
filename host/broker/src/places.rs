//! The places of this host's model calls: so many at a time, and of those that wait the most urgent first.

use domain::delegate::Priority;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// So many places, and who waits for one.
#[derive(Debug)]
pub(crate) struct Places(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    free: usize,
    /// How many have ever waited: gives each its turn.
    turns: u64,
    /// Nobody waits while a place is free.
    waiting: BTreeMap<(Reverse<Priority>, u64), oneshot::Sender<Place>>,
}

/// The right to call a model. Ends when it is dropped, and then belongs to whoever is next.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Places>>);

impl Places {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free: places, turns: 0, waiting: BTreeMap::new() })))
    }

    /// Waits for a place. Who gives up waiting, by dropping this, holds nobody up.
    pub(crate) async fn enter(self: &Arc<Self>, priority: Priority) -> Place {
        let called = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Place(Some(self.clone()));
            }
            let (sender, called) = oneshot::channel();
            let turn = queue.turns;
            queue.turns += 1;
            queue.waiting.insert((Reverse(priority), turn), sender);
            called
        };
        // Who waits is called before its sender goes.
        called.await.unwrap_or(Place(None))
    }

    /// A place is free again: calls the next one who still waits.
    fn leave(self: Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                let next = queue.waiting.pop_first();
                queue.free += usize::from(next.is_none());
                next
            };
            let Some((_, sender)) = next else { return };
            match sender.send(Place(Some(self.clone()))) {
                Ok(()) => return,
                // It has given up: the next one, and not by dropping this place, which would come here again.
                Err(mut unwanted) => drop(unwanted.0.take()),
            }
        }
    }

    /// What this guards stays right whatever panics.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{Critical, High, Low, Normal};
    use futures::FutureExt;

    #[test]
    fn of_those_that_wait_the_most_urgent_is_next_and_of_equals_the_first() {
        let places = Places::new(1);
        let mut held = places.enter(Low).now_or_never();
        assert!(held.is_some(), "a free place is taken at once");
        let asked = [Low, Normal, Critical, Normal, High, Critical];
        let mut waiting: Vec<_> = asked.iter().map(|priority| Box::pin(places.enter(*priority))).collect();
        for waits in &mut waiting {
            assert!(waits.now_or_never().is_none());
        }
        for expected in [2, 5, 4, 1, 3, 0] {
            drop(held.take());
            held = waiting[expected].as_mut().now_or_never();
            assert!(held.is_some(), "{expected}");
        }
    }

    #[test]
    fn who_gives_up_waiting_holds_nobody_up() {
        let places = Places::new(1);
        let held = places.enter(Normal).now_or_never();
        let (mut gone, mut called, mut last) =
            (Box::pin(places.enter(Critical)), Box::pin(places.enter(High)), Box::pin(places.enter(Low)));
        for waits in [&mut gone, &mut called, &mut last] {
            assert!(waits.now_or_never().is_none());
        }
        drop(gone);
        drop(held);
        // Called, and gone before it looked.
        drop(called);
        assert!(last.now_or_never().is_some());
    }
}

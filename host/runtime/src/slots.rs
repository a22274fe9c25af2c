//! How many guests run at the same time, and who waits how long for a slot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of all components together, and the queue before them.
#[derive(Debug)]
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    wait_max: Duration,
}

/// How many calls of one component run at the same time, and how many begin within a minute.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    concurrency: Mutex<Option<(u32, Arc<Semaphore>)>>,
    minute: Mutex<Option<Minute>>,
}

/// A minute, and the calls that have begun in it. The next one begins with the first call after its end.
#[derive(Debug)]
struct Minute {
    since: Instant,
    calls: u32,
}

/// How long it is.
const MINUTE: Duration = Duration::from_secs(60);

/// The right to run one guest. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _component: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl Gate {
    /// Counts a call, if the minute has room for it.
    pub(crate) fn admits(&self, calls_per_minute_max: u32, now: Instant) -> bool {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        match minute.as_mut().filter(|minute| now.saturating_duration_since(minute.since) < MINUTE) {
            Some(minute) if minute.calls >= calls_per_minute_max => return false,
            Some(minute) => minute.calls += 1,
            None => *minute = Some(Minute { since: now, calls: 1 }),
        }
        true
    }

    /// The semaphore for this limit. When the operator changes the limit, calls under the old one run to their end beside the new ones.
    fn semaphore(&self, concurrency_max: u32) -> Arc<Semaphore> {
        let mut current = self.concurrency.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some((limit, semaphore)) if *limit == concurrency_max => semaphore.clone(),
            _ => {
                let semaphore = Arc::new(Semaphore::new(concurrency_max.max(1) as usize));
                *current = Some((concurrency_max, semaphore.clone()));
                semaphore
            }
        }
    }
}

impl Slots {
    pub(crate) fn new(instances_max: u32, waiting_max: usize, wait_max: Duration) -> Self {
        Self { all: Arc::new(Semaphore::new(instances_max as usize)), waiting: AtomicUsize::new(0), waiting_max, wait_max }
    }

    /// Slots that are free now.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Calls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A slot of the component's and one of the host's, in this order, so that a component that waits for itself holds nothing of others.
    /// None when too many wait or it took too long.
    pub(crate) async fn enter(&self, gate: &Gate, concurrency_max: u32) -> Option<Slot> {
        let component = self.acquire(gate.semaphore(concurrency_max)).await?;
        let all = self.acquire(self.all.clone()).await?;
        Some(Slot { _component: Some(component), _all: all })
    }

    /// A slot of the host's alone.
    pub(crate) async fn enter_ungated(&self) -> Option<Slot> {
        Some(Slot { _component: None, _all: self.acquire(self.all.clone()).await? })
    }

    async fn acquire(&self, semaphore: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = semaphore.clone().try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = Waiting::begin(self)?;
        tokio::time::timeout(self.wait_max, semaphore.acquire_owned()).await.ok()?.ok()
    }
}

/// A place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(slots: &'a Slots) -> Option<Self> {
        let room = |waiting: usize| (waiting < slots.waiting_max).then_some(waiting + 1);
        slots.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Self(&slots.waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_the_queue_full_is_refused_and_who_waits_too_long_too() {
        let slots = Slots::new(1, 1, Duration::from_millis(20));
        let gate = Gate::default();
        let held = slots.enter(&gate, 4).await.unwrap();
        let (first, second) = tokio::join!(slots.enter(&gate, 4), slots.enter(&gate, 4));
        assert!(first.is_none() && second.is_none());
        assert_eq!((slots.free(), slots.waiting()), (0, 0));
        drop(held);
        assert!(slots.enter(&gate, 4).await.is_some());
        assert_eq!(slots.free(), 1);
    }

    #[test]
    fn a_minute_has_room_for_so_many_calls_and_the_next_one_for_as_many_again() {
        let (gate, begin) = (Gate::default(), Instant::now());
        let admitted = |after_s: u64| (0..5).filter(|_| gate.admits(3, begin + Duration::from_secs(after_s))).count();
        assert_eq!((admitted(0), admitted(59), admitted(60), admitted(119), admitted(500)), (3, 0, 3, 0, 3));
    }

    #[tokio::test]
    async fn a_component_waits_for_itself_without_holding_slots_of_others() {
        let slots = Slots::new(4, 4, Duration::from_millis(20));
        let gate = Gate::default();
        let held = slots.enter(&gate, 1).await.unwrap();
        assert!(slots.enter(&gate, 1).await.is_none());
        assert_eq!(slots.free(), 3);
        drop(held);
        assert!(slots.enter(&gate, 1).await.is_some());
    }
}

//! How many guests run at the same time, and who waits how long for a slot.
//!
//! A component that keeps computing until it is stopped shares one lane with all others that do, so that however many of them are called,
//! they take no more than one guest's part of the machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Times that a component was stopped for computing too long, with less than [`OFFENCE_LASTS`] between them, before it is confined.
const OFFENCES_MAX: u32 = 3;
/// How long such a time counts.
const OFFENCE_LASTS: Duration = Duration::from_secs(60);

/// The slots of all components together, and the queue before them.
#[derive(Debug)]
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    /// The one lane of all that are confined.
    lane: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_in_lane: AtomicUsize,
    waiting_max: usize,
    wait_max: Duration,
}

/// How many calls of one component run at the same time, and how many begin within a minute.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    concurrency: Mutex<Option<(u32, Arc<Semaphore>)>>,
    minute: Mutex<Option<Minute>>,
    offences: Mutex<Option<Offences>>,
    waiting: AtomicUsize,
}

/// How often a component was stopped for computing too long, and when last.
#[derive(Debug, Clone, Copy)]
struct Offences {
    count: u32,
    last: Instant,
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
    _lane: Option<OwnedSemaphorePermit>,
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

    /// Notes that a call was stopped for computing too long.
    pub(crate) fn offended(&self, now: Instant) {
        let mut offences = self.offences.lock().unwrap_or_else(PoisonError::into_inner);
        let count = offences.filter(|past| now.saturating_duration_since(past.last) < OFFENCE_LASTS).map_or(0, |past| past.count);
        *offences = Some(Offences { count: count.saturating_add(1), last: now });
    }

    /// Whether the component has to share the one lane.
    fn is_confined(&self, now: Instant) -> bool {
        let offences = *self.offences.lock().unwrap_or_else(PoisonError::into_inner);
        offences.is_some_and(|past| past.count >= OFFENCES_MAX && now.saturating_duration_since(past.last) < OFFENCE_LASTS)
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
        let (all, lane) = (Arc::new(Semaphore::new(instances_max as usize)), Arc::new(Semaphore::new(1)));
        Self { all, lane, waiting: AtomicUsize::new(0), waiting_in_lane: AtomicUsize::new(0), waiting_max, wait_max }
    }

    /// Slots that are free now.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Calls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A slot of the component's, the lane if it is confined, and a slot of the host's, in this order, so that a component that waits for
    /// itself holds nothing of others. Each has a queue of its own. None when too many wait or it took too long.
    pub(crate) async fn enter(&self, gate: &Gate, concurrency_max: u32) -> Option<Slot> {
        let component = self.acquire(gate.semaphore(concurrency_max), &gate.waiting).await?;
        let lane = match gate.is_confined(Instant::now()) {
            true => Some(self.acquire(self.lane.clone(), &self.waiting_in_lane).await?),
            false => None,
        };
        let all = self.acquire(self.all.clone(), &self.waiting).await?;
        Some(Slot { _component: Some(component), _lane: lane, _all: all })
    }

    /// A slot of the host's alone.
    pub(crate) async fn enter_ungated(&self) -> Option<Slot> {
        Some(Slot { _component: None, _lane: None, _all: self.acquire(self.all.clone(), &self.waiting).await? })
    }

    async fn acquire(&self, semaphore: Arc<Semaphore>, waiting: &AtomicUsize) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = semaphore.clone().try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = Waiting::begin(waiting, self.waiting_max)?;
        tokio::time::timeout(self.wait_max, semaphore.acquire_owned()).await.ok()?.ok()
    }
}

/// A place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize, waiting_max: usize) -> Option<Self> {
        let room = |waiting: usize| (waiting < waiting_max).then_some(waiting + 1);
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Self(waiting))
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

    #[tokio::test]
    async fn components_that_keep_computing_until_they_are_stopped_share_one_lane_and_others_do_not() {
        let slots = Slots::new(8, 8, Duration::from_millis(20));
        let (one, other, honest) = (Gate::default(), Gate::default(), Gate::default());
        let now = Instant::now();
        for gate in [&one, &other] {
            (0..OFFENCES_MAX).for_each(|_| gate.offended(now));
        }
        honest.offended(now);
        let held = slots.enter(&one, 4).await.unwrap();
        assert!(slots.enter(&other, 4).await.is_none() && slots.enter(&one, 4).await.is_none());
        assert!(slots.enter(&honest, 4).await.is_some());
        drop(held);
        assert!(slots.enter(&other, 4).await.is_some());
    }

    #[test]
    fn an_offence_is_forgotten_after_a_minute_without_another() {
        let (gate, begin) = (Gate::default(), Instant::now());
        (0..OFFENCES_MAX).for_each(|_| gate.offended(begin));
        assert!(gate.is_confined(begin + OFFENCE_LASTS / 2) && !gate.is_confined(begin + OFFENCE_LASTS));
        gate.offended(begin + OFFENCE_LASTS);
        assert!(!gate.is_confined(begin + OFFENCE_LASTS));
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

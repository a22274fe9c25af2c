//! The slots for guests that run at the same time, and the queue for them.
//!
//! A component that keeps computing until it is stopped shares one lane with all others that do, so
//! that however many of them are called, they take no more than one guest's part of the machine.

use crate::call_semaphore::{CallPermit, CallSemaphore};
use crate::outcome::NotAdmitted;
use domain::grant::GuestLimits;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Times that a component was stopped for computing too long, with less than [`OFFENCE_LASTS`]
/// between them, before it is confined.
const OFFENCES_MAX: u32 = 3;
/// Time for which such an offence counts.
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

/// The limits of one component: its calls at the same time, and those that begin within a minute.
/// They are shared by all code that serves under one name.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    calls: Arc<CallSemaphore>,
    /// Start times of the calls of the last minute, the first one first.
    begun: Mutex<VecDeque<Instant>>,
    offences: Mutex<Option<Offences>>,
}

/// The reason that a call was not let in.
#[derive(Debug)]
pub(crate) enum AdmissionRefusal {
    /// Too many calls of its component are under way or wait.
    Component,
    /// Too many calls of the host's are.
    Host,
    /// Its component was called as often within the last minute as it may be.
    TooOften {
        /// Time until it may be called again.
        wait: Duration,
    },
}

impl AdmissionRefusal {
    /// The limit, as the config names it.
    pub(crate) fn limit(&self) -> &'static str {
        match self {
            Self::Component => "concurrencyMax",
            Self::Host => "instancesMax",
            Self::TooOften { .. } => "callsPerMinuteMax",
        }
    }
}

impl From<&AdmissionRefusal> for NotAdmitted {
    fn from(refusal: &AdmissionRefusal) -> Self {
        match refusal {
            AdmissionRefusal::Component | AdmissionRefusal::Host => Self::Busy,
            AdmissionRefusal::TooOften { wait } => Self::TooOften {
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            },
        }
    }
}

/// The number of times that a component was stopped for computing too long, and the time of the
/// last.
#[derive(Debug, Clone, Copy)]
struct Offences {
    count: u32,
    last: Instant,
}

/// Time for which a call counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The right to run one guest. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _component: Option<CallPermit>,
    _lane: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

/// The right to take one step of a component, under the limits with which it was let in. Others
/// have its slot once this is dropped, or the step is over.
#[derive(Debug)]
pub struct Admission {
    pub(crate) slot: Slot,
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: GuestLimits,
}

impl Gate {
    /// Counts a call, if fewer than the limit have begun within the minute before it; says how long
    /// to wait otherwise.
    fn count(&self, calls_per_minute_max: u32, now: Instant) -> Result<(), AdmissionRefusal> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while begun
            .front()
            .is_some_and(|first| now.saturating_duration_since(*first) >= MINUTE)
        {
            begun.pop_front();
        }
        let max = calls_per_minute_max.max(1) as usize;
        // The limit may have been higher for those before: room is made when all but so many of
        // them are a minute old.
        match begun
            .len()
            .checked_sub(max)
            .and_then(|over| begun.get(over))
        {
            Some(first) => Err(AdmissionRefusal::TooOften {
                wait: MINUTE.saturating_sub(now.saturating_duration_since(*first)),
            }),
            None => {
                begun.push_back(now);
                Ok(())
            }
        }
    }

    /// Notes that a call was stopped for computing too long.
    pub(crate) fn record_offence(&self, now: Instant) {
        let mut offences = self.offences.lock().unwrap_or_else(PoisonError::into_inner);
        let count = offences
            .filter(|past| now.saturating_duration_since(past.last) < OFFENCE_LASTS)
            .map_or(0, |past| past.count);
        *offences = Some(Offences {
            count: count.saturating_add(1),
            last: now,
        });
    }

    /// Returns true if the component has to share the one lane.
    fn is_confined(&self, now: Instant) -> bool {
        let offences = *self.offences.lock().unwrap_or_else(PoisonError::into_inner);
        offences.is_some_and(|past| {
            past.count >= OFFENCES_MAX && now.saturating_duration_since(past.last) < OFFENCE_LASTS
        })
    }
}

impl Slots {
    pub(crate) fn new(instances_max: u32, waiting_max: usize, wait_max: Duration) -> Self {
        Self {
            all: Arc::new(Semaphore::new(instances_max as usize)),
            lane: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            waiting_in_lane: AtomicUsize::new(0),
            waiting_max,
            wait_max,
        }
    }

    /// Slots that are free now.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Calls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Lets a call in and counts it. One that does not get so far does not count.
    pub(crate) async fn admit(
        &self,
        gate: &Gate,
        limits: &GuestLimits,
    ) -> Result<Slot, AdmissionRefusal> {
        let slot = self.enter(gate, limits.concurrency_max).await?;
        gate.count(limits.calls_per_minute_max, Instant::now())?;
        Ok(slot)
    }

    /// Takes a slot of the component's, the lane if it is confined, and a slot of the host's. The
    /// order lets a component that waits for itself hold nothing of others. Each has a queue of its
    /// own. None when too many wait or it took too long.
    async fn enter(&self, gate: &Gate, concurrency_max: u32) -> Result<Slot, AdmissionRefusal> {
        let component = gate
            .calls
            .acquire(concurrency_max, self.waiting_max, self.wait_max)
            .await
            .ok_or(AdmissionRefusal::Component)?;
        let lane = match gate.is_confined(Instant::now()) {
            true => Some(
                self.acquire(self.lane.clone(), &self.waiting_in_lane)
                    .await
                    .ok_or(AdmissionRefusal::Host)?,
            ),
            false => None,
        };
        let all = self
            .acquire(self.all.clone(), &self.waiting)
            .await
            .ok_or(AdmissionRefusal::Host)?;
        Ok(Slot {
            _component: Some(component),
            _lane: lane,
            _all: all,
        })
    }

    /// A slot of the host's alone.
    pub(crate) async fn enter_ungated(&self) -> Option<Slot> {
        Some(Slot {
            _component: None,
            _lane: None,
            _all: self.acquire(self.all.clone(), &self.waiting).await?,
        })
    }

    async fn acquire(
        &self,
        semaphore: Arc<Semaphore>,
        waiting: &AtomicUsize,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = semaphore.clone().try_acquire_owned() {
            return Some(permit);
        }
        let _entry = QueueEntry::enter(waiting, self.waiting_max)?;
        tokio::time::timeout(self.wait_max, semaphore.acquire_owned())
            .await
            .ok()?
            .ok()
    }
}

/// An entry in a queue whose length is counted. It leaves the queue when it is dropped.
struct QueueEntry<'a>(&'a AtomicUsize);

impl<'a> QueueEntry<'a> {
    fn enter(waiting: &'a AtomicUsize, waiting_max: usize) -> Option<Self> {
        let room = |waiting: usize| (waiting < waiting_max).then_some(waiting + 1);
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .ok()?;
        Some(Self(waiting))
    }
}

impl Drop for QueueEntry<'_> {
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
        assert!(first.is_err() && second.is_err());
        assert_eq!((slots.free(), slots.waiting()), (0, 0));
        drop(held);
        assert!(slots.enter(&gate, 4).await.is_ok());
        assert_eq!(slots.free(), 1);
    }

    /// Components that keep computing until they are stopped share one lane, and others do not.
    #[tokio::test]
    async fn components_that_are_stopped_again_and_again_share_one_lane() {
        let slots = Slots::new(8, 8, Duration::from_millis(20));
        let one = Gate::default();
        let other = Gate::default();
        let honest = Gate::default();
        let now = Instant::now();
        for gate in [&one, &other] {
            (0..OFFENCES_MAX).for_each(|_| gate.record_offence(now));
        }
        honest.record_offence(now);
        let held = slots.enter(&one, 4).await.unwrap();
        assert!(slots.enter(&other, 4).await.is_err() && slots.enter(&one, 4).await.is_err());
        assert!(slots.enter(&honest, 4).await.is_ok());
        drop(held);
        assert!(slots.enter(&other, 4).await.is_ok());
    }

    #[test]
    fn an_offence_is_forgotten_after_a_minute_without_another() {
        let gate = Gate::default();
        let begin = Instant::now();
        (0..OFFENCES_MAX).for_each(|_| gate.record_offence(begin));
        assert!(
            gate.is_confined(begin + OFFENCE_LASTS / 2) && !gate.is_confined(begin + OFFENCE_LASTS)
        );
        gate.record_offence(begin + OFFENCE_LASTS);
        assert!(!gate.is_confined(begin + OFFENCE_LASTS));
    }

    #[test]
    fn a_minute_has_room_for_so_many_calls_and_the_next_one_for_as_many_again() {
        let gate = Gate::default();
        let begin = Instant::now();
        let admitted = |after_s: u64| {
            (0..5)
                .filter(|_| gate.count(3, begin + Duration::from_secs(after_s)).is_ok())
                .count()
        };
        assert_eq!(
            (
                admitted(0),
                admitted(59),
                admitted(60),
                admitted(119),
                admitted(500)
            ),
            (3, 0, 3, 0, 3)
        );
    }

    #[test]
    fn no_minute_has_more_calls_than_the_limit_wherever_it_begins() {
        let gate = Gate::default();
        let begin = Instant::now();
        let admitted = |after_s: u64| {
            (0..5)
                .filter(|_| gate.count(4, begin + Duration::from_secs(after_s)).is_ok())
                .count()
        };
        assert_eq!((admitted(0), admitted(58)), (4, 0));
        let gate = Gate::default();
        let admitted = |calls: u32, after_s: u64| {
            (0..calls)
                .filter(|_| gate.count(4, begin + Duration::from_secs(after_s)).is_ok())
                .count()
        };
        assert_eq!(
            (
                admitted(1, 0),
                admitted(5, 59),
                admitted(5, 61),
                admitted(5, 118),
                admitted(5, 119)
            ),
            (1, 3, 1, 0, 3)
        );
    }

    #[test]
    fn who_is_called_too_often_is_told_when_there_is_room_again() {
        let gate = Gate::default();
        let begin = Instant::now();
        for after_s in [0, 10, 20] {
            gate.count(3, begin + Duration::from_secs(after_s)).unwrap();
        }
        let waits = |max| match gate.count(max, begin + Duration::from_secs(30)) {
            Err(AdmissionRefusal::TooOften { wait }) => wait.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!((waits(3), waits(2), waits(1)), (30, 40, 50));
    }

    #[tokio::test]
    async fn a_lower_limit_counts_the_calls_that_run_under_a_higher_one() {
        let slots = Slots::new(8, 8, Duration::from_millis(20));
        let gate = Gate::default();
        let held = [
            slots.enter(&gate, 4).await.unwrap(),
            slots.enter(&gate, 4).await.unwrap(),
        ];
        assert!(slots.enter(&gate, 2).await.is_err() && slots.enter(&gate, 1).await.is_err());
        assert!(slots.enter(&gate, 4).await.is_ok());
        drop(held);
        assert!(slots.enter(&gate, 1).await.is_ok());
    }

    #[tokio::test]
    async fn a_component_waits_for_itself_without_holding_slots_of_others() {
        let slots = Slots::new(4, 4, Duration::from_millis(20));
        let gate = Gate::default();
        let held = slots.enter(&gate, 1).await.unwrap();
        assert!(slots.enter(&gate, 1).await.is_err());
        assert_eq!(slots.free(), 3);
        drop(held);
        assert!(slots.enter(&gate, 1).await.is_ok());
    }
}

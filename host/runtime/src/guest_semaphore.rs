//! The semaphore of guests that run at the same time, and the queue before it.
//!
//! A component that keeps computing until it is stopped shares one lane with all others that do, so
//! that however many of them are called, they take no more than one guest's part of the machine.

use crate::outcome::NotAdmitted;
use domain::grant::GuestLimits;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// Times that a component was stopped for computing too long, with less than [`OFFENCE_LASTS`]
/// between them, before it is confined.
const OFFENCES_MAX: u32 = 3;
/// Time for which such an offence counts.
const OFFENCE_LASTS: Duration = Duration::from_secs(60);

/// The permits of all components together, and the queue for them.
#[derive(Debug)]
pub(crate) struct GuestSemaphore {
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
pub(crate) struct GuestPermit {
    _component: Option<CallPermit>,
    _lane: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

/// The right to take one step of a component, under the limits with which it was let in. Others
/// have its permit once this is dropped, or the step is over.
#[derive(Debug)]
pub struct Admission {
    pub(crate) permit: GuestPermit,
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

impl GuestSemaphore {
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

    /// Permits that are free now.
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
    ) -> Result<GuestPermit, AdmissionRefusal> {
        let permit = self.enter(gate, limits.concurrency_max).await?;
        gate.count(limits.calls_per_minute_max, Instant::now())?;
        Ok(permit)
    }

    /// Takes a permit of the component's, the lane if it is confined, and a permit of the host's.
    /// The order lets a component that waits for itself hold nothing of others. Each has a queue of
    /// its own. None when too many wait or it took too long.
    async fn enter(
        &self,
        gate: &Gate,
        concurrency_max: u32,
    ) -> Result<GuestPermit, AdmissionRefusal> {
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
        Ok(GuestPermit {
            _component: Some(component),
            _lane: lane,
            _all: all,
        })
    }

    /// A permit of the host's alone.
    pub(crate) async fn enter_ungated(&self) -> Option<GuestPermit> {
        Some(GuestPermit {
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
        timeout(self.wait_max, semaphore.acquire_owned())
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

/// A semaphore for the calls of one component. Its limit comes with each call, so that calls under
/// different limits share one count.
#[derive(Debug, Default)]
pub(crate) struct CallSemaphore(Mutex<Permits>);

#[derive(Debug, Default)]
struct Permits {
    acquired: u32,
    queue: VecDeque<QueuedCall>,
}

/// A call that waits until fewer than `max` permits are out.
#[derive(Debug)]
struct QueuedCall {
    max: u32,
    sender: oneshot::Sender<CallPermit>,
}

/// The right to make one call. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct CallPermit(Arc<CallSemaphore>);

impl CallSemaphore {
    /// Waits until fewer than `max` permits are out. None when too many wait already or it took too
    /// long.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        max: u32,
        queued_max: usize,
        wait_max: Duration,
    ) -> Option<CallPermit> {
        let max = max.max(1);
        let permit = {
            let mut permits = self.permits();
            if permits.acquired < max {
                permits.acquired += 1;
                return Some(CallPermit(self.clone()));
            }
            permits.queue.retain(|call| !call.sender.is_closed());
            if permits.queue.len() >= queued_max {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            permits.queue.push_back(QueuedCall { max, sender });
            receiver
        };
        timeout(wait_max, permit).await.ok()?.ok()
    }

    fn permits(&self) -> MutexGuard<'_, Permits> {
        // Nobody who holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit back, and gives it to the first in the queue who may have it.
    fn release(self: &Arc<Self>) {
        let next = {
            let mut permits = self.permits();
            permits.acquired -= 1;
            permits.queue.retain(|call| !call.sender.is_closed());
            let first = permits
                .queue
                .iter()
                .position(|call| permits.acquired < call.max);
            let next = first.and_then(|first| permits.queue.remove(first));
            permits.acquired += u32::from(next.is_some());
            next
        };
        if let Some(QueuedCall { sender, .. }) = next {
            // Who gave up in this moment gives it back by dropping it.
            let _ = sender.send(CallPermit(self.clone()));
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;

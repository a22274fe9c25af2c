//! The clock of a host: every "now" of its work comes from here. The rules are in [`domain::clock`].

mod carrier;

use carrier::Carrier;
use domain::clock::{HostTime, Lead, Past, Reading};
use domain::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts on while the machine sleeps, so that what passed then is no jump of the wall clock.
#[cfg(target_os = "linux")]
const PASSED: ClockId = ClockId::Boottime;
/// On macOS it does so too.
#[cfg(not(target_os = "linux"))]
const PASSED: ClockId = ClockId::Monotonic;

/// A clock that is handed to whatever asks for the time. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    read: Box<dyn Fn() -> Reading + Send + Sync>,
    time: Mutex<HostTime>,
    carrier: Option<Carrier>,
}

/// A clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// The time by which the host goes.
    pub now: Timestamp,
    /// The machine's wall clock.
    pub wall: Timestamp,
    /// The lead of the wall clock that the host does not follow.
    pub jump: Option<Lead>,
    /// The time before the host's start of which nobody knows whether it has passed.
    pub gap: Option<Lead>,
}

impl Clock {
    /// The machine's.
    #[must_use]
    pub fn system() -> Self {
        Self::of(machine)
    }

    /// The machine's, carried on by a file from one process to the next as long as the machine is not booted.
    #[must_use]
    pub fn carried_by(file: PathBuf) -> Self {
        Self::with(machine, Carrier::new(file))
    }

    /// A clock that goes by what a function reads.
    #[must_use]
    pub fn of(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self::with(read, None)
    }

    fn with(read: impl Fn() -> Reading + Send + Sync + 'static, carrier: Option<Carrier>) -> Self {
        let time = HostTime::begin(read(), Past::default());
        Self(Arc::new(Inner { read: Box::new(read), time: Mutex::new(time), carrier }))
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.go_on().now()
    }

    /// The present as far as credentials are concerned: no doubt about the wall clock makes one of them last longer.
    #[must_use]
    pub fn for_credentials(&self) -> Timestamp {
        self.go_on().later()
    }

    /// Returns the host's time, the wall clock, and the distance between them.
    #[must_use]
    pub fn state(&self) -> ClockState {
        let time = self.go_on();
        ClockState { now: time.now(), wall: time.wall(), jump: time.jump(), gap: time.gap() }
    }

    /// Follows the wall clock ahead, because an operator says that it is right.
    #[must_use]
    pub fn confirm(&self) -> ClockState {
        let before = self.state();
        self.time().confirm((self.0.read)());
        tracing::warn!(before.now = %before.now, wall = %before.wall, "an operator has confirmed the wall clock, and the host follows it");
        self.state()
    }

    /// Begins anew with a store whose last event is of this time.
    pub(crate) fn begin(&self, last: Timestamp) {
        let read = (self.0.read)();
        let carried = self.0.carrier.as_ref().and_then(|carrier| carrier.carried(read.passed_ms));
        let time = HostTime::begin(read, Past { last: (last > Timestamp(0)).then_some(last), carried });
        if let Some(jump) = time.jump() {
            tracing::warn!(jump.ms = jump.ms, "the wall clock jumped ahead while no host was running; nothing expires by that");
        }
        if let Some(gap) = time.gap() {
            tracing::info!(gap.ms = gap.ms, "nothing was stored for a while before this start; idempotency keys are kept that much longer");
        }
        if time.now() > time.wall() {
            let lead_ms = time.now().since_ms(time.wall());
            tracing::warn!(lead_ms, "the wall clock is behind what is stored; the host's time goes on from there");
        }
        *self.time() = time;
    }

    /// Has the next process go on from here.
    pub(crate) async fn carry(&self) {
        let Some(carrier) = &self.0.carrier else { return };
        let base_ms = self.go_on().base_ms();
        carrier.carry(base_ms).await;
    }

    fn go_on(&self) -> MutexGuard<'_, HostTime> {
        let read = (self.0.read)();
        let mut time = self.time();
        let before = time.jump().map(|jump| jump.ms);
        time.go_on(read);
        match time.jump() {
            Some(jump) if before != Some(jump.ms) => {
                tracing::warn!(
                    jump.ms = jump.ms,
                    left_ms = jump.left_ms,
                    "the wall clock jumped ahead; nothing expires by that until it has kept its lead, or `agent-host clock confirm` says that it is right"
                );
            }
            None if before.is_some() => tracing::info!(now = %time.now(), "the wall clock is not doubted any more"),
            Some(_) | None => {}
        }
        time
    }

    fn time(&self) -> MutexGuard<'_, HostTime> {
        self.0.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// The clocks of this machine. The one place in this crate where they are read.
#[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
fn machine() -> Reading {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let passed = clock_gettime(PASSED);
    let seconds = u64::try_from(passed.tv_sec).unwrap_or_default();
    let ms = u64::try_from(passed.tv_nsec / 1_000_000).unwrap_or_default();
    Reading {
        wall: Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        passed_ms: seconds.saturating_mul(1_000).saturating_add(ms),
    }
}

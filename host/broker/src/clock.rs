//! The clock of a host: all code that needs the present time reads it here. The rules are in
//! [`domain::clock`].

mod carrier;

use carrier::{Carrier, Written};
use domain::clock::{HostTime, Lead, Past, Reading};
use domain::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The clock of elapsed time. It keeps counting while the machine sleeps, so the time asleep does
/// not look like a jump of the wall clock.
#[cfg(target_os = "linux")]
const PASSED: ClockId = ClockId::Boottime;
/// The clock that counts the passing time. On macOS it counts on while the machine sleeps, too.
#[cfg(not(target_os = "linux"))]
const PASSED: ClockId = ClockId::Monotonic;

/// Milliseconds from which on a lead, of the wall clock or of the stored time, is logged. A drift
/// that is not followed for a while begins with small leads that differ with each reading. The last
/// stored time may also be a millisecond ahead of the clock at a start.
const LOGGED_LEAD_MS_MIN: u64 = 1_000;

/// A clock that is handed to whatever asks for the time. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    read: Box<dyn Fn() -> Reading + Send + Sync>,
    time: Mutex<HostTime>,
    carrier: Option<Carrier>,
}

/// The readings of a clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// The time that the host goes by.
    pub now: Timestamp,
    /// The machine's wall clock.
    pub wall: Timestamp,
    /// The lead of the wall clock that the host does not follow.
    pub jump: Option<Lead>,
    /// The time before the host's start of which it is not known whether it has passed.
    pub gap: Option<Lead>,
    /// The time by which credentials end, if an operator has confirmed a wall clock behind the
    /// host's time.
    pub credentials: Option<Timestamp>,
}

impl Clock {
    /// Returns the machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::of(machine)
    }

    /// Returns the machine's clock, carried on by a file from one process to the next.
    ///
    /// It is kept only until the machine is booted again. If boots cannot be distinguished, nothing
    /// is kept, and the log states that.
    #[must_use]
    pub fn transferred_by(file: PathBuf) -> Self {
        let carrier = Carrier::new(file).inspect_err(|error| {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "the boot's id cannot be read: neither the host's time nor a confirmation of the \
                 clock lasts beyond this process"
            );
        });
        Self::with(machine, carrier.ok())
    }

    /// Creates a clock that goes by the readings of a function.
    #[must_use]
    pub fn of(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self::with(read, None)
    }

    fn with(read: impl Fn() -> Reading + Send + Sync + 'static, carrier: Option<Carrier>) -> Self {
        let time = HostTime::begin(read(), Past::default());
        Self(Arc::new(Inner {
            read: Box::new(read),
            time: Mutex::new(time),
            carrier,
        }))
    }

    /// Returns the present time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.go_on().now()
    }

    /// Returns the present time for checks of credentials. A doubt about the wall clock never makes
    /// one last longer.
    #[must_use]
    pub fn for_credentials(&self) -> Timestamp {
        self.go_on().for_credentials()
    }

    /// Returns the host's time, the wall clock, and the distance between them.
    #[must_use]
    pub fn state(&self) -> ClockState {
        let time = self.go_on();
        let credentials = time.confirmed().map(|confirmed| confirmed.now);
        ClockState {
            now: time.now(),
            wall: time.wall(),
            jump: time.jump(),
            gap: time.gap(),
            credentials,
        }
    }

    /// Follows a wall clock that is ahead, or lets credentials expire by one that is behind,
    /// because an operator confirmed it.
    #[must_use]
    pub fn confirm(&self) -> ClockState {
        let before = self.state();
        self.time().confirm((self.0.read)());
        let after = self.state();
        match after.credentials {
            None => {
                tracing::warn!(before.now = %before.now, wall = %before.wall, "an operator has \
                    confirmed the wall clock, and the host follows it");
            }
            Some(_) => tracing::warn!(
                now = %after.now,
                wall = %after.wall,
                "an operator has confirmed a wall clock that is behind the host's time: \
                 credentials end by it from now on"
            ),
        }
        after
    }

    /// Starts over with a store whose last event has this time.
    pub(crate) fn begin(&self, last: Timestamp) {
        let read = (self.0.read)();
        let transferred = self
            .0
            .carrier
            .as_ref()
            .map(|carrier| carrier.transferred(read.passed_ms))
            .unwrap_or_default();
        let last = (last > Timestamp(0)).then_some(last);
        let time = HostTime::begin(
            read,
            Past {
                last,
                transferred: transferred.host,
                credentials: transferred.credentials,
            },
        );
        if let Some(jump) = time.jump() {
            tracing::warn!(
                jump.ms = jump.ms,
                "the wall clock jumped ahead while no host was running; nothing expires by that"
            );
        }
        if let Some(gap) = time.gap() {
            tracing::info!(
                gap.ms = gap.ms,
                "nothing was stored for a while before this start; idempotency keys are kept that \
                 much longer"
            );
        }
        let lead_ms = time.now().since_ms(time.wall());
        if lead_ms >= LOGGED_LEAD_MS_MIN {
            tracing::warn!(
                lead_ms,
                "the wall clock is behind what is stored; the host's time goes on from there"
            );
        }
        *self.time() = time;
    }

    /// Writes the host's time, from which the next process continues.
    pub(crate) async fn carry(&self) {
        let Some(carrier) = &self.0.carrier else {
            return;
        };
        let now = || {
            let time = self.go_on();
            Written {
                base_ms: time.base_ms(),
                credentials: time.confirmed(),
            }
        };
        carrier.carry(now).await;
    }

    fn go_on(&self) -> MutexGuard<'_, HostTime> {
        let read = (self.0.read)();
        let mut time = self.time();
        let before = jump_to_log(&time).map(|jump| jump.ms);
        time.go_on(read);
        match jump_to_log(&time) {
            Some(jump) if before != Some(jump.ms) => {
                tracing::warn!(
                    jump.ms = jump.ms,
                    left_ms = jump.left_ms,
                    "the wall clock jumped ahead; nothing expires by that until it has kept its \
                     lead, or `agent-host clock confirm` says that it is right"
                );
            }
            None if before.is_some() => {
                tracing::info!(now = %time.now(), "the wall clock is not doubted any more")
            }
            Some(_) | None => {}
        }
        time
    }

    fn time(&self) -> MutexGuard<'_, HostTime> {
        self.0.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn jump_to_log(time: &HostTime) -> Option<Lead> {
    time.jump().filter(|jump| jump.ms >= LOGGED_LEAD_MS_MIN)
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// Reads the clocks of this machine. No other place in this crate reads them.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else is handed"
)]
fn machine() -> Reading {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let passed = clock_gettime(PASSED);
    let seconds = u64::try_from(passed.tv_sec).unwrap_or_default();
    let ms = u64::try_from(passed.tv_nsec / 1_000_000).unwrap_or_default();
    Reading {
        wall: Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        passed_ms: seconds.saturating_mul(1_000).saturating_add(ms),
    }
}

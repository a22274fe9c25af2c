//! `wasi:clocks`: the machine's time for tools, and the time of the basis for agents.

use crate::call::CallState;
use crate::host::clock_and_randomness::ClockAndRandomness;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

/// Nanoseconds to which a tool's clocks are rounded down: too coarse to time other guests by.
const RESOLUTION_NS: u64 = 1_000_000;

fn coarse(duration: Duration) -> u64 {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    nanoseconds - nanoseconds % RESOLUTION_NS
}

#[expect(
    clippy::disallowed_methods,
    reason = "a tool's wall clock is the machine's; nothing of the host's own is decided by it"
)]
fn machine_time() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn datetime(nanoseconds: u64) -> wall_clock::Datetime {
    let since = Duration::from_nanos(nanoseconds);
    wall_clock::Datetime {
        seconds: since.as_secs(),
        nanoseconds: since.subsec_nanos(),
    }
}

impl wall_clock::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(datetime(match self.clock_and_randomness {
            ClockAndRandomness::Frozen { now, .. } => now.0.saturating_mul(1_000_000),
            ClockAndRandomness::Live { .. } => coarse(machine_time()),
        }))
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(datetime(RESOLUTION_NS))
    }
}

impl CallState {
    fn monotonic_ns(&self) -> u64 {
        match self.clock_and_randomness {
            ClockAndRandomness::Frozen { .. } => 0,
            ClockAndRandomness::Live { began } => coarse(began.elapsed()),
        }
    }

    fn sleep(&mut self, nanoseconds: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let sleep = match self.clock_and_randomness {
            ClockAndRandomness::Frozen { .. } => Sleep::Over,
            ClockAndRandomness::Live { .. } => {
                match tokio::time::Instant::now().checked_add(Duration::from_nanos(nanoseconds)) {
                    Some(until) => Sleep::Until(until),
                    None => Sleep::Forever,
                }
            }
        };
        let sleep = self.table.push(sleep)?;
        subscribe(&mut self.table, sleep)
    }
}

impl monotonic_clock::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.monotonic_ns())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(RESOLUTION_NS)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let nanoseconds = when.saturating_sub(self.monotonic_ns());
        self.sleep(nanoseconds)
    }

    fn subscribe_duration(&mut self, nanoseconds: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.sleep(nanoseconds)
    }
}

enum Sleep {
    /// It is over before it begins.
    Over,
    Until(tokio::time::Instant),
    /// Further away than the clock can say.
    Forever,
}

#[async_trait::async_trait]
impl Pollable for Sleep {
    async fn ready(&mut self) {
        match self {
            // Others get their turn even when a guest polls in a loop.
            Self::Over => tokio::task::yield_now().await,
            Self::Until(until) => tokio::time::sleep_until(*until).await,
            Self::Forever => std::future::pending().await,
        }
    }
}

//! `wasi:clocks` and `wasi:random` of one call: real and coarse for tools, standing still and
//! repeatable for agents.

use crate::call::CallState;
use crate::config::RANDOM_BYTES_MAX;
use domain::digest::Digest;
use domain::time::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

/// A guest's perception of time and chance.
#[derive(Debug)]
pub(crate) enum ClockAndRandomness {
    /// Time stands still, sleeping returns at once, and chance follows from a seed: the same step
    /// perceives the same again.
    Frozen {
        /// The time of the wall clock.
        now: Timestamp,
        /// The source of all randomness.
        random: SeededBytes,
    },
    /// The machine's, the clocks rounded down to a millisecond.
    Live {
        /// The zero of the monotonic clock.
        began: Instant,
    },
}

impl ClockAndRandomness {
    /// Returns those of a step.
    pub(crate) fn frozen(now: Timestamp, seed: Digest) -> Self {
        Self::Frozen {
            now,
            random: SeededBytes::new(seed),
        }
    }

    /// Returns those of a tool.
    pub(crate) fn live() -> Self {
        Self::Live {
            began: Instant::now(),
        }
    }
}

/// Bytes that follow from a seed: SHA-256 of the seed and a counter.
#[derive(Debug)]
pub(crate) struct SeededBytes {
    seed: Digest,
    counter: u64,
    block: std::array::IntoIter<u8, 32>,
}

impl SeededBytes {
    pub(crate) fn new(seed: Digest) -> Self {
        let Digest(first) = Self::block(seed, 0);
        Self {
            seed,
            counter: 1,
            block: first.into_iter(),
        }
    }

    fn next_byte(&mut self) -> u8 {
        loop {
            if let Some(byte) = self.block.next() {
                return byte;
            }
            let Digest(next) = Self::block(self.seed, self.counter);
            self.counter += 1;
            self.block = next.into_iter();
        }
    }

    fn block(seed: Digest, counter: u64) -> Digest {
        Digest::of_parts(&[b"random", &seed.0, &counter.to_be_bytes()])
    }

    /// Returns the next bytes.
    pub(super) fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.next_byte()).collect()
    }

    /// Returns the next eight bytes as a number.
    pub(super) fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.next_byte()))
    }
}

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

/// More bytes of randomness than a guest gets in one call.
#[derive(Debug, thiserror::Error)]
#[error("{asked} random bytes asked for at once, {RANDOM_BYTES_MAX} at most")]
pub(crate) struct TooManyRandomBytes {
    asked: u64,
}

impl random::Host for CallState {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        if length > RANDOM_BYTES_MAX {
            return Err(TooManyRandomBytes { asked: length }.into());
        }
        match &mut self.clock_and_randomness {
            ClockAndRandomness::Frozen { random, .. } => Ok(random.bytes(length)),
            ClockAndRandomness::Live { .. } => {
                random::Host::get_random_bytes(self.wasi.random(), length)
            }
        }
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        match &mut self.clock_and_randomness {
            ClockAndRandomness::Frozen { random, .. } => Ok(random.number()),
            ClockAndRandomness::Live { .. } => random::Host::get_random_u64(self.wasi.random()),
        }
    }
}

impl insecure::Host for CallState {
    fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        random::Host::get_random_bytes(self, length)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        random::Host::get_random_u64(self)
    }
}

impl insecure_seed::Host for CallState {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((
            random::Host::get_random_u64(self)?,
            random::Host::get_random_u64(self)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let bytes = |seed: &[u8]| SeededBytes::new(Digest::of(seed)).bytes(100);
        assert_eq!(bytes(b"a"), bytes(b"a"));
        assert_ne!(bytes(b"a"), bytes(b"b"));
        let halves = bytes(b"a");
        assert_ne!(halves[..32], halves[32..64]);
    }
}

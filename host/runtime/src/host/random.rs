//! `wasi:random`: the machine's randomness for tools, and bytes that follow from a seed for agents.

use crate::call::CallState;
use crate::config::RANDOM_BYTES_MAX;
use crate::host::clock_and_randomness::ClockAndRandomness;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

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

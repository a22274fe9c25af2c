//! Clocks and randomness of one call: real and coarse for tools, standing still and repeatable for
//! agents.

use domain::digest::Digest;
use domain::time::Timestamp;
use std::time::Instant;

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

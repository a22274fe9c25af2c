//! Pauses after failed attempts: each twice as long as the one before, up to a limit.

/// Pauses after failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Milliseconds after the first failure.
    pub first_ms: u64,
    /// The longest pause, in milliseconds.
    pub most_ms: u64,
}

impl Backoff {
    /// Returns the milliseconds to wait after this many failures in a row.
    #[must_use]
    pub fn pause_ms(self, failures: u32) -> u64 {
        let factor = 1_u64.checked_shl(failures.saturating_sub(1));
        self.first_ms
            .saturating_mul(factor.unwrap_or(u64::MAX))
            .min(self.most_ms)
    }

    /// Returns a random part of the pause, so that simultaneous failures are not retried
    /// simultaneously. `dice` is a random number from 0 to 1.
    #[must_use]
    pub fn spread_ms(self, failures: u32, dice: f64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a pause need not be exact"
        )]
        let part = (self.pause_ms(failures) as f64 * dice.clamp(0.0, 1.0)) as u64;
        part
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn pauses_double_up_to_their_limit_and_never_overflow() {
        for (first_ms, most_ms, failures, pause_ms) in [
            (500, 30_000, 0, 500),
            (500, 30_000, 1, 500),
            (500, 30_000, 2, 1_000),
            (500, 30_000, 3, 2_000),
            (500, 30_000, 6, 16_000),
            (500, 30_000, 7, 30_000),
            (500, 30_000, 64, 30_000),
            (500, 30_000, 65, 30_000),
            (500, 30_000, u32::MAX, 30_000),
            (60_000, 1_000, 1, 1_000),
            (0, 1_000, 9, 0),
            (0, 1_000, u32::MAX, 0),
            (3, u64::MAX, 65, u64::MAX),
            (u64::MAX, u64::MAX, 2, u64::MAX),
        ] {
            let backoff = Backoff { first_ms, most_ms };
            assert_eq!(
                backoff.pause_ms(failures),
                pause_ms,
                "{backoff:?} {failures}"
            );
        }
    }

    #[test]
    fn a_spread_pause_is_any_part_of_it() {
        let backoff = Backoff {
            first_ms: 500,
            most_ms: 30_000,
        };
        for (failures, dice, pause_ms) in [
            (1, 0.0, 0),
            (1, 0.5, 250),
            (1, 1.0, 500),
            (3, 0.5, 1_000),
            (99, 1.0, 30_000),
            (1, 7.0, 500),
            (1, -1.0, 0),
            (1, f64::NAN, 0),
        ] {
            assert_eq!(
                backoff.spread_ms(failures, dice),
                pause_ms,
                "{failures} {dice}"
            );
        }
    }
}

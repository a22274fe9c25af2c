//! The bound on calls of a service: so many in the long run, and more at once after a quiet time.

use tokio::time::Instant;

/// Calls of one service within a second that are taken in the long run.
const CALLS_PER_S: u32 = 50;
/// Calls of one service that are taken at once after a quiet time.
const CALLS_BURST: u32 = 500;

/// A bound on calls within a time.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Number of calls that may be made now, in thousandths.
    left_milli: u64,
    /// Time at which that was so.
    at: Option<Instant>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            left_milli: u64::from(CALLS_BURST) * 1_000,
            at: None,
        }
    }
}

impl Bucket {
    /// Takes one call. Returns false if there are too many.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = self.at.map_or(0, |at| {
            let passed = now.saturating_duration_since(at).as_millis();
            u64::try_from(passed).unwrap_or(u64::MAX)
        });
        self.at = Some(now);
        // So many calls in a second are as many thousandths of a call in a millisecond.
        let more_milli = passed.saturating_mul(u64::from(CALLS_PER_S));
        let most_milli = u64::from(CALLS_BURST) * 1_000;
        self.left_milli = self.left_milli.saturating_add(more_milli).min(most_milli);
        let left = self.left_milli.checked_sub(1_000);
        self.left_milli = left.unwrap_or(self.left_milli);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_service_may_call_often_at_once_and_less_often_for_long() {
        let mut bucket = Bucket::default();
        let begin = Instant::now();
        let taken = (0..2 * CALLS_BURST).filter(|_| bucket.take(begin)).count();
        assert_eq!(taken, usize::try_from(CALLS_BURST).unwrap());
        let second = begin + Duration::from_secs(1);
        let taken = (0..2 * CALLS_BURST).filter(|_| bucket.take(second)).count();
        assert_eq!(taken, usize::try_from(CALLS_PER_S).unwrap());
    }
}

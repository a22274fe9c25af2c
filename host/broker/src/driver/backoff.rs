//! Pauses of a driver after trouble, such as with the store.

use std::time::Duration;
use tokio::time::Instant;

/// The first pause, in milliseconds; each further one in a row is twice as long, up to
/// [`PAUSE_MS_MAX`].
const PAUSE_MS: u64 = 50;
/// The longest pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 5_000;
/// The longest pause of a driver that keeps a place meanwhile for which others wait, in
/// milliseconds.
const KEEPING_MS_MAX: u64 = 250;

/// Trouble in a row, and the pause after it.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    count: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// Begins a pause. It is empty after the first trouble in a row, if that was a conflict.
    pub(super) fn begin(&mut self, overtaken: bool, now: Instant) {
        let doubled = PAUSE_MS
            .saturating_mul(1 << self.count.min(16))
            .min(PAUSE_MS_MAX);
        let pause_ms = if overtaken && self.count == 0 {
            0
        } else {
            doubled
        };
        self.count = self.count.saturating_add(1);
        self.until = Some(now + Duration::from_millis(pause_ms));
    }

    /// Begins a pause of a driver that keeps a place meanwhile: never a long one.
    pub(super) fn begin_keeping(&mut self, now: Instant) {
        self.begin(false, now);
        let longest = now + Duration::from_millis(KEEPING_MS_MAX);
        self.until = self.until.map(|until| until.min(longest));
    }

    /// Returns the end of the pause; none outside of one.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Ends the pause. The next one is longer all the same, if there was trouble meanwhile.
    pub(super) fn cut_short(&mut self) {
        self.until = None;
    }

    /// Ends a row of trouble.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pauses_grow_while_trouble_goes_on_and_begin_anew_after_it() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let mut pause = |overtaken: bool, ends: bool| {
            backoff.begin(overtaken, now);
            let pause = backoff
                .until()
                .map(|until| u64::try_from((until - now).as_millis()).unwrap());
            backoff.cut_short();
            assert_eq!(backoff.until(), None);
            if ends {
                backoff.end();
            }
            pause.unwrap()
        };
        assert_eq!(
            [false, false, false].map(|overtaken| pause(overtaken, false)),
            [50, 100, 200]
        );
        assert_eq!(
            std::array::from_fn::<_, 6, _>(|_| pause(false, false)),
            [400, 800, 1_600, 3_200, 5_000, 5_000]
        );
        pause(false, true);
        // A driver that was overtaken looks again at once, but not if it is overtaken over and
        // over.
        assert_eq!(
            [
                pause(true, false),
                pause(true, true),
                pause(true, true),
                pause(false, true)
            ],
            [0, 100, 0, 50]
        );
    }
    #[tokio::test]
    async fn who_keeps_a_place_never_pauses_for_long() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let pauses = std::array::from_fn::<_, 5, _>(|_| {
            backoff.begin_keeping(now);
            backoff.until().map(|until| (until - now).as_millis())
        });
        assert_eq!(pauses, [50, 100, 200, 250, 250].map(Some));
    }
}

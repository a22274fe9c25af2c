//! Pauses of a driver after trouble, such as with the store.

use domain::backoff::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// Pauses after trouble in a row.
const PAUSES: Backoff = Backoff {
    first_ms: 50,
    most_ms: 5_000,
};
/// The longest pause of a driver that keeps a place meanwhile for which others wait, in
/// milliseconds.
const KEEPING_MS_MAX: u64 = 250;

/// Trouble in a row, and the pause after it.
#[derive(Debug, Default)]
pub(super) struct TroubleStreak {
    count: u32,
    until: Option<Instant>,
}

impl TroubleStreak {
    /// Begins a pause. It is empty after the first trouble in a row, if that was a conflict.
    pub(super) fn begin(&mut self, overtaken: bool, now: Instant) {
        self.count = self.count.saturating_add(1);
        let pause_ms = if overtaken && self.count == 1 {
            0
        } else {
            PAUSES.pause_ms(self.count)
        };
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
        let mut trouble = TroubleStreak::default();
        let mut pause = |overtaken: bool, ends: bool| {
            trouble.begin(overtaken, now);
            let pause = trouble
                .until()
                .map(|until| u64::try_from((until - now).as_millis()).unwrap());
            trouble.cut_short();
            assert_eq!(trouble.until(), None);
            if ends {
                trouble.end();
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
        // A driver that was overtaken checks again at once, but not if it is overtaken over and
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
        let mut trouble = TroubleStreak::default();
        let pauses = std::array::from_fn::<_, 5, _>(|_| {
            trouble.begin_keeping(now);
            trouble.until().map(|until| (until - now).as_millis())
        });
        assert_eq!(pauses, [50, 100, 200, 250, 250].map(Some));
    }
}

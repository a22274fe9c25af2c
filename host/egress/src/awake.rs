//! Awake time: what passes while this process runs.
//!
//! A deadline by the machine's clock is over at once when the process was stopped for longer
//! (SIGSTOP, a debugger, a frozen container), though nobody had the time to answer it. Deadlines of
//! work under way are kept by this clock instead. It has the shape of `tokio::time`, and stands
//! here because this is the lowest layer that waits for others.

use std::future::{Future, poll_fn};
use std::ops::Add;
use std::pin::{Pin, pin};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

/// Interval at which the passed time is measured.
const POLL: Duration = Duration::from_millis(500);
/// Maximum time counted between two measurements. More passes only when the process does not run.
const COUNTED_MAX: Duration = Duration::from_secs(2);

/// One for the process, because a process is stopped as a whole.
static COUNTED: LazyLock<Mutex<Counted>> = LazyLock::new(|| {
    let looking = thread::Builder::new()
        .name("awake-time".to_owned())
        .spawn(|| {
            loop {
                thread::sleep(POLL);
                let _inspected = Instant::now();
            }
        });
    // A machine that has no thread left for it counts too little while everybody waits, and
    // deadlines are late.
    drop(looking);
    Mutex::new(Counted {
        sum: Duration::ZERO,
        inspected: std::time::Instant::now(),
    })
});

#[derive(Debug)]
struct Counted {
    sum: Duration,
    inspected: std::time::Instant,
}

impl Counted {
    fn inspect(&mut self, now: std::time::Instant) -> Duration {
        let passed = now.saturating_duration_since(self.inspected);
        self.inspected = self.inspected.max(now);
        self.sum += passed.min(COUNTED_MAX);
        self.sum
    }
}

/// A point in awake time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The present.
    #[must_use]
    pub fn now() -> Self {
        let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        Self(counted.inspect(std::time::Instant::now()))
    }

    /// Returns the awake time since this point.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    /// Returns the awake time since an earlier point; zero if that point is later.
    #[must_use]
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Waits until a point in awake time.
pub fn sleep_until(until: Instant) -> Sleep {
    let left = until.saturating_duration_since(Instant::now());
    Sleep {
        until,
        sleep: Box::pin(tokio::time::sleep(left)),
    }
}

/// Waits for so long.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration)
}

/// Waits for something until a point in awake time. What is there when that has come counts as in
/// time.
///
/// # Errors
/// It did not come.
pub async fn timeout_at<F: Future>(until: Instant, what: F) -> Result<F::Output, TooLate> {
    let mut what = pin!(what);
    let mut sleep = pin!(sleep_until(until));
    poll_fn(|cx| match what.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| Err(TooLate)),
    })
    .await
}

/// Waits for something for so long.
///
/// # Errors
/// It did not come.
pub async fn timeout<F: Future>(duration: Duration, what: F) -> Result<F::Output, TooLate> {
    timeout_at(Instant::now() + duration, what).await
}

/// Something did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it did not come in time")]
pub struct TooLate;

/// A wait in awake time.
#[derive(Debug)]
#[must_use = "nothing waits before it is awaited"]
pub struct Sleep {
    until: Instant,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.sleep
                .as_mut()
                .reset(tokio::time::Instant::now() + left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_nobody_could_look_counts_little() {
        let begin = std::time::Instant::now();
        let mut counted = Counted {
            sum: Duration::ZERO,
            inspected: begin,
        };
        let mut inspect = |ms| {
            counted
                .inspect(begin + Duration::from_millis(ms))
                .as_millis()
        };
        assert_eq!(
            [
                inspect(500),
                inspect(1_000),
                inspect(61_000),
                inspect(61_500),
                inspect(900)
            ],
            [500, 1_000, 3_000, 3_500, 3_500]
        );
    }

    #[tokio::test]
    async fn a_wait_is_over_in_its_time_and_what_is_there_by_then_came_in_time() {
        let begin = std::time::Instant::now();
        let long = Duration::from_secs(60);
        sleep(Duration::from_millis(30)).await;
        assert!(begin.elapsed() >= Duration::from_millis(30));
        assert_eq!(
            timeout(Duration::from_millis(20), std::future::pending::<()>()).await,
            Err(TooLate)
        );
        assert_eq!(
            timeout(long, sleep(Duration::from_millis(20))).await,
            Ok(())
        );
        assert_eq!(timeout(Duration::ZERO, async { 5 }).await, Ok(5));
        assert!(begin.elapsed() < long);
    }
}

//! Refusals at a fixed time after the call, whatever the reason: the time does not reveal whether
//! the requested object exists.

use std::time::Duration;
use tokio::time::sleep;

/// Milliseconds after which a call from outside that proves nothing is refused: more than its
/// verification takes.
const REFUSED_AFTER_MS: u64 = 25;

/// Does the work of a call that proves itself. Its success is returned at once. A refusal is
/// returned after the same time as any other.
pub async fn refused_late<T>(work: impl Future<Output = T>, is_refusal: impl Fn(&T) -> bool) -> T {
    let due = sleep(Duration::from_millis(REFUSED_AFTER_MS));
    // The time counts from now on, and not from the first poll.
    tokio::pin!(due);
    let reported = work.await;
    if is_refusal(&reported) {
        due.await;
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::{REFUSED_AFTER_MS, refused_late};
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn a_refusal_comes_at_one_time_and_everything_else_at_once() {
        let took = async |work_ms: u64, is_refusal: bool| {
            let began = Instant::now();
            let work = sleep(Duration::from_millis(work_ms));
            refused_late(work, |()| is_refusal).await;
            began.elapsed()
        };
        let late = Duration::from_millis(REFUSED_AFTER_MS);
        for work_ms in [0, 1, REFUSED_AFTER_MS - 1] {
            let refused = took(work_ms, true).await;
            assert!(
                (late..late + Duration::from_millis(2)).contains(&refused),
                "{refused:?}"
            );
            assert!(took(work_ms, false).await < late + Duration::from_millis(2));
        }
        assert!(took(0, false).await < Duration::from_millis(2));
    }
}

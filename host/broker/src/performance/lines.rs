//! Command lines on threads of their own: their parser calls itself, and what they do takes time.

use domain::skill::SkillSet;
use domain::step::Failure;
use shell::{Answered, Came, Stopped};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Lines that are carried out at a time in this process. The others wait.
const LINES_MAX: usize = 4;
/// The time that a line may work up to its end or its next call.
const WORK_TIME_MAX: Duration = Duration::from_secs(5);

static LINES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LINES_MAX)));

/// Somebody who waits for a line. Without them the line is to stop.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Carries a line out, as far as the results of its calls go. It stops when nobody waits for it any
/// more, and when it has worked too long.
pub(super) async fn carried_out(
    command: String,
    skills: Arc<SkillSet>,
    answered: Vec<Answered>,
) -> Result<Came, Failure> {
    let work = move |stopped| shell::run(&command, &skills, &answered, stopped);
    on_thread(Arc::clone(&LINES), WORK_TIME_MAX, work).await
}

async fn on_thread<T: Send + 'static>(
    lines: Arc<Semaphore>,
    time_max: Duration,
    work: impl FnOnce(Stopped) -> T + Send + 'static,
) -> Result<T, Failure> {
    let host_failure = |why: &str| {
        tracing::error!(why, "a command line could not be carried out");
        Failure::lasting(
            "host-failed",
            "the host failed while it carried the line out",
        )
    };
    let Ok(permit) = lines.acquire_owned().await else {
        return Err(host_failure("no line is carried out any more"));
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let _waiting = Waiting(Arc::clone(&is_over));
    let (done, came) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("command-line".to_owned())
        .stack_size(shell::STACK_BYTES)
        .spawn(move || {
            // Its place is taken until it has ended, whether somebody waits for it or not.
            let _permit = permit;
            let began = Instant::now();
            let stopped: Stopped =
                Box::new(move || is_over.load(Ordering::Relaxed) || began.elapsed() > time_max);
            // Nobody waits any more for a line that was cancelled.
            let _ = done.send(work(stopped));
        });
    if let Err(error) = thread {
        return Err(host_failure(&error.to_string()));
    }
    // A panic drops the sender.
    came.await.map_err(|_| host_failure("it panicked"))
}

#[cfg(test)]
mod tests {
    use super::{Stopped, on_thread};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::{Semaphore, oneshot};

    fn until_stopped(stopped: &Stopped) {
        while !stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[tokio::test]
    async fn a_line_that_nobody_waits_for_stops_and_keeps_its_place_until_then() {
        let lines = Arc::new(Semaphore::new(1));
        let (begin, begun) = oneshot::channel();
        let line = on_thread(
            Arc::clone(&lines),
            Duration::from_secs(600),
            move |stopped| {
                begin.send(()).unwrap();
                until_stopped(&stopped);
                std::thread::sleep(Duration::from_millis(200));
            },
        );
        tokio::select! {
            _ = line => panic!("it goes on as long as somebody waits"),
            begun = begun => begun.unwrap(),
        }
        assert_eq!(lines.available_permits(), 0);
        let place = tokio::time::timeout(Duration::from_secs(30), lines.acquire()).await;
        assert!(place.is_ok());
    }

    #[tokio::test]
    async fn a_line_that_works_too_long_is_told_to_stop() {
        let lines = Arc::new(Semaphore::new(1));
        let line = on_thread(lines, Duration::from_millis(20), |stopped| {
            until_stopped(&stopped);
            "stopped"
        });
        let came = tokio::time::timeout(Duration::from_secs(30), line).await;
        assert!(matches!(came, Ok(Ok("stopped"))));
    }
}

//! Command lines on threads of their own: their parser is recursive, and their work takes time.
//!
//! Users take turns at the places, and no user has all of them.

use crate::computing::Computes;
use domain::event::RunStarted;
use domain::skill::SkillSet;
use domain::step::Failure;
use llm::fair_semaphore::{FairSemaphore, Party, Permit};
use shell::{Answered, LineOutcome, Stopped};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
/// Lines that are carried out at a time in this process. The others wait.
const LINES_MAX: usize = 4;
/// Lines of one user that are carried out at a time, so that a place is left for others.
const LINES_OF_USER_MAX: usize = LINES_MAX - 1;
/// The time that a line may work up to its end or its next call.
const WORK_TIME_MAX: Duration = Duration::from_secs(5);

static LINES: LazyLock<Arc<FairSemaphore>> = LazyLock::new(|| FairSemaphore::new(LINES_MAX));

/// Somebody who waits for a line. Without them the line is to stop.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A command line, with its environment.
pub(super) struct Line {
    pub(super) command: String,
    pub(super) skills: Arc<SkillSet>,
    /// The results of its calls so far.
    pub(super) answered: Vec<Answered>,
}

/// Executes a line, as far as the results of its calls go. It stops when no caller waits for it any
/// more, and when it has worked too long. While it waits for a place, nothing is computed.
pub(super) async fn carried_out(
    started: &RunStarted,
    line: Line,
    computes: &Computes,
) -> Result<LineOutcome, Failure> {
    let work = move |stopped| shell::run(&line.command, &line.skills, &line.answered, stopped);
    let permit = place(&LINES, party(started), computes).await;
    on_thread(permit, WORK_TIME_MAX, work).await
}

async fn place(lines: &Arc<FairSemaphore>, party: Party, computes: &Computes) -> Permit {
    computes.while_waiting(lines.enter(party)).await
}

/// Returns the party of the place: the user, in a section of their own.
fn party(started: &RunStarted) -> Party {
    Party::from(started).in_section(started.user_id.as_str(), LINES_OF_USER_MAX)
}

async fn on_thread<T: Send + 'static>(
    permit: Permit,
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
    let is_over = Arc::new(AtomicBool::new(false));
    let _waiting = Waiting(Arc::clone(&is_over));
    let (done, outcome) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("command-line".to_owned())
        .stack_size(shell::STACK_BYTES)
        .spawn(move || {
            // Its place is taken until it has ended, whether or not a caller waits for it.
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
    outcome.await.map_err(|_| host_failure("it panicked"))
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, LINES_OF_USER_MAX, Stopped, on_thread, place};
    use crate::computing::Computing;
    use domain::delegate::Priority;
    use domain::id::{AgentId, SessionId};
    use futures::poll;
    use llm::fair_semaphore::{FairSemaphore, Party};
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::task::JoinSet;
    use tokio::time::timeout;
    use uuid::Uuid;

    /// The party of a user, as lines have it.
    fn of(user: &str) -> Party {
        let party = Party {
            user: user.parse().unwrap(),
            agent: AgentId(Uuid::nil()),
            priority: Priority::default(),
            section: None,
        };
        party.in_section(user, LINES_OF_USER_MAX)
    }

    fn until_stopped(stopped: &Stopped) {
        while !stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[tokio::test]
    async fn a_line_that_nobody_waits_for_stops_and_keeps_its_place_until_then() {
        let lines = FairSemaphore::new(1);
        let (begin, begun) = oneshot::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let line = on_thread(
            lines.enter(of("ada")).await,
            Duration::from_secs(600),
            move |stopped| {
                begin.send(()).unwrap();
                until_stopped(&stopped);
                std::thread::sleep(Duration::from_millis(200));
                over.store(true, Ordering::Relaxed);
            },
        );
        tokio::select! {
            _ = line => panic!("it goes on as long as somebody waits"),
            begun = begun => begun.unwrap(),
        }
        let place = timeout(Duration::from_secs(30), lines.enter(of("ada"))).await;
        assert!(place.is_ok() && is_over.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_line_that_works_too_long_is_told_to_stop() {
        let lines = FairSemaphore::new(1);
        let line = on_thread(
            lines.enter(of("ada")).await,
            Duration::from_millis(20),
            |stopped| {
                until_stopped(&stopped);
                "stopped"
            },
        );
        let outcome = timeout(Duration::from_secs(30), line).await;
        assert!(matches!(outcome, Ok(Ok("stopped"))));
    }

    #[tokio::test]
    async fn a_session_that_waits_for_the_place_of_a_line_is_not_computed_for() {
        let lines = FairSemaphore::new(1);
        let taken = lines.enter(of("mallory")).await;
        let computing = Computing::default();
        let session = SessionId(Uuid::nil());
        let computes = computing.enter(session);
        let mut waits = pin!(place(&lines, of("ada"), &computes));
        assert!(poll!(&mut waits).is_pending());
        assert!(!computing.has(session));
        drop(taken);
        let _place = timeout(Duration::from_secs(30), waits).await.unwrap();
        assert!(computing.has(session), "the line is carried out");
    }

    #[tokio::test]
    async fn a_user_with_any_number_of_long_lines_holds_up_no_other_user() {
        let lines = FairSemaphore::new(LINES_MAX);
        let (tell, reported) = mpsc::channel();
        let mut under_way = JoinSet::new();
        for _ in 0..20 {
            let lines = Arc::clone(&lines);
            let tell = tell.clone();
            under_way.spawn(async move {
                let work = move |stopped: Stopped| {
                    tell.send(()).unwrap();
                    until_stopped(&stopped);
                };
                on_thread(
                    lines.enter(of("mallory")).await,
                    Duration::from_secs(600),
                    work,
                )
                .await
            });
        }
        for _ in 0..LINES_OF_USER_MAX {
            // Each requests a place before any other continues.
            while reported.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        }
        for _ in 0..3 {
            let line = async {
                let permit = lines.enter(of("ada")).await;
                on_thread(permit, Duration::from_secs(600), |_| "hi").await
            };
            let outcome = timeout(Duration::from_secs(30), line).await;
            assert!(matches!(outcome, Ok(Ok("hi"))), "{outcome:?}");
        }
        assert!(reported.try_recv().is_err(), "no user has all places");
    }
}

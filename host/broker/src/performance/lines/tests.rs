//! Places of command lines, and the words for the limits of the sandbox.

use super::{LINES_MAX, LINES_OF_USER_MAX, SegmentEnd, in_place, naming_calls, outcome};
use crate::computing::Computing;
use domain::delegate::Priority;
use domain::id::{AgentId, SessionId};
use domain::message::Part;
use domain::operation::Progress;
use futures::{FutureExt, poll};
use llm::fair_semaphore::{FairSemaphore, Party};
use runtime::Outcome;
use shell::LineOutcome;
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The work of a line: when it is dropped, it looks whether its place is taken.
struct Work {
    lines: Arc<FairSemaphore>,
    was_taken: Arc<AtomicBool>,
}

impl Drop for Work {
    fn drop(&mut self) {
        let free = self.lines.enter(of("ada")).now_or_never();
        self.was_taken.store(free.is_none(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_line_that_nobody_waits_for_stops_and_keeps_its_place_until_then() {
    let lines = FairSemaphore::new(1);
    let was_taken = Arc::new(AtomicBool::new(false));
    let computing = Computing::default();
    let computes = computing.enter(SessionId(Uuid::nil()));
    let work = Work {
        lines: Arc::clone(&lines),
        was_taken: Arc::clone(&was_taken),
    };
    let line = in_place(&lines, of("ada"), &computes, async move {
        let _work = work;
        pending::<()>().await;
    });
    let mut line = Box::pin(line);
    assert!(poll!(&mut line).is_pending());
    drop(line);
    assert!(
        was_taken.load(Ordering::Relaxed),
        "until the work has ended"
    );
    assert!(lines.enter(of("ada")).now_or_never().is_some());
}

#[tokio::test]
async fn a_session_that_waits_for_the_place_of_a_line_is_not_computed_for() {
    let lines = FairSemaphore::new(1);
    let taken = lines.enter(of("mallory")).await;
    let computing = Computing::default();
    let session = SessionId(Uuid::nil());
    let computes = computing.enter(session);
    let is_computed_for = async { computing.has(session) };
    let mut line = pin!(in_place(&lines, of("ada"), &computes, is_computed_for));
    assert!(poll!(&mut line).is_pending());
    assert!(!computing.has(session));
    drop(taken);
    assert!(line.await, "the line is carried out");
}

#[tokio::test]
async fn a_user_with_any_number_of_long_lines_holds_up_no_other_user() {
    let lines = FairSemaphore::new(LINES_MAX);
    let computing = Computing::default();
    let computes = computing.enter(SessionId(Uuid::nil()));
    let mut under_way = Vec::new();
    for _ in 0..20 {
        let mut line = Box::pin(in_place(&lines, of("mallory"), &computes, async move {
            pending::<()>().await;
        }));
        assert!(poll!(&mut line).is_pending());
        under_way.push(line);
    }
    for _ in 0..3 {
        let line = in_place(&lines, of("ada"), &computes, ready("hi"));
        assert_eq!(line.now_or_never(), Some("hi"), "no user has all places");
    }
}

#[test]
fn a_limit_of_the_sandbox_is_told_in_words_and_a_fault_of_the_host_is_none() {
    let trapped = Outcome::Trapped {
        message: "call stack exhausted".to_owned(),
        backtrace: String::new(),
    };
    for (ended, expected) in [
        (Outcome::OutOfCpu, "the line takes too long; narrow it"),
        (Outcome::TimedOut, "the line takes too long; narrow it"),
        (Outcome::OutOfMemory, "bytes of memory; narrow it"),
        (trapped, "call stack exhausted; divide it"),
    ] {
        match outcome(ended) {
            Ok(SegmentEnd::Limit(why)) => assert!(why.ends_with(expected), "{why}"),
            Ok(SegmentEnd::Ended(_)) | Err(_) => panic!("{expected}"),
        }
    }
    let parts = vec![Part::text("no outcome")];
    for (ended, code, is_passing) in [
        (Outcome::Busy, "busy", true),
        (
            Outcome::Returned(Ok(Progress::Done { parts })),
            "host-failed",
            false,
        ),
    ] {
        let Err(failure) = outcome(ended) else {
            panic!("{code}");
        };
        assert_eq!(
            (failure.code.as_str(), failure.retryable),
            (code, is_passing)
        );
    }
}

#[test]
fn a_line_that_fails_after_calls_names_them_and_is_no_failure() {
    let full = || outcome(Outcome::Busy).map(|_| unreachable!("it has not ended"));
    let failure = naming_calls(full(), 0).unwrap_err();
    assert!(failure.retryable, "nothing was done yet: {failure:?}");
    let Ok(LineOutcome::Done(shown)) = naming_calls(full(), 2) else {
        panic!("it ends with a word on its calls");
    };
    for expected in [failure.message.as_str(), "the 2 calls that it made stand"] {
        assert!(shown.contains(expected), "{shown}");
    }
}

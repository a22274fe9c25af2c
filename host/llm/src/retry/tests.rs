//! Tests of when a call is made again, and after how long.

use super::*;
use crate::failure::Refusal;

fn limits() -> RetryLimits {
    RetryLimits {
        attempts_max: 3,
        base_ms: 100,
        delay_ms_max: 1_000,
        retry_after_ms_max: 5_000,
    }
}

fn unavailable(reason: Reason) -> Failure {
    Failure::Unavailable {
        provider: String::new(),
        model: String::new(),
        reason,
        cause: None,
    }
}

fn limited(retry_after_ms: Option<u64>) -> AttemptError {
    let limited = Failure::RateLimited {
        provider: String::new(),
        model: String::new(),
        retry_after_ms,
        cause: None,
    };
    AttemptError::new(Mode::Stream, Stage::Answered, limited)
}

fn again(mode: Mode, delay_ms: u64) -> Next {
    Next::Again { mode, delay_ms }
}

#[test]
fn a_retry_after_is_seconds_or_a_date() {
    let date = Some("Sun, 06 Nov 1994 08:49:30 GMT");
    for answered in [date, None, Some("today")] {
        assert_eq!(retry_after_ms("7", answered), Some(7_000));
        assert_eq!(retry_after_ms(" 0.5 ", answered), Some(500));
        assert_eq!(retry_after_ms("-1", answered), Some(0));
        assert_eq!(retry_after_ms("1e300", answered), Some(u64::MAX));
        assert_eq!(retry_after_ms("NaN", answered), None);
        assert_eq!(retry_after_ms("soon", answered), None);
    }
    assert_eq!(
        retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", date),
        Some(7_000)
    );
    assert_eq!(
        retry_after_ms("Sun, 06 Nov 1994 08:49:00 GMT", date),
        Some(0)
    );
}

#[test]
fn a_pause_is_read_in_the_forms_in_which_servers_write_it() {
    for (text, ms) in [
        ("58.934310785s", Some(58_934)),
        (" 346ms", Some(346)),
        ("26 seconds.", Some(26_000)),
        ("6m0s", Some(360_000)),
        ("1h 2m", Some(3_720_000)),
        ("3 messages", None),
        ("7", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(pause_ms(text), ms, "{text}");
    }
    assert_eq!(given_ms(" 346.5 "), Some(346));
    assert_eq!(given_ms("-1"), Some(0));
    assert_eq!(given_ms("soon"), None);
}

#[test]
fn a_date_without_the_date_of_the_answer_asks_for_no_delay() {
    for answered in [None, Some(""), Some("today")] {
        assert_eq!(
            retry_after_ms("Fri, 06 Nov 2893 08:49:37 GMT", answered),
            None,
            "{answered:?}"
        );
    }
}

#[test]
fn only_a_refusal_says_that_nothing_was_used() {
    let used = |status| {
        AttemptError::new(
            Mode::Whole,
            Stage::of_status(status),
            unavailable(Reason::Broken),
        )
        .usage()
    };
    for status in [400, 401, 403, 404, 408, 409, 425, 429, 499, 503, 529] {
        assert_eq!(used(status), Some(Usage::default()), "{status}");
    }
    for status in [301, 303, 500, 501, 502, 504, 520, 524, 599] {
        assert_eq!(used(status), None, "{status}");
    }
}

#[test]
fn what_can_pass_is_tried_again_until_the_limit() {
    let step = |attempts| {
        let failure = AttemptError::new(Mode::Stream, Stage::Asked, unavailable(Reason::Broken));
        next(&limits(), &failure, attempts, 1.0)
    };
    assert_eq!(step(1), again(Mode::Stream, 100));
    assert_eq!(step(2), again(Mode::Stream, 200));
    assert_eq!(step(3), Next::GiveUp);
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    let refused = Failure::Refused {
        provider: String::new(),
        model: String::new(),
        status: 401,
        about: Refusal::Credentials,
        cause: None,
    };
    let refused = AttemptError::new(Mode::Stream, Stage::Answered, refused);
    assert_eq!(next(&limits(), &refused, 1, 1.0), Next::GiveUp);
}

#[test]
fn a_broken_stream_gets_one_call_without_a_stream_at_once() {
    let step = |mode, attempts| {
        let failure = AttemptError::new(mode, Stage::Begun, unavailable(Reason::Broken));
        next(&limits(), &failure, attempts, 1.0)
    };
    assert_eq!(step(Mode::Stream, 3), again(Mode::Whole, 0));
    // But not one that is overloaded.
    let overloaded = unavailable(Reason::Overloaded(0));
    let overloaded = AttemptError::new(Mode::Stream, Stage::Begun, overloaded);
    let step_overloaded = next(&limits(), &overloaded, 9, 1.0);
    assert_eq!(step_overloaded, again(Mode::Whole, 1_000));
    assert_eq!(step(Mode::Whole, 4), Next::GiveUp);
    assert_eq!(step(Mode::Whole, 2), again(Mode::Whole, 200));
}

/// The wait is never shorter than the provider asks for, and too long a one ends the attempts.
#[test]
fn the_wait_is_never_shorter_than_the_provider_asks_for() {
    let step = |retry_after_ms| next(&limits(), &limited(retry_after_ms), 1, 0.0);
    assert_eq!(step(None), again(Mode::Stream, 0));
    assert_eq!(step(Some(3_000)), again(Mode::Stream, 3_000));
    assert_eq!(step(Some(5_001)), Next::GiveUp);
}

//! Tries of an outbound message, and what becomes of them.

use super::*;

const NOW: Timestamp = Timestamp(10_000);

#[test]
fn each_pause_is_twice_the_one_before_up_to_an_hour() {
    let pause = |attempt| retry_at(attempt, None, NOW).map(|at| at.since_ms(NOW));
    for (attempt, ms) in [
        (0, Some(1_000)),
        (1, Some(1_000)),
        (12, Some(2_048_000)),
        (13, Some(3_600_000)),
        (ATTEMPTS_MAX - 1, Some(3_600_000)),
        (ATTEMPTS_MAX, None),
        (u32::MAX, None),
    ] {
        assert_eq!(pause(attempt), ms, "{attempt}");
    }
}

#[test]
fn no_attempt_is_made_before_the_service_wants_it() {
    let pause = |asked| retry_at(1, Some(asked), NOW).map(|at| at.since_ms(NOW));
    assert_eq!(pause(30_000), Some(30_000));
    assert_eq!(pause(10), Some(1_000));
    assert_eq!(pause(u64::MAX), Some(RETRY_AFTER_MS_MAX));
}

#[test]
fn what_may_have_been_sent_is_sent_again_only_under_an_idempotency_key() {
    let lost = ConnectorFailure::Unknown("the connection broke".to_owned());
    assert_eq!(judge(&lost, 1, false, NOW), Fate::Unknown);
    assert!(matches!(judge(&lost, 1, true, NOW), Fate::Retry(_)));
    assert_eq!(judge(&lost, ATTEMPTS_MAX, true, NOW), Fate::Unknown);
    assert_eq!(interrupted(false), Interrupted::Unknown);
    assert_eq!(interrupted(true), Interrupted::Again);
}

#[test]
fn what_can_never_be_done_is_given_up_at_once() {
    let gone = ConnectorFailure::Rejected("the chat is gone".to_owned());
    assert_eq!(judge(&gone, 1, true, NOW), Fate::Dead);
    let busy = ConnectorFailure::RetryLater {
        after_ms: 5_000,
        reason: "too many".to_owned(),
    };
    let at = NOW.plus_ms(5_000);
    assert_eq!(judge(&busy, 1, false, NOW), Fate::Retry(at));
    assert_eq!(judge(&busy, ATTEMPTS_MAX, false, NOW), Fate::Dead);
    let revoked = ConnectorFailure::Unauthorised("401".to_owned());
    let at = NOW.plus_ms(UNAUTHORISED_MS);
    assert_eq!(judge(&revoked, 1, false, NOW), Fate::Retry(at));
}

#[test]
fn a_reason_is_kept_up_to_a_length() {
    let reason = "ä".repeat(REASON_BYTES_MAX);
    let kept = kept_reason(&reason);
    assert!(kept.len() <= REASON_BYTES_MAX && reason.starts_with(&kept));
    assert_eq!(kept_reason("short"), "short");
}

//! Tests of the permits of guests, and of the queue for them.

use super::*;

#[tokio::test]
async fn who_finds_the_queue_full_is_refused_and_who_waits_too_long_too() {
    let guests = GuestSemaphore::new(1, 1, Duration::from_millis(20));
    let gate = Gate::default();
    let leased = guests.enter(&gate, 4).await.unwrap();
    let (first, second) = tokio::join!(guests.enter(&gate, 4), guests.enter(&gate, 4));
    assert!(first.is_err() && second.is_err());
    assert_eq!((guests.free(), guests.waiting()), (0, 0));
    drop(leased);
    assert!(guests.enter(&gate, 4).await.is_ok());
    assert_eq!(guests.free(), 1);
}

/// Components that keep computing until they are stopped share one lane, and others do not.
#[tokio::test]
async fn components_that_are_stopped_again_and_again_share_one_lane() {
    let guests = GuestSemaphore::new(8, 8, Duration::from_millis(20));
    let one = Gate::default();
    let other = Gate::default();
    let honest = Gate::default();
    let now = Instant::now();
    for gate in [&one, &other] {
        (0..OFFENCES_MAX).for_each(|_| gate.record_offence(now));
    }
    honest.record_offence(now);
    let leased = guests.enter(&one, 4).await.unwrap();
    assert!(guests.enter(&other, 4).await.is_err() && guests.enter(&one, 4).await.is_err());
    assert!(guests.enter(&honest, 4).await.is_ok());
    drop(leased);
    assert!(guests.enter(&other, 4).await.is_ok());
}

#[test]
fn an_offence_is_forgotten_after_a_minute_without_another() {
    let gate = Gate::default();
    let begin = Instant::now();
    (0..OFFENCES_MAX).for_each(|_| gate.record_offence(begin));
    assert!(
        gate.is_confined(begin + OFFENCE_LASTS / 2) && !gate.is_confined(begin + OFFENCE_LASTS)
    );
    gate.record_offence(begin + OFFENCE_LASTS);
    assert!(!gate.is_confined(begin + OFFENCE_LASTS));
}

#[test]
fn no_minute_has_more_calls_than_the_limit_wherever_it_begins() {
    // The calls that are made at a second, and how many of them are let in.
    for (max, calls) in [
        (
            3,
            &[(5, 0, 3), (5, 59, 0), (5, 60, 3), (5, 119, 0), (5, 500, 3)][..],
        ),
        (4, &[(5, 0, 4), (5, 58, 0)]),
        (
            4,
            &[(1, 0, 1), (5, 59, 3), (5, 61, 1), (5, 118, 0), (5, 119, 3)],
        ),
    ] {
        let gate = Gate::default();
        let begin = Instant::now();
        for &(calls, after_s, expected) in calls {
            let at = begin + Duration::from_secs(after_s);
            let admitted = (0..calls).filter(|_| gate.count(max, at).is_ok()).count();
            assert_eq!(admitted, expected, "{max}: {calls} after {after_s} s");
        }
    }
}

#[test]
fn who_is_called_too_often_is_told_when_there_is_room_again() {
    let gate = Gate::default();
    let begin = Instant::now();
    for after_s in [0, 10, 20] {
        gate.count(3, begin + Duration::from_secs(after_s)).unwrap();
    }
    let waits = |max| match gate.count(max, begin + Duration::from_secs(30)) {
        Err(AdmissionRefusal::TooOften { wait }) => wait.as_secs(),
        other => panic!("{other:?}"),
    };
    assert_eq!((waits(3), waits(2), waits(1)), (30, 40, 50));
}

#[tokio::test]
async fn a_lower_limit_counts_the_calls_that_run_under_a_higher_one() {
    let guests = GuestSemaphore::new(8, 8, Duration::from_millis(20));
    let gate = Gate::default();
    let leased = [
        guests.enter(&gate, 4).await.unwrap(),
        guests.enter(&gate, 4).await.unwrap(),
    ];
    assert!(guests.enter(&gate, 2).await.is_err() && guests.enter(&gate, 1).await.is_err());
    assert!(guests.enter(&gate, 4).await.is_ok());
    drop(leased);
    assert!(guests.enter(&gate, 1).await.is_ok());
}

#[tokio::test]
async fn a_component_waits_for_itself_without_holding_permits_of_others() {
    let guests = GuestSemaphore::new(4, 4, Duration::from_millis(20));
    let gate = Gate::default();
    let leased = guests.enter(&gate, 1).await.unwrap();
    assert!(guests.enter(&gate, 1).await.is_err());
    assert_eq!(guests.free(), 3);
    drop(leased);
    assert!(guests.enter(&gate, 1).await.is_ok());
}

//! Tests of the choice of a thread for a message without one.

use super::*;
use proptest::prelude::*;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn session(n: u8) -> SessionId {
    SessionId(Uuid::from_u128(u128::from(n)))
}

fn found(n: u8, rank: f64, days_ago: u64) -> FoundMessage {
    FoundMessage {
        session: session(n),
        rank,
        time: Timestamp(NOW.0 - days_ago * 86_400_000),
    }
}

fn picked(found: &[FoundMessage]) -> Vec<u8> {
    let number = |candidate: &Candidate| u8::try_from(candidate.session.0.as_u128()).unwrap();
    match pick(found, NOW) {
        Pick::None => Vec::new(),
        Pick::One { best, .. } => vec![number(&best)],
        Pick::Several(several) => several.iter().map(number).collect(),
    }
}

#[test]
fn the_thread_that_speaks_of_it_is_picked_and_two_that_are_close_are_asked_about() {
    assert_eq!(picked(&[]), [0_u8; 0]);
    assert_eq!(picked(&[found(1, 2.0, 0)]), [1]);
    assert_eq!(picked(&[found(1, 2.0, 0), found(2, 1.0, 0)]), [1]);
    assert_eq!(
        picked(&[found(1, 2.0, 0), found(2, 1.9, 0), found(3, 0.1, 0)]),
        [1, 2]
    );
}

#[test]
fn what_was_said_lately_weighs_more_and_what_is_old_is_not_forgotten() {
    assert_eq!(picked(&[found(1, 2.0, 365), found(2, 2.0, 0)]), [2]);
    assert_eq!(picked(&[found(1, 9.0, 365), found(2, 2.0, 0)]), [1]);
}

#[test]
fn several_messages_support_their_thread() {
    let several = [
        found(1, 2.0, 0),
        found(1, 2.0, 0),
        found(1, 2.0, 0),
        found(2, 2.1, 0),
    ];
    assert_eq!(picked(&several), [1]);
}

#[test]
fn at_most_so_many_threads_are_asked_about() {
    let many: Vec<FoundMessage> = (1..20).map(|n| found(n, 1.0, 0)).collect();
    assert_eq!(picked(&many), [1, 2, 3, 4, 5]);
}

#[test]
fn the_choice_is_explained() {
    let Pick::One { best, next } =
        pick(&[found(1, 2.0, 0), found(1, 1.0, 1), found(2, 1.0, 0)], NOW)
    else {
        panic!("one")
    };
    let reported = explain(&best, next.as_ref());
    assert!(
        reported.starts_with("2 messages speak of it, the last at 2023-11-14T"),
        "{reported}"
    );
    assert!(
        reported.ends_with("; the next best thread has 45 % of its score"),
        "{reported}"
    );
    assert!(explain(&best, None).ends_with("; no other thread does"));
}

proptest! {
    #[test]
    fn whatever_was_found_the_best_has_the_score_1_and_none_is_picked_twice(
        messages in proptest::collection::vec((0_u8..6, -1.0_f64..50.0, 0_u64..1_000), 0..40),
    ) {
        let messages: Vec<FoundMessage> = messages.into_iter().map(|(n, rank, days)| found(n, rank, days)).collect();
        let candidates = rank(&messages, NOW);
        prop_assert!(candidates.first().is_none_or(|best| (best.score - 1.0).abs() < 1e-9));
        prop_assert!(candidates.is_sorted_by(|a, b| a.score >= b.score));
        let mut sessions: Vec<SessionId> = candidates.iter().map(|candidate| candidate.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        prop_assert_eq!(sessions.len(), candidates.len());
        prop_assert_eq!(pick(&messages, NOW), pick(&messages, NOW));
    }
}

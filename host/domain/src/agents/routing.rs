//! Routing of a message whose sender names no thread. It goes to the thread on the same subject,
//! according to a search's matches and their age.
//!
//! Routing uses no model. Every message that full-text search finds has a rank. The rank grows with
//! the number of matching terms and with their rarity. A thread has the rank of its best message,
//! plus a part of the ranks of the next few. Recent messages weigh more. When two threads are
//! close, the sender is asked to choose.

use crate::values::id::SessionId;
use crate::values::time::Timestamp;
use std::collections::HashMap;

/// Messages of one thread that count in addition to its best.
const SUPPORTING_MAX: usize = 3;
/// The fraction of its rank that each of them adds.
const SUPPORT: f64 = 0.25;
/// Days after which half of the bonus for recency is left.
const HALF_LIFE_DAYS: f64 = 14.0;
/// The fraction of a rank that is independent of recency.
const LASTING: f64 = 0.5;
/// Fraction of the best thread's score from which another thread is close.
const CLOSE: f64 = 0.8;
/// The most threads between which the sender is asked to choose.
pub const ASKED_MAX: usize = 5;
const DAY_MS: f64 = 86_400_000.0;

/// A message that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundMessage {
    /// The session of the thread.
    pub session: SessionId,
    /// Its rank; more is better.
    pub rank: f64,
    /// Time at which it was written.
    pub time: Timestamp,
}

/// A thread on the subject of the message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The session.
    pub session: SessionId,
    /// Its score; more is better, and 1 is the best match.
    pub score: f64,
    /// The number of its messages that were found.
    pub found: usize,
    /// Time at which the latest of them was written.
    pub last: Timestamp,
}

/// The thread that receives a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Pick {
    /// No thread matches.
    None,
    /// This thread; the next best, if any, is not close.
    One {
        /// The best.
        best: Candidate,
        /// The next best.
        next: Option<Candidate>,
    },
    /// These threads, the best first; none is clearly meant.
    Several(Vec<Candidate>),
}

/// Picks a thread.
#[must_use]
pub fn pick(found: &[FoundMessage], now: Timestamp) -> Pick {
    let candidates = rank(found, now);
    match candidates.split_first() {
        None => Pick::None,
        Some((best, rest)) => {
            let close = rest
                .iter()
                .take_while(|candidate| candidate.score >= CLOSE)
                .count();
            if close == 0 {
                Pick::One {
                    best: *best,
                    next: rest.first().copied(),
                }
            } else {
                Pick::Several(
                    candidates
                        .iter()
                        .take((close + 1).min(ASKED_MAX))
                        .copied()
                        .collect(),
                )
            }
        }
    }
}

/// The threads, the best first. Of two equal threads the one with the smaller id is first, so that
/// the same search always has the same result.
fn rank(found: &[FoundMessage], now: Timestamp) -> Vec<Candidate> {
    let mut by_session: HashMap<SessionId, Vec<&FoundMessage>> = HashMap::new();
    for message in found
        .iter()
        .filter(|message| message.rank.is_finite() && message.rank > 0.0)
    {
        by_session.entry(message.session).or_default().push(message);
    }
    let mut candidates: Vec<Candidate> = by_session
        .into_iter()
        .map(|(session, messages)| {
            let mut weights: Vec<f64> = messages
                .iter()
                .map(|message| message.rank * recency(message.time, now))
                .collect();
            weights.sort_by(|a, b| b.total_cmp(a));
            let best = weights.first().copied().unwrap_or_default();
            let support: f64 = weights.iter().skip(1).take(SUPPORTING_MAX).sum();
            let last = messages
                .iter()
                .map(|message| message.time)
                .fold(Timestamp(0), Timestamp::max);
            Candidate {
                session,
                score: best + SUPPORT * support,
                found: messages.len(),
                last,
            }
        })
        .collect();
    candidates.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.session.cmp(&b.session))
    });
    let most = candidates.first().map_or(1.0, |best| best.score);
    for candidate in &mut candidates {
        candidate.score /= most;
    }
    candidates
}

/// Returns the factor for a message's rank, by its age.
fn recency(time: Timestamp, now: Timestamp) -> f64 {
    // Precision is irrelevant for ages of millions of years.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an age in milliseconds is far below what a float tells apart"
    )]
    let days = now.since_ms(time) as f64 / DAY_MS;
    LASTING + (1.0 - LASTING) * (-days / HALF_LIFE_DAYS).exp2()
}

/// Returns the reason why a thread was chosen, as text for people.
#[must_use]
pub fn explain(best: &Candidate, next: Option<&Candidate>) -> String {
    let times = if best.found == 1 {
        "message speaks".to_owned()
    } else {
        "messages speak".to_owned()
    };
    let mut reported = format!("{} {times} of it, the last at {}", best.found, best.last);
    match next {
        None => reported.push_str("; no other thread does"),
        Some(next) => {
            // Between 0 and 100.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a score is between 0 and 1"
            )]
            let percent = (next.score * 100.0).round() as u32;
            reported.push_str(&format!(
                "; the next best thread has {percent} % of its score"
            ));
        }
    }
    reported
}

#[cfg(test)]
mod tests {
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
}

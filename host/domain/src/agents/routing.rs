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
mod tests;

//! Durable timers: one task that wakes sessions with something due.
//!
//! The times are set by events and stored; this only reads the clock. A timer fires late after a
//! long stop, and never early.

use crate::core::Core;
use crate::panics::{caught, end_process};
use domain::backoff::Backoff;
use domain::id::SessionId;
use domain::time::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::DueSession;
use tokio::time::Instant;

/// The longest sleep, in milliseconds. A clock that was set is noticed after it.
const SLEEP_MS_MAX: u64 = 10_000;
/// The shortest sleep after sessions were woken, in milliseconds.
const ROUND_MS: u64 = 20;
/// Pauses before a session that stays due is woken again: a reminder may wait for a turn to end.
const AGAIN: Backoff = Backoff {
    first_ms: 20,
    most_ms: 2_000,
};
/// The pause after the store could not be read or a round panicked, in milliseconds.
const TROUBLE_MS: u64 = 1_000;
/// Number of panics in a row after which the process ends: a host without timers only seems to
/// work.
const PANICS_MAX: u32 = 3;

/// Runs until the broker stops. After a panic it restarts: all its data are in the store.
pub(crate) async fn watch(core: Arc<Core>) {
    let panics = AtomicU32::new(0);
    while let Err(panic) = caught(rounds(&core, &panics)).await {
        let count = panics.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= PANICS_MAX {
            end_process("the watch over timers", &panic);
        }
        tracing::error!(
            panic,
            count,
            "the watch over timers panicked; it begins anew"
        );
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(TROUBLE_MS)) => {}
        }
    }
}

/// Runs one round after the other. A round that completes resets `panics`, the count in a row.
async fn rounds(core: &Arc<Core>, panics: &AtomicU32) {
    let mut woken = Woken::default();
    loop {
        core.keep_keys();
        core.clock.carry().await;
        let work_outcome = round(core, &mut woken, core.now()).await;
        panics.store(0, Ordering::Relaxed);
        let pause = work_outcome.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "timers could not be read"
            );
            Duration::from_millis(TROUBLE_MS)
        });
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = core.timers.notified() => {}
        }
    }
}

/// Wakes the sessions that are due, and returns the time to sleep afterwards. Waits for no session.
async fn round(
    core: &Arc<Core>,
    woken: &mut Woken,
    now: Timestamp,
) -> Result<Duration, store::ReadError> {
    // Sessions that stay due are the longest overdue, and would be read in place of others.
    let due_max = core.limits().due_sessions_max + woken.0.len() + core.quarantine.count();
    let mut due = core.store.due_wakes(now, due_max).await?;
    due.retain(|due| !core.quarantine.has(due.session));
    let (wake, mut again) = woken.take_due(&due, Instant::now());
    if !wake.is_empty() {
        store::point("broker.timer.due");
        let later: Vec<SessionId> = wake
            .into_iter()
            .filter(|session| !core.try_wake(*session))
            .collect();
        if !later.is_empty() {
            // Too many drivers are being started. These sessions are woken in the next round, the
            // longest due first.
            later.iter().for_each(|session| woken.put_back(session));
            again = Some(Duration::ZERO);
        }
        store::point("broker.timer.fired");
    }
    let next = core.store.next_wake_after(now).await?;
    let next_ms = next.map_or(SLEEP_MS_MAX, |time| {
        time.since_ms(now).clamp(1, SLEEP_MS_MAX)
    });
    let next = Duration::from_millis(next_ms);
    Ok(again.map_or(next, |again| {
        next.min(again.max(Duration::from_millis(ROUND_MS)))
    }))
}

/// The sessions that were woken and are due still.
#[derive(Debug, Default)]
struct Woken(HashMap<SessionId, Again>);

/// The time of the next wake of a session that stays due.
#[derive(Debug)]
struct Again {
    /// The newest time that was due when it was woken last.
    newest: Timestamp,
    at: Instant,
    /// The number of times that it was woken.
    times: u32,
}

impl Woken {
    /// Returns the due sessions to wake now, and the time until the first of the others is woken
    /// again.
    ///
    /// The time is none if no session is due. A session is woken at once if more of it is due than
    /// when it was woken last.
    fn take_due(&mut self, due: &[DueSession], now: Instant) -> (Vec<SessionId>, Option<Duration>) {
        let mut before = std::mem::take(&mut self.0);
        let mut wake = Vec::new();
        for DueSession { session, newest } in due {
            let again = match before
                .remove(session)
                .filter(|again| again.newest >= *newest)
            {
                Some(again) if again.at > now => again,
                former => {
                    wake.push(*session);
                    let times = former.map_or(1, |again| again.times.saturating_add(1));
                    Again {
                        newest: *newest,
                        at: now + Duration::from_millis(AGAIN.pause_ms(times)),
                        times,
                    }
                }
            };
            self.0.insert(*session, again);
        }
        let first = self
            .0
            .values()
            .map(|again| again.at.saturating_duration_since(now))
            .min();
        (wake, first)
    }

    /// Forgets that a session was woken, because it was not after all.
    fn put_back(&mut self, session: &SessionId) {
        self.0.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(session: u128, newest: u64) -> DueSession {
        DueSession {
            session: SessionId(uuid::Uuid::from_u128(session)),
            newest: Timestamp(newest),
        }
    }

    #[tokio::test]
    async fn a_session_that_stays_due_is_woken_ever_more_rarely_and_others_at_once() {
        let mut woken = Woken::default();
        let begin = Instant::now();
        let mut times = 0;
        let mut others = 0;
        for ms in (0..60_000).step_by(20) {
            // The second session is due after half a minute, and no longer once it was woken.
            let second = (ms == 30_000).then(|| due(2, 30_000));
            let now: Vec<DueSession> = std::iter::once(due(1, 0)).chain(second).collect();
            let (wake, again) = woken.take_due(&now, begin + Duration::from_millis(ms));
            assert!(again.is_some_and(|again| again <= Duration::from_millis(AGAIN.most_ms)));
            times += wake
                .iter()
                .filter(|session| **session == now[0].session)
                .count();
            others += wake
                .iter()
                .filter(|session| **session != now[0].session)
                .count();
        }
        // 20 ms, twice that, and so on up to 2 s: not three thousand times.
        assert_eq!((times, others), (36, 1));
        assert_eq!(woken.0.len(), 1, "who is not due any more is forgotten");
    }

    #[tokio::test]
    async fn what_comes_due_of_a_session_that_was_woken_before_wakes_it_at_once() {
        let mut woken = Woken::default();
        let now = Instant::now();
        let mut wakes = |newest: u64| woken.take_due(&[due(1, newest)], now).0.len();
        assert_eq!(
            [wakes(5), wakes(5), wakes(6), wakes(6), wakes(4)],
            [1, 0, 1, 0, 0]
        );
        assert_eq!(woken.take_due(&[], now), (Vec::new(), None));
        assert_eq!(woken.take_due(&[due(1, 4)], now).0.len(), 1);
    }
}

//! The order in which trigger events are processed: a few at a time, and of each trigger the oldest
//! first, one after the other.
//!
//! The work is read from the store, page by page. So however many trigger events are accepted at
//! once, the work on them is bounded. A start after a crash continues in the same way.

use super::{Shared, failing, trigger_run};
use crate::core::panic_text;
use domain::id::{TriggerEventId, TriggerId};
use futures::FutureExt;
use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::{ReadError, TriggerEventRow};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Trigger events that are processed at a time, to leave enough of the machine to the rest of the
/// host.
const TRIGGER_RUNS_MAX: usize = 4;
/// Trigger events that are read at a time, in addition to those that cannot be processed now.
const PAGE: usize = 16;
/// The longest sleep, in milliseconds. A clock that was set is noticed after it.
const SLEEP_MS_MAX: u64 = 1_000;
/// Milliseconds until trigger events are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;
/// Milliseconds until a trigger event is processed again after the store did not accept its
/// outcome.
const AGAIN_MS: u64 = 1_000;

/// The next step with a trigger after work on one of its trigger events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Its next trigger event.
    GoOn,
    /// The same trigger event, after so many milliseconds.
    Again {
        /// The time to wait.
        ms: u64,
    },
}

/// The trigger events in progress, and those that cannot be processed now.
#[derive(Default)]
struct Desk {
    /// The trigger events that were read and not begun.
    ready: VecDeque<TriggerEventRow>,
    /// The triggers with a trigger event in progress.
    at_work: HashSet<TriggerId>,
    /// The waiting triggers, with the end of each wait. Nothing depends on it: after a start none
    /// waits.
    blocked: HashMap<TriggerId, Instant>,
}

impl Desk {
    /// Returns whether an event of a trigger can be processed now.
    fn takes(&self, trigger: TriggerId) -> bool {
        !self.at_work.contains(&trigger) && !self.blocked.contains_key(&trigger)
    }

    /// Notes that work on an event of a trigger has ended.
    fn done(&mut self, trigger: TriggerId, next: Next) {
        self.at_work.remove(&trigger);
        if let Next::Again { ms } = next {
            let until = Instant::now() + Duration::from_millis(ms);
            self.blocked.insert(trigger, until);
        }
    }

    /// Lets go of the triggers that have waited long enough. Returns the time until the next has.
    fn let_go(&mut self, now: Instant) -> Option<Duration> {
        self.blocked.retain(|_, until| *until > now);
        let first = self.blocked.values().min()?;
        Some(first.saturating_duration_since(now))
    }

    /// Reads trigger events that can be processed, unless some are already waiting.
    async fn fill(&mut self, shared: &Shared) -> Result<(), ReadError> {
        if self.ready.is_empty() {
            let not_now = self.at_work.len() + self.blocked.len();
            let now = shared.core.now();
            let found = shared.core.store().open_trigger_events(now, PAGE + not_now);
            let found = found.await?;
            self.ready = found
                .into_iter()
                .filter(|trigger_event| self.takes(trigger_event.trigger.id()))
                .collect();
        }
        Ok(())
    }
}

/// Deals with trigger events until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut desk = Desk::default();
    let mut working: JoinSet<(TriggerId, Next)> = JoinSet::new();
    loop {
        let blocked = desk.let_go(Instant::now());
        let mut sleep_ms = SLEEP_MS_MAX;
        if working.len() < TRIGGER_RUNS_MAX {
            match begin(&shared, &mut desk, &mut working).await {
                Ok(next_ms) => sleep_ms = next_ms,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "events of triggers cannot be read"
                    );
                    sleep_ms = TROUBLE_MS;
                }
            }
        }
        let sleep = Duration::from_millis(sleep_ms);
        let sleep = blocked.map_or(sleep, |blocked| sleep.min(blocked));
        tokio::select! {
            Some(done) = working.join_next() => {
                match done {
                    Ok((trigger, next)) => desk.done(trigger, next),
                    // A commit records the outcome of a trigger event once, whichever task
                    // processes it again.
                    Err(_) => desk.at_work.clear(),
                }
            }
            () = shared.open.notified() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// Begins to process trigger events, up to the maximum at a time. Returns the milliseconds after
/// which there may be more to do.
async fn begin(
    shared: &Arc<Shared>,
    desk: &mut Desk,
    working: &mut JoinSet<(TriggerId, Next)>,
) -> Result<u64, ReadError> {
    while working.len() < TRIGGER_RUNS_MAX {
        desk.fill(shared).await?;
        let Some(trigger_event) = desk.ready.pop_front() else {
            let now = shared.core.now();
            let next = shared.core.store().next_trigger_event_after(now).await?;
            return Ok(next.map_or(SLEEP_MS_MAX, |time| {
                time.since_ms(now).clamp(1, SLEEP_MS_MAX)
            }));
        };
        let trigger = trigger_event.trigger.id();
        if !desk.takes(trigger) {
            continue;
        }
        desk.at_work.insert(trigger);
        let shared = shared.clone();
        working.spawn(store::in_background(async move {
            (trigger, deal_with(&shared, trigger_event).await)
        }));
    }
    Ok(SLEEP_MS_MAX)
}

/// Processes a trigger event. A panic counts as a failure.
pub(super) async fn deal_with(shared: &Shared, trigger_event: TriggerEventRow) -> Next {
    let id = trigger_event.trigger_event;
    let name = trigger_event.trigger.clone();
    let dealt = AssertUnwindSafe(trigger_run::deal_with(shared, &trigger_event)).catch_unwind();
    match dealt.await {
        Ok(Ok(next)) => next,
        Ok(Err(error)) => {
            tracing::warn!(
                trigger.name = %name,
                trigger_event.id = %id,
                error = &error as &dyn std::error::Error,
                "what became of a trigger event cannot be recorded now; it is dealt with again"
            );
            Next::Again { ms: AGAIN_MS }
        }
        Err(panic) => {
            let panic = panic_text(panic.as_ref());
            tracing::error!(trigger.name = %name, trigger_event.id = %id, panic, "a trigger event panicked");
            failed_by_panic(shared, &trigger_event, id).await
        }
    }
}

async fn failed_by_panic(
    shared: &Shared,
    trigger_event: &TriggerEventRow,
    id: TriggerEventId,
) -> Next {
    let failure = failing::Failure::of("the host failed over it; its log says more");
    match failing::failed(shared, trigger_event, failure).await {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!(
                trigger_event.id = %id,
                error = &error as &dyn std::error::Error,
                "a failed trigger event cannot be recorded"
            );
            Next::Again { ms: AGAIN_MS }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_trigger_waits_until_its_time_has_come_and_no_longer() {
        let mut desk = Desk::default();
        let begin = Instant::now();
        let trigger = TriggerId::of_name("a");
        desk.blocked
            .insert(trigger, begin + Duration::from_millis(50));
        assert!(!desk.takes(trigger));
        assert_eq!(desk.let_go(begin), Some(Duration::from_millis(50)));
        assert_eq!(desk.let_go(begin + Duration::from_millis(50)), None);
        assert!(desk.takes(trigger));
        desk.at_work.insert(trigger);
        assert!(!desk.takes(trigger));
    }
}

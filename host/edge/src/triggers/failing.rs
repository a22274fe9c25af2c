//! Failures of trigger events: the time of the next attempt, and the consequences for the trigger.

use super::{Shared, recording, trigger_run};
use crate::worker::Next;
use broker::Error;
use domain::connector::kept_reason;
use domain::event::{Event, PauseReason, TriggerEventFailed, TriggerTrouble};
use domain::time::Timestamp;
use domain::trigger::{Consequence, Failures, TriggerName, retry_at};
use store::{TriggerEventRow, TriggerEventState};

/// A failure of an attempt at a trigger event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    /// The reason.
    reason: String,
    again: Again,
    /// The entry of the ledger for the attempt, if there is one.
    ledger: Option<Box<Event>>,
}

/// The time at which a trigger event that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// After a pause that grows with each attempt.
    Later,
    /// After so many milliseconds, as the component asks.
    After { ms: u32 },
    /// Never: another attempt would fail in the same way.
    Never,
}

impl Failure {
    /// A failure after which the trigger event is tried again.
    pub(super) fn of(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            again: Again::Later,
            ledger: None,
        }
    }

    /// A failure after which the component asks for another attempt.
    pub(super) fn after(reason: impl Into<String>, ms: u32) -> Self {
        Self {
            reason: reason.into(),
            again: Again::After { ms },
            ledger: None,
        }
    }

    /// Returns a failure that every further attempt would repeat.
    pub(super) fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            again: Again::Never,
            ledger: None,
        }
    }

    /// The same, with an entry of the ledger.
    pub(super) fn with_ledger(self, ledger: Option<Event>) -> Self {
        let ledger = ledger.map(Box::new);
        Self { ledger, ..self }
    }

    fn retry_at(&self, attempt: u32, now: Timestamp) -> Option<Timestamp> {
        match self.again {
            Again::Later => retry_at(attempt, None, now),
            Again::After { ms } => retry_at(attempt, Some(ms), now),
            Again::Never => None,
        }
    }
}

/// Records that an attempt at a trigger event failed, with the consequences.
///
/// # Errors
/// The store cannot be read, or does not take it.
pub(super) async fn failed(
    shared: &Shared,
    trigger_event: &TriggerEventRow,
    failure: Failure,
) -> Result<Next, Error> {
    let core = &shared.core;
    let name = &trigger_event.trigger;
    // Trigger events of a removed trigger are processed. Nothing is left of a purged one.
    let Some(row) = core.store().trigger(name).await? else {
        return Ok(Next::GoOn);
    };
    let now = core.now();
    let attempt = trigger_event.attempts.saturating_add(1);
    let mut failures = row.failures;
    let consequences = failures.after_failure(now);
    let retry_at = failure.retry_at(attempt, now);
    tracing::warn!(
        trigger.name = %name,
        trigger_event.id = %trigger_event.trigger_event,
        attempt,
        reason = failure.reason,
        "an attempt at a trigger event failed"
    );
    let mut events = vec![Event::TriggerEventFailed(TriggerEventFailed {
        name: name.clone(),
        trigger_event: trigger_event.trigger_event,
        attempt,
        error: kept_reason(&failure.reason),
        retry_at,
        time: now,
    })];
    events.extend(following(name, &failures, &consequences, now));
    let is_disabled = consequences.contains(&Consequence::Disable);
    // The last trigger event of a schedule failed, and no other will follow.
    let is_over = retry_at.is_none() && !is_disabled && trigger_run::is_over(&row);
    events.extend(is_over.then(|| recording::paused(name, PauseReason::Done, now)));
    events.extend(failure.ledger.map(|ledger| *ledger));
    let state = TriggerEventState::Waiting;
    store::point("edge.fail.before");
    let stored = recording::settle(shared, trigger_event, state, events, now).await;
    store::point("edge.fail.after");
    stored?;
    Ok(Next::GoOn)
}

/// Returns the events of the consequences of a failure.
pub(super) fn following(
    name: &TriggerName,
    failures: &Failures,
    consequences: &[Consequence],
    now: Timestamp,
) -> Vec<Event> {
    let troubled = |trouble| recording::troubled(name, trouble, now);
    let failing = TriggerTrouble::Failing {
        failures: failures.in_a_row,
    };
    let events = consequences.iter().map(|consequence| match consequence {
        Consequence::Alert => troubled(failing.clone()),
        Consequence::Open { until } => troubled(TriggerTrouble::BreakerOpened { until: *until }),
        Consequence::Disable => {
            let failures = failures.in_a_row;
            recording::paused(name, PauseReason::Failures { failures }, now)
        }
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_failure_is_tried_again_unless_the_same_would_come_of_it() {
        let at = |failure: Failure, attempt| failure.retry_at(attempt, NOW);
        assert_eq!(at(Failure::of("a"), 1), Some(NOW.plus_ms(1_000)));
        assert_eq!(at(Failure::of("a"), 10), None);
        assert_eq!(at(Failure::after("a", 5_000), 1), Some(NOW.plus_ms(5_000)));
        assert_eq!(at(Failure::lasting("a"), 1), None);
    }

    #[test]
    fn ten_failures_in_a_row_tell_the_operator_rest_and_pause() {
        let name: TriggerName = "a".parse().unwrap();
        let mut failures = Failures::default();
        let mut reported = Vec::new();
        for _ in 0..10 {
            let consequences = failures.after_failure(NOW);
            reported.push(following(&name, &failures, &consequences, NOW));
        }
        let kinds: Vec<&str> = reported
            .iter()
            .flatten()
            .map(|event| match event {
                Event::TriggerTroubled(it) => match it.trouble {
                    TriggerTrouble::Failing { failures: 2 } => "failing",
                    TriggerTrouble::BreakerOpened { .. } => "open",
                    _ => "else",
                },
                Event::TriggerPaused(it) => match it.reason {
                    PauseReason::Failures { failures: 10 } => "paused",
                    _ => "else",
                },
                _ => "else",
            })
            .collect();
        let expected = ["failing", "open", "open", "open", "open", "open", "paused"];
        assert_eq!(kinds, expected);
    }
}

//! Triggers and their trigger events: what follows from their events, and what is read of it.

use super::outside::{
    at, called, defined, defined_as, due, failed, fired, fired_keeping, guarded, hourly,
    of_trigger, posted, source_of, spec, trigger, trigger_event,
};
use super::projections::everything;
use super::sample::{
    NOON, Sample, accepted, ada, begin, commit, expecting, input, run, run_started, session,
};
use crate::sql::Columns;
use crate::{
    Clash, CommitError, Expected, Guard, TriggerCounts, TriggerEventState, TriggerFilter,
    TriggerGuard, TriggerRecord, TriggerUsage,
};
use domain::event::{
    Event, PauseReason, SkipReason, TriggerEventsSkipped, TriggerPaused, TriggerRemoved,
    TriggerResumed, TriggerTrouble, TriggerTroubled,
};
use domain::id::Stream;
use domain::trigger::{TriggerName, TriggerState};
use serde_json::json;

fn paused(n: u32, reason: PauseReason) -> Event {
    Event::TriggerPaused(TriggerPaused {
        name: trigger(n),
        reason,
        time: at(1),
    })
}

fn by_ada() -> PauseReason {
    PauseReason::User { user: ada() }
}

fn removed(n: u32) -> Event {
    Event::TriggerRemoved(TriggerRemoved {
        name: trigger(n),
        by: Some(ada()),
        time: at(9),
    })
}

fn troubled(n: u32, trouble: TriggerTrouble) -> Event {
    Event::TriggerTroubled(TriggerTroubled {
        name: trigger(n),
        trouble,
        time: at(1),
    })
}

fn skipped(n: u32, count: u32) -> Event {
    Event::TriggerEventsSkipped(TriggerEventsSkipped {
        name: trigger(n),
        due: at(100),
        count,
        reason: SkipReason::Missed,
        next_due: Some(at(7_000)),
        time: at(6_500),
    })
}

async fn due_names(sample: &Sample, now_ms: u64) -> Vec<TriggerName> {
    let rows = sample.store.due_triggers(at(now_ms), 10).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

/// The trigger events that may be dealt with at a time, by their numbers.
async fn open_at(sample: &Sample, now_ms: u64) -> Vec<crate::TriggerEventRow> {
    sample
        .store
        .open_trigger_events(at(now_ms), 10, &[])
        .await
        .unwrap()
}

async fn is_rebuilt(sample: &Sample) {
    let before = everything(&sample.database());
    let rebuilt = sample.store.rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, Vec::new());
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}

#[tokio::test]
async fn triggers_are_counted_with_those_that_rest_and_their_open_trigger_events() {
    let sample = Sample::new();
    let failures = PauseReason::Failures { failures: 10 };
    for (n, events) in [
        (1, vec![defined(1, 100), paused(1, failures)]),
        (2, vec![defined(2, 100), paused(2, by_ada())]),
        (3, vec![defined(3, 100), called(3, 1, "a")]),
        (4, vec![defined(4, 100), removed(4)]),
    ] {
        sample.append(of_trigger(n), events).await;
    }
    assert_eq!(
        sample.store.trigger_counts().await.unwrap(),
        TriggerCounts {
            there: 3,
            given_up: 1,
            resting: 0,
            open_trigger_events: 1,
        }
    );
}

#[tokio::test]
async fn triggers_are_due_in_their_order_unless_they_rest() {
    let sample = Sample::new();
    for (n, due_ms) in [(1, 300), (2, 100), (3, 100), (4, 50), (5, 9_000)] {
        sample.append(of_trigger(n), vec![defined(n, due_ms)]).await;
    }
    sample
        .append(of_trigger(4), vec![paused(4, by_ada())])
        .await;
    let off = spec(&json!({ "schedule": { "every": "1h" }, "enabled": false }));
    sample
        .append(of_trigger(6), vec![defined_as(6, off, Some(10))])
        .await;
    assert_eq!(
        due_names(&sample, 300).await,
        [trigger(2), trigger(3), trigger(1)]
    );
    assert_eq!(
        sample.store.next_trigger_due().await.unwrap(),
        Some(at(100))
    );
    sample.append(of_trigger(2), vec![due(2, 1, 100)]).await;
    sample.append(of_trigger(3), vec![skipped(3, 2)]).await;
    sample.append(of_trigger(1), vec![removed(1)]).await;
    assert_eq!(due_names(&sample, 300).await, [] as [TriggerName; 0]);
    assert_eq!(
        sample.store.next_trigger_due().await.unwrap(),
        Some(at(7_000))
    );
    let resumed = Event::TriggerResumed(TriggerResumed {
        name: trigger(4),
        by: ada(),
        next_due: Some(at(60)),
        time: at(20),
    });
    sample.append(of_trigger(4), vec![resumed]).await;
    assert_eq!(due_names(&sample, 300).await, [trigger(4)]);
    let filter = TriggerFilter {
        user: Some(ada()),
        kind: Some("schedule".to_owned()),
    };
    let rows = sample.store.triggers(filter, None, 10).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6].map(trigger)
    );
    assert_eq!(sample.store.triggers_of_user(&ada()).await.unwrap(), 5);
    assert_eq!(sample.store.trigger_count().await.unwrap(), 5);
    let gone = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!(gone.removed, Some(at(9)));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_definition_that_changes_nothing_keeps_the_pause_and_the_failures() {
    let sample = Sample::new();
    let failing = vec![
        defined(1, 100),
        due(1, 1, 100),
        failed(1, 1, None),
        paused(1, PauseReason::Failures { failures: 1 }),
        defined(1, 200),
    ];
    sample.append(of_trigger(1), failing).await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!((row.failures.in_a_row, row.next_due), (1, Some(at(200))));
    assert_eq!(row.paused, Some(PauseReason::Failures { failures: 1 }));
    let other = spec(&json!({ "schedule": { "every": "2h" } }));
    sample
        .append(of_trigger(1), vec![defined_as(1, other, Some(300))])
        .await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!((row.failures.in_a_row, row.paused), (0, None));
    sample
        .append(
            of_trigger(1),
            vec![paused(1, by_ada()), defined_as(1, hourly(), None)],
        )
        .await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!((row.paused, row.next_due), (Some(by_ada()), None));
    assert_eq!(row.version, 8);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_trigger_event_goes_from_acceptance_to_its_messages() {
    let sample = Sample::new();
    sample
        .append(of_trigger(1), vec![defined(1, 100), due(1, 1, 100)])
        .await;
    let waiting = sample
        .store
        .trigger_event(trigger_event(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(waiting.state, TriggerEventState::Waiting);
    assert!(waiting.scheduled && waiting.fired.is_none());
    sample
        .append(of_trigger(1), vec![failed(1, 1, Some(500))])
        .await;
    assert_eq!(open_at(&sample, 499).await, []);
    assert_eq!(
        sample
            .store
            .next_trigger_event_after(at(100))
            .await
            .unwrap(),
        Some(at(500))
    );
    let failing = open_at(&sample, 500).await.remove(0);
    assert_eq!(
        (failing.attempts, failing.last_error.as_deref()),
        (1, Some("it trapped"))
    );
    sample
        .append(
            of_trigger(1),
            vec![fired_keeping(1, 1, "good morning", b"state")],
        )
        .await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!(
        row.state,
        Some(TriggerState {
            format: 1,
            bytes: b"state".to_vec()
        })
    );
    assert_eq!((row.pending, row.last_fired), (1, Some(at(2))));
    assert_eq!(row.failures.in_a_row, 0);
    let row = open_at(&sample, 500).await.remove(0);
    assert_eq!(row.state, TriggerEventState::Fired);
    assert_eq!(row.fired.unwrap().messages[0].text, "good morning");
    sample.append(of_trigger(1), vec![posted(1, 1, &[1])]).await;
    assert_eq!(open_at(&sample, 500).await, []);
    let done = sample
        .store
        .trigger_event(trigger_event(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(done.state, TriggerEventState::Done);
    assert_eq!(done.posted.unwrap().len(), 1);
    assert_eq!(
        sample
            .store
            .pending_trigger_events(&trigger(1))
            .await
            .unwrap(),
        0
    );
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn trigger_events_of_one_trigger_are_dealt_with_one_after_the_other() {
    let sample = Sample::new();
    for n in [1, 2] {
        sample.append(of_trigger(n), vec![defined(n, 100)]).await;
    }
    let calls = [1, 2, 3].map(|of| called(1, of, "call"));
    sample.append(of_trigger(1), calls.to_vec()).await;
    sample
        .append(of_trigger(2), vec![called(2, 9, "call")])
        .await;
    let open = |rows: Vec<crate::TriggerEventRow>| -> Vec<_> {
        rows.into_iter().map(|row| row.trigger_event).collect()
    };
    assert_eq!(
        open(open_at(&sample, 5).await),
        [trigger_event(1), trigger_event(9)]
    );
    // The first waits, and the others behind it.
    sample
        .append(of_trigger(1), vec![failed(1, 1, Some(50))])
        .await;
    assert_eq!(open(open_at(&sample, 5).await), [trigger_event(9)]);
    // One without messages is done at once.
    sample
        .append(of_trigger(1), vec![fired(1, 1, &[]), failed(1, 2, None)])
        .await;
    sample
        .append(of_trigger(2), vec![fired(2, 9, &["x"])])
        .await;
    sample
        .append(of_trigger(2), vec![paused(2, by_ada())])
        .await;
    assert_eq!(
        open(open_at(&sample, 5).await),
        [trigger_event(3), trigger_event(9)]
    );
    sample
        .append(of_trigger(1), vec![paused(1, by_ada())])
        .await;
    assert_eq!(open(open_at(&sample, 5).await), [trigger_event(9)]);
    sample.append(of_trigger(1), vec![removed(1)]).await;
    let history = sample
        .store
        .trigger_events_of(&trigger(1), None, 10)
        .await
        .unwrap();
    let states: Vec<_> = history
        .iter()
        .map(|record| match record {
            TriggerRecord::TriggerEvent(row) => row.state.as_str(),
            TriggerRecord::Skipped { .. } => "skipped",
        })
        .collect();
    assert_eq!(states, ["given_up", "given_up", "done"]);
    let of_all = sample
        .store
        .open_trigger_events_of(&trigger(2), 10)
        .await
        .unwrap();
    assert_eq!(open(of_all), [trigger_event(9)]);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_breaker_holds_up_a_trigger_until_its_time() {
    let sample = Sample::new();
    sample
        .append(
            of_trigger(1),
            vec![
                defined(1, 100),
                called(1, 1, "call"),
                failed(1, 1, Some(3)),
                troubled(1, TriggerTrouble::BreakerOpened { until: at(400) }),
            ],
        )
        .await;
    assert_eq!(open_at(&sample, 399).await, []);
    assert_eq!(
        sample.store.next_trigger_event_after(at(10)).await.unwrap(),
        Some(at(400))
    );
    assert_eq!(open_at(&sample, 400).await.len(), 1);
    sample
        .append(
            of_trigger(1),
            vec![
                troubled(1, TriggerTrouble::Failing { failures: 7 }),
                troubled(
                    1,
                    TriggerTrouble::Stuck {
                        trigger_event: trigger_event(1),
                    },
                ),
            ],
        )
        .await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!(
        (row.failures.in_a_row, row.failures.open_until),
        (7, Some(at(400)))
    );
    assert!(open_at(&sample, 400).await[0].stuck);
    sample
        .append(of_trigger(1), vec![troubled(1, TriggerTrouble::Recovered)])
        .await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!((row.failures.in_a_row, row.failures.open_until), (0, None));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn the_history_of_a_trigger_is_read_page_by_page_also_when_it_is_gone() {
    let sample = Sample::new();
    let mut events = vec![defined(1, 100)];
    events.extend((1..=3).map(|of| called(1, of, "call")));
    events.extend([skipped(1, 4), skipped(1, 0), removed(1)]);
    sample.append(of_trigger(1), events).await;
    let mut before = None;
    let mut all = Vec::new();
    loop {
        let page = sample
            .store
            .trigger_events_of(&trigger(1), before, 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.position());
        all.extend(page);
    }
    assert_eq!(all.len(), 4);
    assert!(
        matches!(&all[0], TriggerRecord::Skipped { skipped, .. } if skipped.count == 4),
        "{all:?}"
    );
    // It begins anew, and has no state of before.
    sample.append(of_trigger(1), vec![defined(1, 100)]).await;
    let row = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!((row.removed, row.state), (None, None));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn what_a_trigger_uses_is_counted_by_the_runs_of_its_messages() {
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(
            of_trigger(1),
            vec![
                defined(1, 100),
                called(1, 1, "call"),
                fired(1, 1, &["one"]),
                posted(1, 1, &[1]),
            ],
        )
        .await;
    sample
        .append(
            Stream::Session(session(1)),
            vec![accepted(1, 1, source_of(1, 1), "one")],
        )
        .await;
    let turn = sample
        .store
        .latest_trigger_turn(&trigger(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((turn.input, turn.run, turn.is_open), (input(1), None, true));
    assert_eq!(
        sample.store.trigger_usage(&trigger(1), NOON).await.unwrap(),
        TriggerUsage {
            trigger_runs: 1,
            runs: 0,
            tokens: 0
        }
    );
    sample
        .append(
            Stream::Run(run(1)),
            vec![run_started(run(1), 1, None, vec![input(1)])],
        )
        .await;
    let usage = sample.store.trigger_usage(&trigger(1), NOON).await.unwrap();
    assert_eq!(usage.runs, 1);
    let turns = sample
        .store
        .open_trigger_turns(at(1_000), 10)
        .await
        .unwrap();
    assert_eq!(turns.len(), 1);
    assert_eq!((turns[0].run, turns[0].is_reported), (Some(run(1)), false));
    let stuck = TriggerTrouble::Stuck {
        trigger_event: turns[0].trigger_event,
    };
    sample.append(of_trigger(1), vec![troubled(1, stuck)]).await;
    let turns = sample.store.open_trigger_turns(at(1_000), 10).await;
    assert_eq!(turns.unwrap(), [], "it is reported once");
    let later = sample.store.trigger_usage(&trigger(1), at(9_000)).await;
    assert_eq!(later.unwrap(), TriggerUsage::default());
    is_rebuilt(&sample).await;
}

/// Whether a commit with a guard lands.
async fn holds(sample: &Sample, guard: TriggerGuard) -> bool {
    let guard = Guard::from(guard);
    let noted = guarded(guard.clone(), Stream::Host, super::sample::noise(1));
    match sample.store.commit(noted).await {
        Ok(_) => true,
        Err(CommitError::Conflict(conflict)) => {
            assert_eq!(conflict.clash, Clash::Guard(guard));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn guards_on_triggers_hold_as_long_as_what_they_say_is_so() {
    let sample = Sample::new();
    sample
        .append(
            of_trigger(1),
            vec![defined(1, 100), called(1, 1, "call"), called(1, 2, "call")],
        )
        .await;
    let next_due = |due_ms: Option<u64>| TriggerGuard::NextDue {
        trigger: trigger(1),
        due: due_ms.map(at),
    };
    let is = |state| TriggerGuard::TriggerEventIs {
        trigger: trigger(1),
        trigger_event: trigger_event(1),
        state,
    };
    let waiting = is(TriggerEventState::Waiting);
    let is_fired = is(TriggerEventState::Fired);
    let pending = |max| TriggerGuard::PendingAtMost {
        trigger: trigger(1),
        max,
    };
    let of_user = |max| TriggerGuard::OfUserAtMost { user: ada(), max };
    for (guard, expected) in [
        (next_due(Some(100)), true),
        (next_due(Some(101)), false),
        (next_due(None), false),
        (waiting.clone(), true),
        (is_fired.clone(), false),
        (pending(2), true),
        (pending(1), false),
        (of_user(1), true),
        (of_user(0), false),
        (TriggerGuard::AtMost { max: 1 }, true),
        (TriggerGuard::AtMost { max: 0 }, false),
    ] {
        assert_eq!(holds(&sample, guard.clone()).await, expected, "{guard:?}");
    }
    sample
        .append(of_trigger(1), vec![fired(1, 1, &["x"])])
        .await;
    assert!(!holds(&sample, waiting).await);
    assert!(holds(&sample, is_fired).await);
    sample
        .append(of_trigger(1), vec![paused(1, by_ada())])
        .await;
    assert!(!holds(&sample, next_due(Some(100))).await);
    // The stream's own version serves where nothing else may happen to the trigger.
    let stale = expecting(of_trigger(1), Expected::Version(4), vec![removed(1)]);
    let refused = sample.store.commit(stale).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict(_)), "{refused}");
}

/// A hundred thousand schedules are due at once: each page takes as many steps as any other.
#[tokio::test]
async fn a_hundred_thousand_due_schedules_are_read_in_pages_by_index() {
    let sample = Sample::new();
    let each = 5_000;
    for some in 0..20 {
        let mut all = crate::Commit::new();
        for n in some * each..(some + 1) * each {
            all = all.append(
                of_trigger(n),
                Expected::Any,
                vec![super::sample::new(defined(n, 100))],
            );
        }
        sample.store.commit(all).await.unwrap();
    }
    let steps = sample
        .store
        .in_writer(|sql| {
            let before = crate::sql::STEPS.get();
            let text = "SELECT name FROM triggers WHERE next_due <= ?1 AND enabled = 1 AND paused \
                        IS NULL ORDER BY next_due, name LIMIT 100";
            let page = sql.rows(text, [crate::sql::int(at(100).0)], |row| {
                row.get::<String>(0)
            })?;
            assert_eq!(page.len(), 100);
            Ok(crate::sql::STEPS.get() - before)
        })
        .await
        .unwrap();
    assert!(steps < 5_000, "{steps}");
    let page = sample.store.due_triggers(at(100), 100).await.unwrap();
    assert_eq!(page.first().map(|row| row.name.clone()), Some(trigger(0)));
    // The next page begins behind those that are dealt with.
    let mut accepted = commit(of_trigger(0), vec![due(0, 1, 100)]);
    for (n, row) in page.iter().enumerate().skip(1) {
        let n = u32::try_from(n).unwrap();
        assert_eq!(row.name, trigger(n));
        accepted = accepted.append(
            of_trigger(n),
            Expected::Any,
            vec![super::sample::new(due(n, u128::from(n) + 1, 100))],
        );
    }
    sample.store.commit(accepted).await.unwrap();
    let page = sample.store.due_triggers(at(100), 100).await.unwrap();
    assert_eq!(page.first().map(|row| row.name.clone()), Some(trigger(100)));
}

//! Tests of what is recorded of times that come due.

use super::*;
use domain::event::TriggerOrigin;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn row(schedule: &serde_json::Value, next_due: Timestamp) -> TriggerRow {
    let spec = json!({ "schedule": schedule, "user": "ada", "target": { "agent": "a" } });
    let name: TriggerName = "tick".parse().unwrap();
    TriggerRow {
        id: name.id(),
        name,
        spec: serde_json::from_value(spec).unwrap(),
        origin: TriggerOrigin::Configuration,
        user: Some("ada".parse().unwrap()),
        defined: Timestamp(NOW.0 - 3_600_000),
        next_due: Some(next_due),
        paused: None,
        state: None,
        failures: Failures::default(),
        pending: 0,
        last_fired: None,
        updated: NOW,
        removed: None,
        version: 1,
    }
}

/// Returns what is recorded, as text.
fn reported(outcome: &DueOutcome) -> Vec<String> {
    let tell = |event: &Event| match event {
        Event::TriggerEventAccepted(it) => format!("accepted {:?}", it.what.due().unwrap()),
        Event::TriggerEventsSkipped(it) => format!("skipped {}", it.count),
        Event::TriggerPaused(_) => "paused".to_owned(),
        _ => "else".to_owned(),
    };
    outcome.events.iter().map(tell).collect()
}

#[test]
fn each_trigger_event_moves_the_trigger_on_to_its_next_time() {
    let row = row(&json!({ "every": "1h" }), NOW);
    let outcome = trigger_events_due(&row, NOW).unwrap();
    assert_eq!(reported(&outcome), [format!("accepted {NOW:?}")]);
    let Event::TriggerEventAccepted(accepted) = &outcome.events[0] else {
        panic!("{:?}", outcome.events);
    };
    assert_eq!(accepted.next_due, Some(NOW.plus_ms(3_600_000)));
    assert!(accepted.scheduled);
    assert_eq!(outcome.due, Some(NOW));
}

#[test]
fn what_finds_no_place_among_those_that_wait_is_passed_over() {
    let mut row = row(&json!({ "every": "1h" }), NOW);
    row.pending = u64::from(PENDING_MAX);
    assert_eq!(
        reported(&trigger_events_due(&row, NOW).unwrap()),
        ["skipped 1"]
    );
}

#[test]
fn a_schedule_that_was_missed_and_is_over_pauses_its_trigger() {
    let at = Timestamp(NOW.0 - 3_600_000);
    let schedule = json!({ "at": at.to_string(), "missed": "skip" });
    let outcome = trigger_events_due(&row(&schedule, at), NOW).unwrap();
    assert_eq!(reported(&outcome), ["skipped 1", "paused"]);
}

#[test]
fn three_times_that_cannot_be_computed_pause_a_trigger() {
    let row = row(&json!({ "every": "1h" }), NOW);
    let mut not_now = NotNow::default();
    let error = ScheduleError::Search(1);
    assert!(not_computed(&row, &error, &mut not_now, NOW).is_none());
    assert!(not_now.holds(&row.name, Instant::now()));
    assert!(not_computed(&row, &error, &mut not_now, NOW).is_none());
    let paused = not_computed(&row, &error, &mut not_now, NOW).unwrap();
    assert_eq!(reported(&paused), ["paused"]);
    assert_eq!(not_now.len(), 0);
}

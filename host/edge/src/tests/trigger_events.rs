//! Times that come due, and trigger events that fail.

use super::host::{BEGIN_MS, Host, trigger};
use domain::event::{Event, PauseReason, TriggerTrouble};
use domain::time::Timestamp;
use domain::trigger::TriggerEvent;
use serde_json::json;
use store::TriggerEventState;

#[tokio::test]
async fn a_time_that_comes_due_is_accepted_once_and_leads_to_the_next() {
    let every = json!({ "every": "30s" });
    let host = Host::with(json!({ "tick": trigger(json!({ "schedule": every })) })).await;
    let due = Timestamp(BEGIN_MS + 30_000);
    assert_eq!(host.trigger("tick").await.next_due, Some(due));
    assert_eq!(host.trigger_events("tick").await.len(), 0);
    host.pass_ms(30_000);
    host.until("a trigger event", async || {
        !host.trigger_events("tick").await.is_empty()
    })
    .await;
    let trigger_events = host.trigger_events("tick").await;
    assert_eq!(
        *trigger_events[0].what,
        TriggerEvent::Due { due, missed: 0 }
    );
    assert_eq!(
        host.trigger("tick").await.next_due,
        Some(due.plus_ms(30_000))
    );
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(host.trigger_events("tick").await.len(), 1);
}

#[tokio::test]
async fn times_that_were_missed_while_no_host_ran_are_one_trigger_event() {
    let every = json!({ "every": "1m" });
    let host = Host::with(json!({ "tick": trigger(json!({ "schedule": every })) })).await;
    let host = host.restarted_after_ms(600_000).await;
    host.until("a trigger event", async || {
        !host.trigger_events("tick").await.is_empty()
    })
    .await;
    let trigger_events = host.trigger_events("tick").await;
    let due = Timestamp(BEGIN_MS + 600_000);
    assert_eq!(trigger_events.len(), 1);
    assert_eq!(
        *trigger_events[0].what,
        TriggerEvent::Due { due, missed: 9 }
    );
    assert_eq!(
        host.trigger("tick").await.next_due,
        Some(due.plus_ms(60_000))
    );
}

#[tokio::test]
async fn a_trigger_that_only_fails_rests_and_is_paused_after_ten_times() {
    let at = json!({ "at": Timestamp(BEGIN_MS + 1_000).to_string() });
    let host = Host::with(json!({ "once": trigger(json!({ "schedule": at })) })).await;
    host.pass_ms(1_000);
    let failed = async || {
        let events = host.events("once").await;
        let failed = events
            .iter()
            .filter(|event| matches!(event, Event::TriggerEventFailed(_)));
        failed.count()
    };
    for attempt in 1..=10 {
        host.until("another failure", async || failed().await >= attempt)
            .await;
        host.pass_ms(600_000);
    }
    host.until("a pause", async || {
        host.trigger("once").await.paused.is_some()
    })
    .await;
    let row = host.trigger("once").await;
    assert_eq!(row.paused, Some(PauseReason::Failures { failures: 10 }));
    let trigger_events = host.trigger_events("once").await;
    assert_eq!(trigger_events[0].state, TriggerEventState::GivenUp);
    assert!(
        trigger_events[0]
            .last_error
            .as_ref()
            .unwrap()
            .contains("schedule")
    );
    let events = host.events("once").await;
    let troubles = events.iter().filter_map(|event| match event {
        Event::TriggerTroubled(it) => Some(&it.trouble),
        _ => None,
    });
    let troubles: Vec<&TriggerTrouble> = troubles.collect();
    assert_eq!(troubles[0], &TriggerTrouble::Failing { failures: 2 });
    assert_eq!(troubles.len(), 6, "{troubles:?}");
}

#[tokio::test]
async fn a_heartbeat_beats_only_in_its_hours_and_its_times_go_on() {
    let beat = json!({ "every": "30s", "checklist": {
        "componentDirectory": "/notes", "file": "HEARTBEAT.md",
    } });
    let host = Host::with(json!({ "beat": trigger(json!({ "heartbeat": beat })) })).await;
    let first = host.trigger("beat").await.next_due.unwrap();
    host.pass_ms(first.since_ms(host.now()));
    host.until("the next time", async || {
        host.trigger("beat").await.next_due > Some(first)
    })
    .await;
    // Its checklist is not there, and so says nothing.
    assert_eq!(host.trigger_events("beat").await.len(), 0);
}

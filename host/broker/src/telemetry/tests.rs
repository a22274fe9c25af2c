//! Listeners: what each hears, and what it is told of when it does not listen in time.

use super::{Heard, Listener, TELEMETRY_WAITING_MAX, Telemetry};
use domain::event::Subject;
use domain::id::{AgentId, SessionId};
use domain::telemetry::{TelemetryEvent, TelemetryFilter, TelemetryKind};
use domain::time::Timestamp;
use std::time::Duration;
use uuid::Uuid;

fn event(kind: TelemetryKind, agent: u128) -> TelemetryEvent {
    let subject = Subject {
        agent: Some(AgentId(Uuid::from_u128(agent))),
        session: Some(SessionId(Uuid::nil())),
        run: None,
    };
    TelemetryEvent::new(kind, subject, Timestamp(1))
}

/// Hears what is there already; none when nothing is.
async fn hear(listener: &mut Listener) -> Option<Heard> {
    tokio::time::timeout(Duration::from_millis(50), listener.hear())
        .await
        .ok()
        .flatten()
}

fn never() -> TelemetryEvent {
    panic!("it was made")
}

#[test]
fn nothing_is_made_to_be_told_while_nobody_listens() {
    let telemetry = Telemetry::default();
    telemetry.tell(|| panic!("a position was read"), never);
    assert!(!telemetry.is_heard());
    let listener = telemetry.listen(0, TelemetryFilter::default(), false);
    assert!(telemetry.is_heard() && !telemetry.is_content_wanted());
    drop(listener);
    telemetry.tell(|| panic!("a position was read"), never);
    assert!(!telemetry.is_heard());
}

#[tokio::test]
async fn a_listener_that_does_not_listen_is_told_how_much_it_missed() {
    let telemetry = Telemetry::default();
    let mut slow = telemetry.listen(0, TelemetryFilter::default(), false);
    let mut filtered = telemetry.listen(
        0,
        TelemetryFilter {
            kinds: vec![TelemetryKind::LlmError],
            ..TelemetryFilter::default()
        },
        false,
    );
    for _ in 0..TELEMETRY_WAITING_MAX + 7 {
        telemetry
            .shared
            .spread(0, &event(TelemetryKind::LlmStreamChunk, 1));
    }
    telemetry
        .shared
        .spread(0, &event(TelemetryKind::LlmError, 1));
    // What it did not ask for is not lost to it.
    let Some(Heard::Event(heard)) = hear(&mut filtered).await else {
        panic!("nothing is heard");
    };
    assert_eq!(heard.kind, TelemetryKind::LlmError);
    assert_eq!(hear(&mut filtered).await, None);
    assert_eq!(hear(&mut slow).await, Some(Heard::Lost(8)));
    let mut count = 0;
    while let Some(heard) = hear(&mut slow).await {
        assert!(matches!(heard, Heard::Event(_)), "{heard:?}");
        count += 1;
    }
    assert_eq!(count, TELEMETRY_WAITING_MAX);
    telemetry
        .shared
        .spread(0, &event(TelemetryKind::LlmError, 1));
    assert!(matches!(hear(&mut slow).await, Some(Heard::Event(_))));
}

#[tokio::test]
async fn a_listener_hears_nothing_of_what_was_stored_before_it_came() {
    let telemetry = Telemetry::default();
    let mut early = telemetry.listen(4, TelemetryFilter::default(), false);
    let mut late = telemetry.listen(5, TelemetryFilter::default(), false);
    // The fifth stored event, and one that was told when five were stored.
    for after in [4, 5] {
        let event = event(TelemetryKind::MessageReceived, 1);
        telemetry.shared.spread(after, &event);
    }
    for (listener, count) in [(&mut early, 2), (&mut late, 1)] {
        for _ in 0..count {
            assert!(hear(listener).await.is_some());
        }
        assert_eq!(hear(listener).await, None);
    }
}

#[tokio::test]
async fn text_reaches_only_a_listener_that_asked_for_it() {
    let telemetry = Telemetry::default();
    let mut plain = telemetry.listen(0, TelemetryFilter::default(), false);
    let mut reading = telemetry.listen(0, TelemetryFilter::default(), true);
    assert!(telemetry.is_content_wanted());
    telemetry.shared.spread(
        0,
        &TelemetryEvent {
            content: Some("what was said".into()),
            ..event(TelemetryKind::LlmStreamChunk, 1)
        },
    );
    for (listener, content) in [(&mut plain, None), (&mut reading, Some("what was said"))] {
        let Some(Heard::Event(heard)) = hear(listener).await else {
            panic!("nothing is heard");
        };
        assert_eq!(heard.content.as_deref(), content);
    }
    drop(reading);
    assert!(!telemetry.is_content_wanted() && telemetry.is_heard());
}

//! The order in which telemetry is told.

use super::host::{Host, model, replies, works};
use crate::Heard;
use domain::telemetry::{TelemetryEvent, TelemetryFilter, TelemetryKind};
use std::time::Duration;

#[tokio::test]
async fn a_call_of_a_model_is_told_where_it_happened_even_if_the_end_of_its_run_is_stored() {
    let host = Host::new().await;
    host.guest
        .steps([works([("ask", model())], &[]), replies("done")]);
    host.say("hi").await;
    host.ended().await;
    let begun = host.recorded("run.started").await.swap_remove(0);
    let ended = host.recorded("run.ended").await.swap_remove(0);
    let kinds = vec![
        TelemetryKind::MessageProcessing,
        TelemetryKind::LlmRequestComplete,
        TelemetryKind::MessageProcessed,
        TelemetryKind::LlmRequestStart,
    ];
    let filter = TelemetryFilter {
        kinds: kinds.clone(),
        ..TelemetryFilter::default()
    };
    // All of it waits to be told: nothing is told before this test waits.
    let telemetry = &host.broker.core.telemetry;
    let mut listener = telemetry.listen(0, filter, false);
    for (kind, after) in [
        (TelemetryKind::LlmRequestComplete, &begun),
        (TelemetryKind::LlmRequestStart, &ended),
    ] {
        let event = || TelemetryEvent::new(kind, after.subject, after.time);
        telemetry.tell(|| after.position, event);
    }
    let mut reported = Vec::new();
    while reported.len() < kinds.len() {
        let heard = tokio::time::timeout(Duration::from_secs(30), listener.hear());
        match heard.await.expect("an event in time") {
            Some(Heard::Event(event)) => reported.push(event.kind),
            other => panic!("{other:?} after {reported:?}"),
        }
    }
    assert_eq!(reported, kinds);
}

//! Events of the host.

use super::host::{BEGIN_MS, Host, trigger};
use domain::time::Timestamp;
use domain::trigger::{HostEventKind, TriggerEvent};
use serde_json::json;

/// The trigger that fails, and those that hear of it: its own events are not among them.
#[tokio::test]
async fn a_failing_trigger_is_heard_by_others_once_also_over_a_restart() {
    let at = json!({ "at": Timestamp(BEGIN_MS + 1_000).to_string() });
    let events = |kind: &str| trigger(json!({ "events": { "on": [kind] } }));
    let host = Host::with(json!({
        "fails": trigger(json!({ "schedule": at })),
        "hears": events("trigger.failing"),
        "deaf": events("input.dead"),
    }))
    .await;
    host.pass_ms(1_000);
    let heard = async |host: &Host| {
        let trigger_events = host.trigger_events("hears").await.into_iter();
        let failing = trigger_events.filter(|trigger_event| {
            let TriggerEvent::Event(event) = &*trigger_event.what else {
                panic!("{trigger_event:?}");
            };
            event.name == HostEventKind::TriggerFailing && event.data["trigger"] == "fails"
        });
        failing.count()
    };
    host.until("the failures", async || {
        host.pass_ms(5_000);
        heard(&host).await >= 1
    })
    .await;
    let host = host.restarted_after_ms(0).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let reported: Vec<_> = host.trigger_events("hears").await;
    let mut ids: Vec<&str> = reported
        .iter()
        .filter_map(|trigger_event| match &*trigger_event.what {
            TriggerEvent::Event(event) => Some(event.id.as_str()),
            _ => None,
        })
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each is heard once");
    assert_eq!(host.trigger_events("deaf").await.len(), 0);
}

//! Triggers of the configuration, and commands on them.

use super::host::{Host, name, trigger};
use broker::By;
use domain::event::PauseReason;
use domain::user::UserId;
use serde_json::json;

#[tokio::test]
async fn a_trigger_is_paused_resumed_and_run_by_hand() {
    let every = json!({ "schedule": { "every": "1h" } });
    let host = Host::with(json!({ "a": trigger(every) })).await;
    let triggers = host.edge.triggers();
    let ada: UserId = "ada".parse().unwrap();
    let row = triggers.pause(By::from(&ada), &name("a")).await.unwrap();
    assert_eq!(row.paused, Some(PauseReason::User { user: ada.clone() }));
    host.pass_ms(10 * 3_600_000);
    let row = triggers.resume(By::from(&ada), &name("a")).await.unwrap();
    assert_eq!(row.paused, None);
    assert_eq!(row.next_due, Some(host.now().plus_ms(3_600_000)));
    let by = By {
        user: &ada,
        key: Some("run-1"),
    };
    let first = triggers.run(by, &name("a")).await.unwrap();
    assert_eq!(triggers.run(by, &name("a")).await.unwrap(), first);
    let other = By {
        user: &ada,
        key: Some("run-2"),
    };
    assert_ne!(triggers.run(other, &name("a")).await.unwrap(), first);
    assert_eq!(host.trigger_events("a").await.len(), 2);
}

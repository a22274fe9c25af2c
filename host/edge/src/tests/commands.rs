//! Triggers of the configuration, and commands on them.

use super::host::{Host, name, trigger};
use broker::{By, Error};
use domain::event::PauseReason;
use domain::user::UserId;
use serde_json::json;

/// Returns the code of a refusal.
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    match result {
        Err(Error::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn triggers_of_the_configuration_change_and_go_with_it() {
    let every = |text: &str| trigger(json!({ "schedule": { "every": text } }));
    let host = Host::with(json!({ "a": every("1h"), "b": every("1h") })).await;
    let before = host.trigger("a").await;
    host.configure(json!({ "a": every("1h"), "c": every("2h") }))
        .await;
    assert_eq!(host.trigger("a").await.version, before.version);
    assert!(host.trigger("b").await.removed.is_some());
    assert_eq!(host.trigger("c").await.version, 1);
    host.configure(json!({ "a": every("3h") })).await;
    let after = host.trigger("a").await;
    assert_eq!(after.next_due, Some(host.now().plus_ms(3 * 3_600_000)));
}

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

#[tokio::test]
async fn what_belongs_to_the_configuration_is_refused_with_a_reason() {
    let every = json!({ "schedule": { "every": "1h" } });
    let host = Host::with(json!({ "a": trigger(every.clone()) })).await;
    let triggers = host.edge.triggers();
    let ada: UserId = "ada".parse().unwrap();
    let by = || By::from(&ada);
    let spec = || serde_json::from_value(trigger(every.clone())).unwrap();
    assert_eq!(
        code(triggers.remove(by(), &name("a")).await),
        "TRIGGER_CONFIGURED"
    );
    assert_eq!(
        code(triggers.change(by(), &name("a"), spec()).await),
        "TRIGGER_CONFIGURED"
    );
    assert_eq!(
        code(triggers.create(by(), name("a"), spec()).await),
        "TRIGGER_CONFIGURED"
    );
    assert_eq!(
        code(triggers.create(by(), name("wake"), spec()).await),
        "INVALID"
    );
    assert_eq!(
        code(triggers.create(by(), name("b"), spec()).await),
        "COMPONENT_NOT_FOUND"
    );
    assert_eq!(
        code(triggers.pause(by(), &name("none")).await),
        "TRIGGER_NOT_FOUND"
    );
    let wrong = trigger(json!({ "schedule": { "every": "1s" } }));
    let wrong = serde_json::from_value(wrong).unwrap();
    let Err(Error::Refused(refusal)) = triggers.create(by(), name("c"), wrong).await else {
        panic!("it is no schedule");
    };
    assert_eq!(refusal.field.as_deref(), Some("/spec/schedule/every"));
}

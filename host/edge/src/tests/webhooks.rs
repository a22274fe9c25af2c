//! Calls of webhooks.

use super::host::{Host, SECRET, trigger};
use crate::{HookAnswer, HookCall, HookForm};
use bytes::Bytes;
use domain::event::TriggerOrigin;
use domain::trigger::{TriggerEvent, WebhookAnswer};
use serde_json::{Value, json};

async fn host() -> Host {
    let hook = json!({ "auth": { "token": { "secret": "hook" } }, "bytesMax": 100 });
    Host::with(json!({
        "hook": trigger(json!({ "webhook": hook })),
    }))
    .await
}

fn call(token: &str, id: &str, body: &Value) -> HookCall {
    HookCall {
        path: "push".to_owned(),
        headers: vec![
            ("authorization".to_owned(), format!("Bearer {token}")),
            ("content-type".to_owned(), "application/json".to_owned()),
            ("webhook-id".to_owned(), id.to_owned()),
        ],
        query: Vec::new(),
        body: Bytes::from(body.to_string()),
        form: HookForm::Any,
    }
}

#[tokio::test]
async fn a_call_is_stored_when_it_is_answered_and_once_under_its_id() {
    let host = host().await;
    let triggers = host.edge.triggers();
    let body = json!({ "title": "a" });
    let answer = triggers
        .hook("hook", call(SECRET, "1", &body))
        .await
        .unwrap();
    let HookAnswer::Accepted {
        trigger_event,
        answer,
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!(answer, WebhookAnswer::Accepted);
    let stored = host
        .store()
        .trigger_event(trigger_event)
        .await
        .unwrap()
        .unwrap();
    let TriggerEvent::Webhook(stored) = *stored.what else {
        panic!("{stored:?}");
    };
    assert_eq!(stored.payload, body);
    assert_eq!(stored.path, "push");
    assert!(
        stored
            .headers
            .iter()
            .all(|(name, _)| name != "authorization")
    );
    let again = triggers
        .hook("hook", call(SECRET, "1", &body))
        .await
        .unwrap();
    assert_eq!(again, HookAnswer::Before { trigger_event });
    let other = triggers
        .hook("hook", call(SECRET, "2", &body))
        .await
        .unwrap();
    assert!(matches!(other, HookAnswer::Accepted { .. }));
    assert_eq!(host.trigger_events("hook").await.len(), 2);
    let origin = host.trigger("hook").await.origin;
    assert_eq!(origin, TriggerOrigin::Configuration);
}

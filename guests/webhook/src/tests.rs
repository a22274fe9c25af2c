//! Calls that are told, passed over and cut.

use super::*;
use agent_host_sdk::harness::TriggerRuns;
use serde_json::json;

fn call(event: &str, payload: Value) -> TriggerEvent {
    TriggerEvent::Webhook(WebhookCall {
        call_id: "1".to_owned(),
        path: String::new(),
        headers: vec![("x-github-event".to_owned(), event.to_owned())],
        query: Vec::new(),
        payload,
    })
}

#[test]
fn a_call_is_told_with_its_payload_where_there_are_no_words_for_it() {
    let trigger_run = TriggerRuns::of(Webhook)
        .fire(&call("push", json!({ "ref": "main" })))
        .unwrap();
    let [message] = &trigger_run.messages[..] else {
        panic!("{trigger_run:?}")
    };
    assert!(message.text.contains("\"ref\": \"main\""), "{message:?}");
}

#[test]
fn a_long_payload_is_cut_and_says_how_much_is_missing() {
    let trigger_run = TriggerRuns::of(Webhook)
        .fire(&call("push", json!("é".repeat(PAYLOAD_BYTES_MAX))))
        .unwrap();
    let [message] = &trigger_run.messages[..] else {
        panic!("{trigger_run:?}")
    };
    let left_out = format!("({PAYLOAD_BYTES_MAX} bytes more are left out)");
    assert!(message.text.ends_with(&left_out));
}

#[test]
fn only_calls_that_meet_all_conditions_are_told() {
    let configuration = json!({ "only": [
        { "header": "X-GitHub-Event", "values": ["issues", "push"] },
        { "payload": "/forced", "values": ["true"] },
    ] });
    for (event, payload, reported) in [
        ("push", json!({ "forced": true }), true),
        ("push", json!({ "forced": "true" }), true),
        ("push", json!({ "forced": false }), false),
        ("push", json!({}), false),
        ("ping", json!({ "forced": true }), false),
    ] {
        let mut trigger_runs = TriggerRuns::of(Webhook)
            .configured(configuration.clone())
            .saying("Inspection.");
        let trigger_run = trigger_runs.fire(&call(event, payload.clone())).unwrap();
        assert_eq!(
            !trigger_run.messages.is_empty(),
            reported,
            "{event} {payload}"
        );
    }
}

#[test]
fn a_call_may_name_one_of_the_granted_targets() {
    let mut trigger_runs = TriggerRuns::of(Webhook)
        .configured(json!({ "targetFrom": "agentId" }))
        .with_target("tutor");
    let trigger_run = trigger_runs
        .fire(&call("x", json!({ "agentId": "tutor" })))
        .unwrap();
    assert_eq!(trigger_run.messages[0].target.as_deref(), Some("tutor"));
    let trigger_run = trigger_runs.fire(&call("x", json!({}))).unwrap();
    assert_eq!(trigger_run.messages[0].target, None);
    let error = trigger_runs
        .fire(&call("x", json!({ "agentId": 7 })))
        .unwrap_err();
    assert!(error.to_string().contains("`agentId`"), "{error}");
}

//! Calls that are told, passed over and cut.

use super::*;
use agent_host_sdk::harness::Firings;
use serde_json::json;

fn call(event: &str, payload: Value) -> Occasion {
    Occasion::Webhook(WebhookCall {
        delivery_id: "1".to_owned(),
        path: String::new(),
        headers: vec![("x-github-event".to_owned(), event.to_owned())],
        query: Vec::new(),
        payload,
    })
}

#[test]
fn a_call_is_told_with_its_payload_where_there_are_no_words_for_it() {
    let firing = Firings::of(Webhook)
        .fire(&call("push", json!({ "ref": "main" })))
        .unwrap();
    let [message] = &firing.messages[..] else {
        panic!("{firing:?}")
    };
    assert!(message.text.contains("\"ref\": \"main\""), "{message:?}");
}

#[test]
fn a_long_payload_is_cut_and_says_how_much_is_missing() {
    let firing = Firings::of(Webhook)
        .fire(&call("push", json!("é".repeat(PAYLOAD_BYTES_MAX))))
        .unwrap();
    let [message] = &firing.messages[..] else {
        panic!("{firing:?}")
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
    for (event, payload, told) in [
        ("push", json!({ "forced": true }), true),
        ("push", json!({ "forced": "true" }), true),
        ("push", json!({ "forced": false }), false),
        ("push", json!({}), false),
        ("ping", json!({ "forced": true }), false),
    ] {
        let mut firings = Firings::of(Webhook)
            .configured(configuration.clone())
            .saying("Look.");
        let firing = firings.fire(&call(event, payload.clone())).unwrap();
        assert_eq!(!firing.messages.is_empty(), told, "{event} {payload}");
    }
}

#[test]
fn a_call_may_name_one_of_the_granted_targets() {
    let mut firings = Firings::of(Webhook)
        .configured(json!({ "targetFrom": "agentId" }))
        .with_target("tutor");
    let firing = firings
        .fire(&call("x", json!({ "agentId": "tutor" })))
        .unwrap();
    assert_eq!(firing.messages[0].target.as_deref(), Some("tutor"));
    let firing = firings.fire(&call("x", json!({}))).unwrap();
    assert_eq!(firing.messages[0].target, None);
    let error = firings
        .fire(&call("x", json!({ "agentId": 7 })))
        .unwrap_err();
    assert!(error.to_string().contains("`agentId`"), "{error}");
}

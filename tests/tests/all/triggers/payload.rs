//! Payloads of webhooks: what of them reaches the agent, in which form, and with which mark.

use super::scene::{SECRET, Scene, webhook};
use reqwest::Method;
use serde_json::json;

/// A template with every kind of variable, and with what is not there.
const TEMPLATE: &str = "{{payload.user.name}}|{{payload.tags[1]}}|{{payload.user}}|{{query.q}}|\
                        {{headers.x_event}}|{{path}}|{{trigger.id}}|{{agent.id}}|{{payload.none.a}}|\
                        {{headers.authorization}}|{{query.token}}|{{payload.n}}|{{now}}";

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_the_variables_that_its_template_names_and_no_credential() {
    let hook = webhook(&json!({ "message": TEMPLATE }));
    let scene = Scene::new(&json!({ "calls": hook })).await;
    let payload = json!({ "user": { "name": "Ada" }, "tags": ["a", "b"], "n": 7 });
    let path = "calls/deep/path?q=a%20b&token=of-the-sender";
    let request = scene.bare(path, payload.to_string()).bearer_auth(SECRET);
    scene
        .host
        .send(request.header("X-Event", "push"))
        .gives(202)
        .await;
    let reported = scene.reported_once("calls").await;
    let (reported, now) = reported.rsplit_once('|').unwrap();
    let accepted = scene.runs("calls").await[0]["accepted_at"].clone();
    assert_eq!(accepted, now);
    assert_eq!(
        reported,
        r#"Ada|b|{"name":"Ada"}|a b|push|deep/path|calls|puppet||||7"#
    );
    let messages = scene.reported("calls").await;
    assert_eq!(messages[0]["untrusted"], true);
    assert_eq!(messages[0]["origin"], "trigger:calls");
    for kind in ["trigger.event.accepted.v1", "trigger.fired.v1"] {
        let events = scene.events(kind).await;
        assert_eq!(events.len(), 1, "{events:?}");
        let shown = events[0].to_string();
        assert!(!shown.contains("Ada") && !shown.contains(SECRET), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_in_a_form_is_told_with_all_digits_of_its_numbers() {
    let hook = webhook(&json!({ "message": "{{payload.action}} {{payload.id}}" }));
    let scene = Scene::new(&json!({ "forms": hook })).await;
    let body =
        "payload=%7B%22action%22%3A%22opened%22%2C%22id%22%3A123456789012345678901234567890%7D";
    let request = scene.host.bare(Method::POST, "/hooks/forms");
    let request = request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    scene
        .host
        .send(request.bearer_auth(SECRET))
        .gives(202)
        .await;
    let reported = scene.reported_once("forms").await;
    assert_eq!(reported, "opened 123456789012345678901234567890");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_without_a_template_is_told_whole_and_marked() {
    let scene = Scene::new(&json!({ "calls": webhook(&json!({})) })).await;
    let payload = json!({ "text": "{{headers.authorization}} {{payload.text}} {% raw %}" });
    assert_eq!(scene.call("calls", "1", &payload).await.status, 202);
    let reported = scene.reported_once("calls").await;
    let text = payload["text"].as_str().unwrap();
    assert!(reported.contains(text), "it is no template: {reported}");
    assert_eq!(scene.reported("calls").await[0]["untrusted"], true);
}

/// Calls of no interest are taken and lead to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_configuration_of_the_component_leaves_out_says_nothing() {
    let only = json!([{ "header": "x-event", "values": ["push"] }]);
    let hook = webhook(&json!({ "configuration": { "only": only } }));
    let scene = Scene::new(&json!({ "calls": hook })).await;
    for event in ["push", "star"] {
        let request = scene.bare("calls", json!({ "event": event }).to_string());
        let request = request.header("x-event", event).bearer_auth(SECRET);
        scene.host.send(request).gives(202).await;
    }
    let runs = scene.done("calls", 2).await;
    assert_eq!(runs[0]["messages"], json!([]), "{runs:?}");
    let reported = scene.reported("calls").await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0]["text"].to_string().contains("push"),
        "{reported:?}"
    );
}

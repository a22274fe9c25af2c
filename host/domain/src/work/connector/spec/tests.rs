//! Connectors as operators write them.

use super::*;
use serde_json::json;

fn read(changes: &Value) -> Result<ConnectorSpec, serde_json::Error> {
    let mut spec = json!({ "component": "telegram", "agent": "assistant" });
    let fields = spec.as_object_mut().unwrap();
    fields.extend(changes.as_object().unwrap().clone());
    serde_json::from_value(spec)
}

fn fault(changes: &Value) -> String {
    read(changes).unwrap().check().unwrap_err().to_string()
}

#[test]
fn a_connector_needs_a_component_and_an_agent_alone() {
    let spec = read(&json!({})).unwrap();
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(spec.intake(), Intake::Polling);
    assert_eq!(spec.unknown, UnknownSender::Ignore);
    assert_eq!(spec.groups, Groups::Ignore);
    assert!(spec.enabled && spec.typing && !spec.stream && !spec.untrusted);
    let json = serde_json::to_value(&spec).unwrap();
    assert_eq!(serde_json::from_value::<ConnectorSpec>(json).unwrap(), spec);
}

#[test]
fn unknown_keys_are_refused() {
    for wrong in [
        json!({ "agnet": "a" }),
        json!({ "webhook": { "telegram": { "secret": "a", "token": "b" } } }),
        json!({ "webhook": { "discord": { "secret": "a" } } }),
        json!({ "unknown": "welcome" }),
        json!({ "queue": { "mdoe": "steer" } }),
    ] {
        assert!(read(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn calls_of_a_service_have_to_prove_themselves() {
    let proven = json!({ "webhook": { "telegram": { "secret": "hook" } } });
    let spec = read(&proven).unwrap();
    assert_eq!((spec.intake(), spec.check()), (Intake::Webhook, Ok(())));
    assert!(fault(&json!({ "intake": "webhook" })).starts_with("webhook: "));
    let unused = json!({ "intake": "polling", "webhook": { "slack": { "secret": "a" } } });
    assert!(fault(&unused).starts_with("webhook: "));
    let empty = json!({ "webhook": { "meta": { "secret": "a", "verifyToken": "" } } });
    assert!(fault(&empty).starts_with("webhook.meta.verifyToken: "));
}

#[test]
fn a_fault_names_its_field() {
    let long = "a".repeat(CONFIGURATION_BYTES_MAX);
    for (changes, field) in [
        (json!({ "component": " " }), "component: "),
        (json!({ "agent": "" }), "agent: "),
        (json!({ "refusal": "No." }), "refusal: "),
        (json!({ "unknown": "refuse", "refusal": " " }), "refusal: "),
        (json!({ "configuration": [] }), "configuration: "),
        (json!({ "configuration": { "a": long } }), "configuration: "),
    ] {
        let fault = fault(&changes);
        assert!(fault.starts_with(field), "{fault}");
    }
}

#[test]
fn a_component_has_to_have_the_way_in() {
    let abilities = Abilities {
        intake: vec![Intake::Webhook],
        text_limit: 4_096,
        buttons_max: 3,
        edits: true,
        typing: true,
        idempotent: false,
    };
    let polling = read(&json!({})).unwrap();
    let error = polling.check_abilities(&abilities).unwrap_err().to_string();
    assert_eq!(
        error,
        "intake: the component has `webhook`, and not `polling`; write intake = \"webhook\""
    );
    let webhook = read(&json!({ "webhook": { "slack": { "secret": "a" } } })).unwrap();
    assert_eq!(webhook.check_abilities(&abilities), Ok(()));
}

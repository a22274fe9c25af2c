//! Tests of the definition of a trigger.

use super::*;
use serde_json::json;

fn read(value: Value) -> TriggerSpec {
    serde_json::from_value(value).unwrap()
}

/// A trigger with these fields beside a target.
fn with(fields: Value) -> Value {
    let mut spec = json!({ "user": "ada", "target": { "agent": "assistant" } });
    if let (Some(all), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        all.extend(fields);
    }
    spec
}

#[test]
fn a_trigger_reads_as_it_is_written() {
    for value in [
        with(json!({ "schedule": { "cron": "0 9 * * *", "timeZone": "Europe/Berlin" } })),
        with(json!({ "heartbeat": { "every": "0" }, "enabled": false })),
        with(json!({ "webhook": { "auth": { "token": { "secret": "hook" } } } })),
        with(json!({
            "files": { "folder": "/inbox", "debounce": "1s", "recursive": true },
            "targets": { "review": { "persona": "home" } },
            "queue": { "mode": "collect", "debounce_ms": 2000 },
            "priority": "high",
            "model": "fast",
            "deliver": "none",
            "isolated": true,
            "configuration": { "a": 1 },
            "message": "{{payload.changes}}",
        })),
        with(json!({ "events": { "on": ["input.dead"] } })),
    ] {
        let spec = read(value.clone());
        assert_eq!(json!(spec), value);
        assert_eq!(spec.check_configured(), Ok(()), "{value}");
    }
}

#[test]
fn the_quiet_period_of_the_queue_may_be_written_as_in_the_configuration() {
    for key in ["debounce", "debounceMs", "debounce_ms"] {
        let spec = read(with(json!({ "heartbeat": {}, "queue": { key: "2s" } })));
        assert_eq!(json!(spec.queue), json!({ "debounce_ms": 2000 }), "{key}");
    }
}

#[test]
fn a_trigger_has_exactly_one_kind() {
    for value in [
        with(json!({})),
        with(json!({ "heartbeat": {}, "events": { "on": ["input.dead"] } })),
    ] {
        let error = serde_json::from_value::<TriggerSpec>(value)
            .unwrap_err()
            .to_string();
        assert!(error.contains("exactly one"), "{error}");
    }
    let unknown = with(json!({ "heartbeat": {}, "agnet": "a" }));
    let error = serde_json::from_value::<TriggerSpec>(unknown).unwrap_err();
    assert!(
        error.to_string().contains("unknown field `agnet`"),
        "{error}"
    );
}

#[test]
fn each_kind_has_its_component() {
    for (kind, component, trigger_events) in [
        (
            json!({ "schedule": { "every": "1h" } }),
            "schedule",
            "clock",
        ),
        (json!({ "heartbeat": {} }), "heartbeat", "heartbeat"),
        (
            json!({ "webhook": { "auth": { "token": { "secret": "s" } } } }),
            "webhook",
            "webhook",
        ),
        (
            json!({ "files": { "folder": "/in" } }),
            "files-watch",
            "files",
        ),
        (
            json!({ "events": { "on": ["budget.80"] } }),
            "schedule",
            "events",
        ),
    ] {
        let spec = read(with(kind));
        assert_eq!(spec.component(), component);
        assert_eq!(spec.on.trigger_events(), trigger_events);
        let has_clock = matches!(spec.on.key(), "schedule" | "heartbeat");
        assert_eq!(spec.schedule().unwrap().is_some(), has_clock, "{component}");
    }
    let own = read(with(json!({ "heartbeat": {}, "component": "mine" })));
    assert_eq!(own.component(), "mine");
}

#[test]
fn a_fault_names_the_field_and_the_fix() {
    let heartbeat = |fields: Value| {
        let mut spec = with(json!({ "heartbeat": {} }));
        let all = spec.as_object_mut().unwrap();
        all.extend(fields.as_object().unwrap().clone());
        spec
    };
    let webhook = |auth: Value| with(json!({ "webhook": { "auth": auth } }));
    for (value, field, part) in [
        (
            with(json!({ "schedule": { "every": "1s" } })),
            "schedule.every",
            "`30s`",
        ),
        (
            with(json!({ "schedule": { "cron": "x" } })),
            "schedule.cron",
            "1 fields",
        ),
        (
            with(json!({ "heartbeat": { "every": "1s" } })),
            "heartbeat.every",
            "`30s`",
        ),
        (
            with(json!({ "heartbeat": {
                "activeHours": { "start": "08:00", "end": "09:00", "timeZone": "Mars" }
            } })),
            "heartbeat.activeHours.timeZone",
            "names no time zone",
        ),
        (
            with(json!({ "heartbeat": { "runsPerDay": 0 } })),
            "heartbeat.runsPerDay",
            "at least 1",
        ),
        (
            webhook(json!({ "token": { "secret": "S" } })),
            "webhook.auth.token.secret",
            "`secrets`",
        ),
        (
            webhook(json!({ "hmac": { "secret": "s", "scheme": "plain" } })),
            "webhook.auth.hmac.header",
            "is missing",
        ),
        (
            webhook(json!({ "hmac": { "secret": "s", "scheme": "github", "header": "X-A" } })),
            "webhook.auth.hmac.header",
            "no meaning",
        ),
        (
            webhook(json!({ "hmac": { "secret": "s", "scheme": "github", "toleranceS": 5 } })),
            "webhook.auth.hmac.toleranceS",
            "no meaning",
        ),
        (
            webhook(json!({ "hmac": { "secret": "s", "scheme": "stripe", "toleranceS": 0 } })),
            "webhook.auth.hmac.toleranceS",
            "1 to 3600",
        ),
        (
            webhook(json!({ "hmac": { "secret": "s", "scheme": "plain", "header": "a b" } })),
            "webhook.auth.hmac.header",
            "name of a header",
        ),
        (
            with(json!({ "files": { "folder": "/in", "debounce": "1ms" } })),
            "files.debounce",
            "`100ms`",
        ),
        (
            with(json!({ "files": { "folder": "" } })),
            "files.folder",
            "is empty",
        ),
        (
            with(json!({ "events": { "on": [] } })),
            "events.on",
            "session.completed",
        ),
        (
            with(json!({ "events": { "on": ["input.dead"], "agents": [] } })),
            "events.agents",
            "all agents",
        ),
        (
            heartbeat(json!({ "message": "{{nothing}}" })),
            "message",
            "there is no `nothing`",
        ),
        (
            heartbeat(json!({ "message": "x".repeat(16_385) })),
            "message",
            "16384",
        ),
        (
            heartbeat(json!({ "target": { "agent": "" } })),
            "target.agent",
            "definition",
        ),
        (
            heartbeat(json!({ "isolated": true, "target": { "smart": {} } })),
            "target",
            "`isolated`",
        ),
        (
            heartbeat(json!({ "component": "" })),
            "component",
            "is empty",
        ),
        (
            heartbeat(json!({ "model": "a\nb" })),
            "model",
            "control character",
        ),
    ] {
        let fault = read(value.clone()).check().unwrap_err();
        assert_eq!(fault.field, field, "{fault}");
        assert!(fault.to_string().contains(part), "{fault}");
    }
}

#[test]
fn a_light_heartbeat_needs_a_target_that_can_have_new_sessions() {
    let session = json!({ "session": "00000000-0000-4000-8000-0000000000b1" });
    let spec = read(with(
        json!({ "heartbeat": { "light": true }, "target": session }),
    ));
    assert!(spec.is_isolated());
    assert!(
        spec.check()
            .unwrap_err()
            .to_string()
            .contains("`heartbeat.light`")
    );
    assert!(!read(with(json!({ "heartbeat": {} }))).is_isolated());
}

#[test]
fn the_configuration_says_on_whose_behalf_a_trigger_speaks() {
    let mut value = with(json!({ "heartbeat": {} }));
    value.as_object_mut().unwrap().remove("user");
    let spec = read(value);
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(spec.check_configured().unwrap_err().field, "user");
}

#[test]
fn a_component_picks_among_the_granted_targets_only() {
    let spec = read(with(json!({
        "heartbeat": {},
        "targets": { "review": { "persona": "home" } },
    })));
    let review: TriggerTargetName = "review".parse().unwrap();
    let other: TriggerTargetName = "other".parse().unwrap();
    assert_eq!(spec.picked(None).map(TriggerTarget::key), Some("agent"));
    assert_eq!(
        spec.picked(Some(&review)).map(TriggerTarget::key),
        Some("persona")
    );
    assert_eq!(spec.picked(Some(&other)), None);
}

#[test]
fn all_faults_are_found_at_once() {
    let spec = read(with(json!({
        "schedule": { "every": "1s" },
        "message": "{{",
        "target": { "agent": "" },
        "configuration": 1,
    })));
    let fields: Vec<String> = spec.faults().into_iter().map(|fault| fault.field).collect();
    assert_eq!(
        fields,
        ["schedule.every", "message", "target.agent", "configuration"]
    );
}

#[test]
fn the_schema_of_a_trigger_knows_every_key() {
    let schema = json!(schemars::schema_for!(TriggerSpec));
    for key in [
        "schedule",
        "heartbeat",
        "webhook",
        "files",
        "events",
        "target",
        "queue",
    ] {
        assert!(schema["properties"].get(key).is_some(), "{key}: {schema}");
    }
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["required"], json!(["target"]));
}

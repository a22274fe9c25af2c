//! Tests of what definitions derive from themselves.

use super::Definition;
use crate::values::error_code::ErrorCode;
use serde_json::{Value, json};

/// A definition with these keys set.
fn definition(keys: &Value) -> Definition {
    let mut whole = json!({ "agentId": "a", "displayName": "A" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

#[test]
fn limits_of_messages_and_sessions_have_defaults() {
    let bare = definition(&json!({}));
    assert_eq!(
        (bare.messages_at_once(), bare.message_timeout_ms()),
        (5, 120_000)
    );
    assert_eq!(bare.window(9_000), 9_000);
    let set = definition(&json!({
        "maxConcurrentMessages": 2, "messageTimeout": 3, "contextWindowSize": 4_000,
    }));
    assert_eq!(
        (set.messages_at_once(), set.message_timeout_ms()),
        (2, 3_000)
    );
    assert_eq!((set.window(9_000), set.window(1_000)), (4_000, 1_000));
}

#[test]
fn without_a_prompt_of_its_own_a_definition_says_who_it_is() {
    for (keys, prompt) in [
        (
            json!({ "systemPrompt": "Be brief.", "description": "Helps." }),
            "Be brief.",
        ),
        (json!({ "description": "Helps." }), "You are A. Helps."),
        (
            json!({ "systemPrompt": " \n", "description": "Helps." }),
            "You are A. Helps.",
        ),
        (json!({}), "You are A."),
    ] {
        assert_eq!(definition(&keys).prompt(), prompt);
    }
}

#[test]
fn a_setting_that_is_fixed_is_refused_as_an_agents_own_and_may_be_taken_away() {
    let definition = definition(&json!({ "fixedSettings": ["exam", "a/b~c"] }));
    for (settings, field) in [
        (json!({ "tone": "warm" }), None),
        (json!({ "exam": null, "tone": 1 }), None),
        (json!({ "tone": 1, "exam": {} }), Some("/settings/exam")),
        (json!({ "a/b~c": 1 }), Some("/settings/a~1b~0c")),
    ] {
        let refused = definition
            .check_own_settings(settings.as_object().unwrap())
            .err();
        assert_eq!(
            refused
                .as_ref()
                .and_then(|refused| refused.field.as_deref()),
            field,
            "{settings}"
        );
        assert!(refused.is_none_or(|refused| refused.code == ErrorCode::SettingFixed));
    }
}

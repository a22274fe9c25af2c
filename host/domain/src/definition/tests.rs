//! What definitions say of themselves.

use super::Definition;
use serde_json::{Value, json};

/// A definition with these keys set.
fn definition(keys: &Value) -> Definition {
    let mut whole = json!({ "agentId": "a", "displayName": "A" });
    whole.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

#[test]
fn without_a_prompt_of_its_own_a_definition_says_who_it_is() {
    for (keys, prompt) in [
        (json!({ "systemPrompt": "Be brief.", "description": "Helps." }), "Be brief."),
        (json!({ "description": "Helps." }), "You are A. Helps."),
        (json!({}), "You are A."),
    ] {
        assert_eq!(definition(&keys).prompt(), prompt);
    }
}

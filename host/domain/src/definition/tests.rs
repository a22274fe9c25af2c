//! The lists of definitions as truth tables.

use super::Definition;
use crate::tool::{EffectClass, ToolDefinition};
use serde_json::{Value, json};

/// A definition with these keys set.
fn definition(keys: &Value) -> Definition {
    let mut whole = json!({ "agentId": "a", "displayName": "A" });
    whole.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn tool(name: &str, capabilities: &[&str]) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: capabilities.iter().map(|&capability| capability.to_owned()).collect(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

#[test]
fn a_deny_list_wins_over_an_allow_list_and_a_missing_allow_list_is_everything() {
    for (keys, name, rule) in [
        (json!({}), "todo_add", None),
        (json!({ "toolAllowlist": null }), "todo_add", None),
        (json!({ "toolAllowlist": [] }), "todo_add", Some("toolAllowlist")),
        (json!({ "toolAllowlist": ["todo_*"] }), "todo_add", None),
        (json!({ "toolAllowlist": ["todo_*"] }), "journal_add", Some("toolAllowlist")),
        (json!({ "toolAllowlist": ["todo_*"], "toolDenylist": ["*_delete"] }), "todo_delete", Some("toolDenylist")),
        (json!({ "toolAllowlist": ["todo_delete"], "toolDenylist": ["todo_delete"] }), "todo_delete", Some("toolDenylist")),
        (json!({ "toolDenylist": [] }), "todo_add", None),
    ] {
        assert_eq!(definition(&keys).may_use(&tool(name, &[])).err().map(|denied| denied.rule), rule, "{keys} {name}");
    }
}

#[test]
fn system_tools_pass_allow_lists_and_nothing_passes_a_deny_list() {
    for (keys, rule) in [
        (json!({ "toolAllowlist": [], "capabilityAllowlist": [] }), None),
        (json!({ "toolDenylist": ["system_*"] }), Some("toolDenylist")),
        (json!({ "toolAllowlist": ["system_status"], "toolDenylist": ["*"] }), Some("toolDenylist")),
    ] {
        let status = tool("system_status", &["host.read"]);
        assert_eq!(definition(&keys).may_use(&status).err().map(|denied| denied.rule), rule, "{keys}");
    }
}

#[test]
fn every_capability_of_a_tool_must_be_allowed_and_none_denied() {
    for (keys, capabilities, rule) in [
        (json!({ "capabilityAllowlist": [] }), vec![], None),
        (json!({}), vec!["lists.read", "lists.write"], None),
        (json!({ "capabilityAllowlist": ["lists.*"] }), vec!["lists.read", "lists.write"], None),
        (json!({ "capabilityAllowlist": ["lists.read"] }), vec!["lists.read", "lists.write"], Some("capabilityAllowlist")),
        (json!({ "capabilityDenylist": ["lists.write"] }), vec!["lists.read", "lists.write"], Some("capabilityDenylist")),
        (
            json!({ "capabilityAllowlist": ["lists.*"], "capabilityDenylist": ["lists.write"] }),
            vec!["lists.write"],
            Some("capabilityDenylist"),
        ),
        (json!({ "capabilityAllowlist": ["lists.*"], "capabilityDenylist": ["lists.write"] }), vec!["lists.read"], None),
    ] {
        let tool = tool("lists", &capabilities);
        assert_eq!(definition(&keys).may_use(&tool).err().map(|denied| denied.rule), rule, "{keys} {capabilities:?}");
    }
}

#[test]
fn a_peer_is_reached_when_it_is_allowed_not_denied_and_visible() {
    for (keys, visible, rule) in [
        (json!({}), true, None),
        (json!({}), false, Some("uiVisible")),
        (json!({ "agentAllowlist": [] }), true, Some("agentAllowlist")),
        (json!({ "agentAllowlist": ["to*"] }), true, None),
        (json!({ "agentAllowlist": ["todo"], "agentDenylist": ["t*"] }), true, Some("agentDenylist")),
        (json!({ "agentAllowlist": ["journal"] }), true, Some("agentAllowlist")),
    ] {
        let todo = definition(&json!({ "agentId": "todo", "uiVisible": visible }));
        assert_eq!(definition(&keys).may_reach(&todo).err().map(|denied| denied.rule), rule, "{keys} {visible}");
    }
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

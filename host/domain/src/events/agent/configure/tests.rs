//! Tests of an agent's set-up, and of what it remembers.

use super::super::tests::{T, agent, user};
use super::*;
use crate::agents::role::AgentRole;
use serde_json::json;

#[expect(clippy::needless_pass_by_value, reason = "a test gives what it writes")]
fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn a_name_changes_once() {
    let before = agent();
    let after = before.after(&before.rename("Ada".into(), T).unwrap().unwrap());
    assert_eq!(after.name, "Ada");
    assert_eq!(after.rename("Ada".into(), T).unwrap(), None);
    for bad in ["", "  ", "a\nb", &"x".repeat(AGENT_NAME_BYTES_MAX + 1)] {
        assert_eq!(
            after
                .rename(bad.to_owned(), T)
                .unwrap_err()
                .field
                .as_deref(),
            Some("/name"),
            "{bad}"
        );
    }
}

#[test]
fn a_prompt_of_its_own_comes_and_goes() {
    let agent = agent();
    let own = agent.after(
        &agent
            .override_prompt(Some("Be brief.".into()), T)
            .unwrap()
            .unwrap(),
    );
    assert_eq!(own.system_prompt_override.as_deref(), Some("Be brief."));
    let back = own.after(&own.override_prompt(None, T).unwrap().unwrap());
    assert_eq!(
        (
            back.system_prompt_override.as_ref(),
            back.override_prompt(None, T).unwrap()
        ),
        (None, None)
    );
}

#[test]
fn settings_merge_and_null_takes_a_key_away() {
    let agent = agent();
    let some = agent.after(
        &agent
            .update_settings(keys(json!({ "a": 1, "b": 2 })), T)
            .unwrap()
            .unwrap(),
    );
    let less = some.after(
        &some
            .update_settings(keys(json!({ "a": null, "c": 3 })), T)
            .unwrap()
            .unwrap(),
    );
    assert_eq!(json!(less.settings), json!({ "b": 2, "c": 3 }));
    assert_eq!(
        less.update_settings(keys(json!({ "a": null })), T).unwrap(),
        None
    );
}

#[test]
fn preferences_merge_key_by_key_and_none_is_lost() {
    let agent = agent();
    let some = agent.after(
        &agent
            .update_preferences(keys(json!({ "tone": "warm", "depth": 1 })), None, T)
            .unwrap()
            .unwrap(),
    );
    let more = some.after(
        &some
            .update_preferences(
                keys(json!({ "depth": 2, "x": null })),
                None,
                Timestamp(4_000),
            )
            .unwrap()
            .unwrap(),
    );
    assert_eq!(
        json!(more.preferences),
        json!({ "tone": "warm", "depth": 2, "x": null })
    );
    assert_eq!(more.updated_at, Timestamp(4_000));
}

#[test]
fn what_it_remembers_of_one_user_is_not_told_to_another() {
    let agent = agent();
    let all = agent.after(
        &agent
            .update_preferences(keys(json!({ "tone": "warm", "level": 1 })), None, T)
            .unwrap()
            .unwrap(),
    );
    let bobs = all.after(
        &all.update_preferences(keys(json!({ "level": 5 })), Some(user("bob")), T)
            .unwrap()
            .unwrap(),
    );
    assert_eq!(
        json!(bobs.preferences_for(&user("bob"))),
        json!({ "tone": "warm", "level": 5 })
    );
    assert_eq!(
        json!(bobs.preferences_for(&user("alice"))),
        json!({ "tone": "warm", "level": 1 })
    );
}

#[test]
fn what_it_remembers_of_a_user_goes_with_them() {
    let agent = agent();
    let with_bob = agent.after(
        &agent
            .assign_user(user("bob"), AgentRole::Shared, user("alice"), T)
            .unwrap(),
    );
    let knows = with_bob.after(
        &with_bob
            .update_preferences(keys(json!({ "level": 5 })), Some(user("bob")), T)
            .unwrap()
            .unwrap(),
    );
    let without = knows.after(&knows.unassign_user(user("bob"), user("alice"), T).unwrap());
    assert!(without.user_preferences.is_empty());
}

#[test]
fn what_is_too_large_is_refused_with_its_field() {
    let large = keys(json!({ "x": "y".repeat(SETTINGS_BYTES_MAX) }));
    assert_eq!(
        agent()
            .update_settings(large.clone(), T)
            .unwrap_err()
            .field
            .as_deref(),
        Some("/settings")
    );
    assert_eq!(
        agent()
            .update_preferences(large, None, T)
            .unwrap_err()
            .field
            .as_deref(),
        Some("/preferences")
    );
    let prompt = Some("x".repeat(PROMPT_BYTES_MAX + 1));
    assert_eq!(
        agent()
            .override_prompt(prompt, T)
            .unwrap_err()
            .field
            .as_deref(),
        Some("/system_prompt_override")
    );
}

#[test]
fn an_archived_agent_is_set_up_no_more() {
    let agent = agent();
    let archived = agent.after(&agent.archive("x".into(), T).unwrap());
    assert_eq!(
        archived.rename("Ada".into(), T).unwrap_err().code,
        "AGENT_ARCHIVED"
    );
    assert_eq!(
        archived
            .override_prompt(Some("x".into()), T)
            .unwrap_err()
            .code,
        "AGENT_ARCHIVED"
    );
    assert_eq!(
        archived
            .update_settings(keys(json!({ "a": 1 })), T)
            .unwrap_err()
            .code,
        "AGENT_ARCHIVED"
    );
    assert_eq!(
        archived
            .update_preferences(keys(json!({ "a": 1 })), None, T)
            .unwrap_err()
            .code,
        "AGENT_ARCHIVED"
    );
}

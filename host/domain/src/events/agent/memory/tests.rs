//! Tests of the ownership of an agent's memory.

use super::super::tests::{T, agent, user};
use super::*;
use serde_json::json;

fn knowing(agent: &Agent, of: &str, keys: &Value) -> Agent {
    let keys = keys.as_object().unwrap().clone();
    agent.after(
        &agent
            .update_preferences(keys, Some(user(of)), T)
            .unwrap()
            .unwrap(),
    )
}

fn handed(agent: &Agent, keep: Option<AgentRole>) -> Agent {
    let events = agent.hand_off(user("bob"), keep, user("alice"), T).unwrap();
    events
        .iter()
        .fold(agent.clone(), |agent, event| agent.after(event))
}

#[test]
fn what_is_learned_for_all_is_everybodys_where_the_sessions_are() {
    for (role, for_all, of) in [
        (Some(AgentRole::Primary), true, Some(OfWhom::Everybody)),
        (Some(AgentRole::Shared), true, Some(OfWhom::Everybody)),
        (Some(AgentRole::Mentee), true, Some(OfWhom::User)),
        (Some(AgentRole::Observer), true, Some(OfWhom::User)),
        (Some(AgentRole::Primary), false, Some(OfWhom::User)),
        (Some(AgentRole::Mentee), false, Some(OfWhom::User)),
        (None, true, None),
        (None, false, None),
    ] {
        assert_eq!(of_whom(role, for_all), of, "{role:?} {for_all}");
        assert!(
            role.is_none_or(|role| of.is_none_or(|of| role.may(right_for(of)))),
            "what is kept may be kept: {role:?}"
        );
    }
}

#[test]
fn a_successor_takes_over_what_is_remembered_and_keeps_what_is_their_own() {
    let agent = knowing(&agent(), "alice", &json!({ "level": 3, "tone": "dry" }));
    let agent = agent.after(
        &agent
            .assign_user(user("bob"), AgentRole::Shared, user("alice"), T)
            .unwrap(),
    );
    let agent = knowing(&agent, "bob", &json!({ "tone": "warm" }));
    let after = handed(&agent, None);
    assert_eq!(
        json!(after.user_preferences),
        json!({ "bob": { "tone": "warm", "level": 3 } })
    );
    let kept = handed(&agent, Some(AgentRole::Observer));
    assert_eq!(
        json!(kept.user_preferences[&user("alice")]),
        json!({ "level": 3, "tone": "dry" }),
        "who stays is not forgotten"
    );
    assert_eq!(
        json!(kept.user_preferences[&user("bob")]),
        json!({ "tone": "warm", "level": 3 })
    );
}

#[test]
fn of_whom_nothing_is_remembered_nothing_is_carried() {
    let nobody = agent();
    assert_eq!(nobody.transfer_memory(&user("alice"), user("bob"), T), None);
    let same = knowing(
        &knowing(&nobody, "alice", &json!({ "tone": "dry" })),
        "bob",
        &json!({ "tone": "warm" }),
    );
    assert_eq!(same.transfer_memory(&user("alice"), user("bob"), T), None);
}

#[test]
fn what_has_no_room_is_left_behind_by_name_and_the_limit_holds_to_the_byte() {
    // Without `aa` they fill the limit exactly.
    let room = SETTINGS_BYTES_MAX - r#"{"own":1,"a":"","b":1}"#.len();
    let agent = knowing(&agent(), "bob", &json!({ "own": 1 }));
    let agent = knowing(&agent, "alice", &json!({ "b": 1, "a": "x".repeat(room) }));
    let agent = Agent {
        user_preferences: agent
            .user_preferences
            .iter()
            .map(|(of, keys)| {
                let mut keys = keys.clone();
                if *of == user("alice") {
                    keys.insert("aa".into(), json!("too much"));
                }
                (of.clone(), keys)
            })
            .collect(),
        ..agent
    };
    let Some(Event::PreferencesTransferred(transferred)) =
        agent.transfer_memory(&user("alice"), user("bob"), T)
    else {
        panic!("none")
    };
    assert_eq!(
        transferred.preferences.keys().collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(transferred.left_behind, ["aa"]);
    let after = agent.after(&Event::PreferencesTransferred(transferred));
    assert_eq!(
        serde_json::to_vec(&after.user_preferences[&user("bob")])
            .unwrap()
            .len(),
        SETTINGS_BYTES_MAX
    );
    assert!(after.remembering(&Map::new(), Some(&user("bob"))).is_ok());
}

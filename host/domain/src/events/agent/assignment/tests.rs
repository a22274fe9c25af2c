//! Tests of assignments: who may make, change and end them.

use super::super::tests::{T, agent, user};
use super::*;

fn shared_with(role: AgentRole) -> Agent {
    let agent = agent();
    agent.after(
        &agent
            .assign_user(user("bob"), role, user("alice"), T)
            .unwrap(),
    )
}

#[test]
fn a_primary_assigns_and_each_user_once() {
    let before = agent();
    let assigned = before
        .assign_user(user("bob"), AgentRole::Mentee, user("alice"), Timestamp(7))
        .unwrap();
    let user_id = user("bob");
    let assigned_by = user("alice");
    let says = UserAssigned {
        agent: before.id,
        user_id,
        role: AgentRole::Mentee,
        assigned_by,
        assigned_at: Timestamp(7),
    };
    assert_eq!(
        assigned,
        Event::UserAssigned(says),
        "who, as what, by whom and when"
    );
    let agent = shared_with(AgentRole::Mentee);
    assert_eq!(agent.role_of(&user("bob")), Some(AgentRole::Mentee));
    let again = agent
        .assign_user(user("bob"), AgentRole::Shared, user("alice"), T)
        .unwrap_err();
    assert_eq!(
        (again.code.as_str(), again.message.as_str()),
        (
            "USER_ALREADY_ASSIGNED",
            "User bob is already assigned to this agent"
        )
    );
    assert_eq!(
        agent
            .assign_user(user("carol"), AgentRole::Shared, user("bob"), T)
            .unwrap_err()
            .code,
        "ROLE_FORBIDS"
    );
    assert_eq!(
        agent
            .assign_user(user("carol"), AgentRole::Shared, user("nobody"), T)
            .unwrap_err()
            .code,
        "USER_NOT_ASSIGNED"
    );
}

#[test]
fn an_archived_agent_takes_no_user() {
    let agent = agent();
    let archived = agent.after(&agent.archive("done".into(), T).unwrap());
    let refused = archived
        .assign_user(user("bob"), AgentRole::Shared, user("alice"), T)
        .unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("AGENT_ARCHIVED", "Cannot assign user to archived agent")
    );
}

#[test]
fn there_is_always_a_primary() {
    let agent = shared_with(AgentRole::Shared);
    assert_eq!(
        agent
            .unassign_user(user("alice"), user("alice"), T)
            .unwrap_err()
            .code,
        "LAST_PRIMARY"
    );
    assert_eq!(
        agent
            .change_role(user("alice"), AgentRole::Observer, user("alice"), T)
            .unwrap_err()
            .code,
        "LAST_PRIMARY"
    );
    let two = agent.after(
        &agent
            .change_role(user("bob"), AgentRole::Primary, user("alice"), T)
            .unwrap()
            .unwrap(),
    );
    assert!(two.unassign_user(user("alice"), user("bob"), T).is_ok());
}

#[test]
fn a_role_that_is_there_already_changes_nothing() {
    assert_eq!(
        shared_with(AgentRole::Shared).change_role(
            user("bob"),
            AgentRole::Shared,
            user("alice"),
            T
        ),
        Ok(None)
    );
}

#[test]
fn whoever_is_no_primary_may_leave_and_remove_nobody_else() {
    let agent = shared_with(AgentRole::Observer);
    assert!(agent.unassign_user(user("bob"), user("bob"), T).is_ok());
    assert_eq!(
        agent
            .unassign_user(user("alice"), user("bob"), T)
            .unwrap_err()
            .code,
        "ROLE_FORBIDS"
    );
    assert_eq!(
        agent
            .unassign_user(user("carol"), user("alice"), T)
            .unwrap_err()
            .code,
        "USER_NOT_ASSIGNED"
    );
}

#[test]
fn a_handoff_makes_the_successor_primary_and_lets_the_other_go() {
    let agent = shared_with(AgentRole::Shared);
    let events = agent.hand_off(user("bob"), None, user("alice"), T).unwrap();
    let after = events
        .iter()
        .fold(agent.clone(), |agent, event| agent.after(event));
    assert_eq!(
        (after.role_of(&user("bob")), after.role_of(&user("alice"))),
        (Some(AgentRole::Primary), None)
    );
    let kept = agent
        .hand_off(user("dan"), Some(AgentRole::Observer), user("alice"), T)
        .unwrap();
    let after = kept
        .iter()
        .fold(agent.clone(), |agent, event| agent.after(event));
    assert_eq!(
        (after.role_of(&user("dan")), after.role_of(&user("alice"))),
        (Some(AgentRole::Primary), Some(AgentRole::Observer))
    );
    assert_eq!(
        agent
            .hand_off(user("alice"), None, user("alice"), T)
            .unwrap_err()
            .code,
        "INVALID"
    );
}

#[test]
fn an_assignment_reads_as_it_was_written() {
    for role in [
        AgentRole::Primary,
        AgentRole::Shared,
        AgentRole::Mentee,
        AgentRole::Observer,
    ] {
        let agent = shared_with(role);
        let expected = Assignment {
            user_id: user("bob"),
            role,
            assigned_at: T,
            assigned_by: user("alice"),
        };
        assert_eq!(
            agent.assignments.get(1),
            Some(&expected),
            "its event says all of it"
        );
        let written = serde_json::to_value(&expected).unwrap();
        let says = serde_json::json!({ "user_id": "bob", "role": role.as_str(), "assigned_at": T.0, "assigned_by": "alice" });
        assert_eq!(written, says);
        assert_eq!(
            serde_json::from_value::<Assignment>(written).unwrap(),
            expected
        );
    }
}

//! Assignments: which user has which role with an agent, since when, and who assigned it.

use super::Agent;
use crate::access::user::UserId;
use crate::agents::role::{AgentRole, Right};
use crate::events::event::{Event, RoleChanged, UserAssigned, UserUnassigned};
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Users that one agent may have.
pub const ASSIGNMENTS_MAX: usize = 1_000;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The user.
    pub user_id: UserId,
    /// The role.
    pub role: AgentRole,
    /// Since when.
    pub assigned_at: Timestamp,
    /// The user who assigned the role, or last changed it.
    pub assigned_by: UserId,
}

impl Agent {
    /// A user's role with it.
    #[must_use]
    pub fn role_of(&self, user: &UserId) -> Option<AgentRole> {
        self.assignments
            .iter()
            .find(|assignment| assignment.user_id == *user)
            .map(|assignment| assignment.role)
    }

    /// Returns whether a user is assigned to it.
    #[must_use]
    pub fn is_assigned(&self, user: &UserId) -> bool {
        self.role_of(user).is_some()
    }

    fn primaries(&self) -> usize {
        self.assignments
            .iter()
            .filter(|assignment| assignment.role == AgentRole::Primary)
            .count()
    }

    /// Checks that a user may assign, change or remove users. They must be PRIMARY of an agent that
    /// is not archived.
    fn assigning(&self, by: &UserId) -> Result<(), Refusal> {
        match self.role_of(by) {
            Some(role) => role.permits(Right::Assign)?,
            None => return Err(not_assigned(by)),
        }
        if self.is_archived() {
            return Err(Refusal::new(
                ErrorCode::AgentArchived,
                "Cannot assign user to archived agent",
            ));
        }
        Ok(())
    }

    /// Assigns a user.
    ///
    /// # Errors
    /// The agent is archived, the user is assigned already, or `by` is not PRIMARY.
    pub fn assign_user(
        &self,
        user_id: UserId,
        role: AgentRole,
        by: UserId,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        self.assigning(&by)?;
        if self.is_assigned(&user_id) {
            let message = format!("User {user_id} is already assigned to this agent");
            return Err(Refusal::new(ErrorCode::UserAlreadyAssigned, message));
        }
        if self.assignments.len() >= ASSIGNMENTS_MAX {
            let message = format!("an agent has at most {ASSIGNMENTS_MAX} users; remove one first");
            return Err(Refusal::new(ErrorCode::TooManyUsers, message));
        }
        Ok(Event::UserAssigned(UserAssigned {
            agent: self.id,
            user_id,
            role,
            assigned_by: by,
            assigned_at: now,
        }))
    }

    /// Changes a user's role; no event if it is unchanged.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, `by` is not PRIMARY, or no user would be
    /// PRIMARY any more.
    pub fn change_role(
        &self,
        user_id: UserId,
        role: AgentRole,
        by: UserId,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        self.assigning(&by)?;
        let Some(before) = self.role_of(&user_id) else {
            return Err(not_assigned(&user_id));
        };
        if before == role {
            return Ok(None);
        }
        if before == AgentRole::Primary && self.primaries() == 1 {
            return Err(last_primary());
        }
        Ok(Some(Event::RoleChanged(RoleChanged {
            agent: self.id,
            user_id,
            role,
            changed_by: by,
            changed_at: now,
        })))
    }

    /// Removes a user. A user who is not PRIMARY may remove only themselves.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, `by` may not remove them, or no user would
    /// be PRIMARY any more.
    pub fn unassign_user(
        &self,
        user_id: UserId,
        by: UserId,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        if user_id == by && self.is_assigned(&by) && !self.is_archived() {
            // Leaving sets no role.
        } else {
            self.assigning(&by)?;
        }
        match self.role_of(&user_id) {
            None => Err(not_assigned(&user_id)),
            Some(AgentRole::Primary) if self.primaries() == 1 => Err(last_primary()),
            Some(_) => Ok(Event::UserUnassigned(UserUnassigned {
                agent: self.id,
                user_id,
                unassigned_by: by,
                unassigned_at: now,
            })),
        }
    }

    /// Hands the agent over. The successor becomes PRIMARY and takes over the memories of the user
    /// who hands over. That user keeps the role `keep`, or no role.
    ///
    /// # Errors
    /// The same as for assigning and removing; or the successor is the same user.
    pub fn hand_off(
        &self,
        to: UserId,
        keep: Option<AgentRole>,
        by: UserId,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        self.assigning(&by)?;
        if to == by {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                "an agent is handed over to somebody else",
            )
            .at("/user_id"));
        }
        let mut events = Vec::new();
        match self.role_of(&to) {
            None => {
                events.push(self.assign_user(to.clone(), AgentRole::Primary, by.clone(), now)?)
            }
            Some(_) => {
                events.extend(self.change_role(to.clone(), AgentRole::Primary, by.clone(), now)?)
            }
        }
        let after = events
            .iter()
            .fold(self.clone(), |agent, event| agent.after(event));
        // Before the other user is removed, which would also delete the memories.
        events.extend(after.transfer_memory(&by, to, now));
        match keep {
            Some(role) => events.extend(after.change_role(by.clone(), role, by, now)?),
            None => events.push(after.unassign_user(by.clone(), by, now)?),
        }
        Ok(events)
    }
}

fn not_assigned(user: &UserId) -> Refusal {
    Refusal::new(
        ErrorCode::UserNotAssigned,
        format!("User {user} is not assigned to this agent"),
    )
}

fn last_primary() -> Refusal {
    let message =
        "an agent has at least one user in the role primary; give that role to another one first";
    Refusal::new(ErrorCode::LastPrimary, message)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, code_of, user};
    use super::*;

    fn shared_with(role: AgentRole) -> Agent {
        let agent = agent();
        agent.then(agent.assign_user(user("bob"), role, user("alice"), T))
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
            code_of(agent.assign_user(user("carol"), AgentRole::Shared, user("bob"), T)),
            "ROLE_FORBIDS"
        );
        assert_eq!(
            code_of(agent.assign_user(user("carol"), AgentRole::Shared, user("nobody"), T)),
            "USER_NOT_ASSIGNED"
        );
    }

    #[test]
    fn an_archived_agent_takes_no_user() {
        let agent = agent();
        let archived = agent.then(agent.archive("done".into(), T));
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
            code_of(agent.unassign_user(user("alice"), user("alice"), T)),
            "LAST_PRIMARY"
        );
        assert_eq!(
            code_of(agent.change_role(user("alice"), AgentRole::Observer, user("alice"), T)),
            "LAST_PRIMARY"
        );
        let two = agent.then(agent.change_role(user("bob"), AgentRole::Primary, user("alice"), T));
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
            code_of(agent.unassign_user(user("alice"), user("bob"), T)),
            "ROLE_FORBIDS"
        );
        assert_eq!(
            code_of(agent.unassign_user(user("carol"), user("alice"), T)),
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
            code_of(agent.hand_off(user("alice"), None, user("alice"), T)),
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
}

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
mod tests;

//! Roles: what a user may do with a shared agent.

use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::text::words;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::ToSchema;

/// The relation of a user to an agent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AgentRole {
    /// Full control.
    Primary,
    /// A member of a team: talks with it and sees everybody's sessions.
    Shared,
    /// A guided user: talks with it and sees only their own sessions.
    Mentee,
    /// Sees everybody's sessions and may not talk with it.
    Observer,
}

/// Something that a role may allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Looking at the agent itself.
    Inspect,
    /// Opening sessions, talking and answering in them, ending them, and setting one's own
    /// preferences.
    Interact,
    /// Clearing and deleting sessions of other users. A user's own sessions need
    /// [`Self::Interact`].
    DisposeOfOthers,
    /// Archiving it.
    Archive,
    /// Assigning users, changing their roles, removing them, handing the agent over.
    Assign,
    /// Its name, system prompt, settings, and the preferences for all users.
    Configure,
    /// Teaching the agent for all its users. Memories from the user's sessions that the agent marks
    /// as meant for everybody are kept for everybody.
    Teach,
}

impl Right {
    fn doing(self) -> &'static str {
        match self {
            Self::Inspect => "look at this agent",
            Self::Interact => "talk with this agent",
            Self::DisposeOfOthers => "clear or delete another user's session",
            Self::Archive => "archive this agent",
            Self::Assign => "assign users to this agent",
            Self::Configure => "change how this agent is set up",
            Self::Teach => "teach this agent for all its users",
        }
    }
}

words!(AgentRole {
    Primary = "primary",
    Shared = "shared",
    Mentee = "mentee",
    Observer = "observer",
});

impl AgentRole {
    /// The role matrix.
    #[must_use]
    pub fn may(self, right: Right) -> bool {
        match right {
            Right::Inspect => true,
            Right::Interact => self != Self::Observer,
            Right::DisposeOfOthers | Right::Archive | Right::Assign | Right::Configure => {
                self == Self::Primary
            }
            Right::Teach => matches!(self, Self::Primary | Self::Shared),
        }
    }

    /// Returns whether the role sees other users' sessions, with all their events.
    #[must_use]
    pub fn sees_all_sessions(self) -> bool {
        self != Self::Mentee
    }

    /// Checks that it allows something.
    ///
    /// # Errors
    /// It does not permit it.
    pub fn permits(self, right: Right) -> Result<(), Refusal> {
        if self.may(right) {
            return Ok(());
        }
        let allowed: Vec<&str> = Self::ALL
            .into_iter()
            .filter(|role| role.may(right))
            .map(Self::as_str)
            .collect();
        let message = format!(
            "as {self} you may not {}; that takes the role {}",
            right.doing(),
            allowed.join(" or ")
        );
        Err(Refusal::new(ErrorCode::RoleForbids, message))
    }
}

impl FromStr for AgentRole {
    type Err = Refusal;
    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::from_word(text).ok_or_else(|| {
            let message = format!(
                "`{text}` is no role; there are: {}",
                Self::ALL.map(Self::as_str).join(", ")
            );
            Refusal::new(ErrorCode::InvalidAssignmentRole, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentRole, Right};

    #[test]
    fn the_role_matrix_is_that_of_the_design() {
        let rights = [
            Right::Inspect,
            Right::Interact,
            Right::Archive,
            Right::Assign,
            Right::Configure,
            Right::Teach,
            Right::DisposeOfOthers,
        ];
        for (role, allowed, all_sessions) in [
            (AgentRole::Primary, [true; 7], true),
            (
                AgentRole::Shared,
                [true, true, false, false, false, true, false],
                true,
            ),
            (
                AgentRole::Mentee,
                [true, true, false, false, false, false, false],
                false,
            ),
            (
                AgentRole::Observer,
                [true, false, false, false, false, false, false],
                true,
            ),
        ] {
            assert_eq!(rights.map(|right| role.may(right)), allowed, "{role}");
            assert_eq!(
                rights.map(|right| role.permits(right).is_ok()),
                allowed,
                "{role}"
            );
            assert_eq!(role.sees_all_sessions(), all_sessions, "{role}");
        }
    }

    #[test]
    fn a_refusal_says_what_it_takes() {
        let refusal = AgentRole::Observer.permits(Right::Interact).unwrap_err();
        assert_eq!(refusal.code, "ROLE_FORBIDS");
        assert_eq!(
            refusal.message,
            "as observer you may not talk with this agent; that takes the role primary or shared \
             or mentee"
        );
        assert_eq!(
            "boss".parse::<AgentRole>().unwrap_err().message,
            "`boss` is no role; there are: primary, shared, mentee, observer"
        );
    }

    #[test]
    fn roles_are_lower_case_on_the_wire() {
        for role in AgentRole::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(role.as_str().parse::<AgentRole>().unwrap(), role);
        }
    }
}

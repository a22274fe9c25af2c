//! Commands on the users of an agent: assign, change a role, remove, hand over.

use super::{AgentView, Agents, By, Error, Target};
use crate::boxed::boxed;
use domain::agent::Agent;
use domain::role::{AgentRole, Right};
use domain::user::UserId;
use serde_json::json;

impl Agents<'_> {
    /// Assigns a user to an agent.
    ///
    /// # Errors
    /// The agent is archived, the user is assigned already, the caller may not.
    #[boxed]
    pub async fn assign<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        user: UserId,
        role: AgentRole,
    ) -> Result<AgentView, Error> {
        let asked = json!({ "assign": user, "role": role });
        let assign = |agent: &Agent, now| {
            Ok(vec![agent.assign_user(
                user.clone(),
                role,
                by.user.clone(),
                now,
            )?])
        };
        self.change(by, target, Right::Assign, asked, assign).await
    }

    /// Changes the role of a user with an agent.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, no PRIMARY user would be left, or the
    /// caller has no right to it.
    #[boxed]
    pub async fn change_role<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        user: UserId,
        role: AgentRole,
    ) -> Result<AgentView, Error> {
        let asked = json!({ "change_role": user, "role": role });
        let change = |agent: &Agent, now| {
            Ok(agent
                .change_role(user.clone(), role, by.user.clone(), now)?
                .into_iter()
                .collect())
        };
        self.change(by, target, Right::Assign, asked, change).await
    }

    /// Removes a user from an agent. All users may remove themselves.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, no PRIMARY user would be left, or the
    /// caller has no right to it.
    #[boxed]
    pub async fn unassign<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        user: UserId,
    ) -> Result<AgentView, Error> {
        // Leaving needs no role. The domain makes all other refusals.
        let right = if user == *by.user {
            Right::Inspect
        } else {
            Right::Assign
        };
        let unassign = |agent: &Agent, now| {
            Ok(vec![agent.unassign_user(
                user.clone(),
                by.user.clone(),
                now,
            )?])
        };
        self.change(by, target, right, json!({ "unassign": user }), unassign)
            .await
    }

    /// Hands an agent over to another user, who is assigned to it as PRIMARY.
    ///
    /// The user who hands it over keeps the role `keep`, or none.
    ///
    /// # Errors
    /// As for assigning and removing.
    #[boxed]
    pub async fn hand_off<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        to: UserId,
        keep: Option<AgentRole>,
    ) -> Result<AgentView, Error> {
        let asked = json!({ "hand_off": to, "keep": keep });
        let hand_off = |agent: &Agent, now| agent.hand_off(to.clone(), keep, by.user.clone(), now);
        self.change(by, target, Right::Assign, asked, hand_off)
            .await
    }
}

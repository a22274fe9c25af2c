//! Commands on who may do what with an agent: assign, change a role, remove, hand over.

use super::{AgentView, Broker, Error, Target};
use domain::agent::role::{Right, Role};
use domain::user::UserId;

impl Broker {
    /// Assigns a user to an agent.
    ///
    /// # Errors
    /// The agent is archived, the user is assigned already, whoever asks may not.
    pub async fn assign(&self, by: &UserId, target: &Target, user: UserId, role: Role) -> Result<AgentView, Error> {
        self.change(by, target, Right::Assign, |agent, now| Ok(vec![agent.assign_user(user.clone(), role, by.clone(), now)?])).await
    }

    /// Changes what a user is to an agent.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, nobody would be PRIMARY any more, whoever asks may not.
    pub async fn change_role(&self, by: &UserId, target: &Target, user: UserId, role: Role) -> Result<AgentView, Error> {
        let change = |agent: &domain::agent::Agent, now| Ok(agent.change_role(user.clone(), role, by.clone(), now)?.into_iter().collect());
        self.change(by, target, Right::Assign, change).await
    }

    /// Removes a user from an agent. Everybody may remove themselves.
    ///
    /// # Errors
    /// The agent is archived, the user is not assigned, nobody would be PRIMARY any more, whoever asks may not.
    pub async fn unassign(&self, by: &UserId, target: &Target, user: UserId) -> Result<AgentView, Error> {
        // Leaving takes no role; everything else is for the domain to refuse.
        let right = if user == *by { Right::Look } else { Right::Assign };
        self.change(by, target, right, |agent, now| Ok(vec![agent.unassign_user(user.clone(), by.clone(), now)?])).await
    }

    /// Hands an agent over to another user: assigned, given the role PRIMARY, and whoever hands it over keeps a role or none.
    ///
    /// # Errors
    /// As for assigning and removing.
    pub async fn hand_off(&self, by: &UserId, target: &Target, to: UserId, keep: Option<Role>) -> Result<AgentView, Error> {
        self.change(by, target, Right::Assign, |agent, now| agent.hand_off(to.clone(), keep, by.clone(), now)).await
    }
}

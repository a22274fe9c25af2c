//! Reach of agents: the operator's rules on paths, and the agents that still take words.

use super::{Access, Error};
use crate::refusals::{agent_dead, definition_gone, path_forbidden};
use domain::path::PathAccess;
use domain::refusal::Refusal;
use domain::residency::{Residency, residency};
use domain::user::UserId;
use store::{AgentRow, Clearance, ReadError};

impl Access<'_> {
    /// Returns whether the operator's rules let a user see the agent at a path. An agent that they
    /// hide looks absent.
    #[must_use]
    pub fn may_see(&self, user: &UserId, path: &str) -> bool {
        self.is_unruled
            || self
                .core
                .served()
                .settings
                .paths
                .rules
                .allows(user, PathAccess::Read, path)
                .is_allowed()
    }

    /// Returns whether the operator has any rules for a user.
    pub(super) fn is_ruled(&self, user: &UserId) -> bool {
        !self.is_unruled && !self.core.served().settings.paths.rules.is_empty_for(user)
    }

    /// Returns the clearance of a user, which reads of words across agents need. From the operator,
    /// who reads in a user's place, no rule hides anything.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn clearance(&self, user: &UserId) -> Result<Clearance, ReadError> {
        let sees: &(dyn Fn(&str) -> bool + Sync) = &|path| self.may_see(user, path);
        let rules = self.is_ruled(user).then_some(sees);
        self.store().clearance(user, rules).await
    }

    /// Checks that the operator's rules let a user command the agent at a path.
    pub(super) fn may_command(&self, user: &UserId, path: &str) -> Result<(), Refusal> {
        let served = self.core.served();
        let rules = &served.settings.paths.rules;
        let verdict = rules.allows(user, PathAccess::Write, path);
        if verdict.is_allowed() {
            Ok(())
        } else {
            Err(path_forbidden(path, verdict))
        }
    }

    /// Checks that the definition of an agent was not taken away.
    pub(super) fn has_definition(&self, row: &AgentRow) -> Result<(), Refusal> {
        let definition = &row.agent.definition;
        if self
            .core
            .served()
            .catalogue
            .definition(definition)
            .is_some()
        {
            Ok(())
        } else {
            Err(definition_gone(definition))
        }
    }

    /// Checks that an agent takes words. An agent that was made for a piece of work is dead some
    /// time after it.
    pub(super) async fn takes_words(&self, row: &AgentRow) -> Result<(), Error> {
        if !row.kind.is_ephemeral() {
            return Ok(());
        }
        let now = self.core.now();
        let work = self.store().work_of(row.agent.id, now).await?;
        match work.map(|work| residency(row.kind, work, self.core.limits().patience, now)) {
            Some(Residency::Dead) => Err(agent_dead(row.agent.id).into()),
            Some(Residency::Active | Residency::Sleeping) | None => Ok(()),
        }
    }
}

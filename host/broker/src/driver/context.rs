//! The session that a driver drives, with the state that all of the broker shares.
//!
//! Code that only reads, judges or plans gets nothing more than this. The driver's own state is
//! changed by the transitions alone.

use super::driving::Driving;
use super::scope::Scope;
use crate::core::{Core, Limits};
use crate::serving::Served;
use crate::shared::DriverError;
use domain::agent::Agent;
use domain::event::InputAccepted;
use domain::id::{InputId, SessionId};
use domain::run::Run;
use domain::session::CHAT;
use std::sync::Arc;
use store::{AgentRow, SessionRow, Store};

/// A session, with the sources of all data about it.
pub(super) struct SessionContext {
    pub(super) core: Arc<Core>,
    pub(super) session: SessionId,
    /// The served catalogue, as of the present check.
    pub(super) served: Arc<Served>,
}

impl SessionContext {
    pub(super) fn store(&self) -> &Store {
        &self.core.store
    }

    /// Returns the trouble that the session is not there.
    pub(super) fn missing(&self) -> DriverError {
        DriverError::Missing(format!("session {}", self.session))
    }

    /// Returns the session.
    pub(super) async fn session_row(&self) -> Result<SessionRow, DriverError> {
        self.store()
            .session(self.session)
            .await?
            .ok_or_else(|| self.missing())
    }

    /// Returns the agent of a run.
    pub(super) async fn agent_row(&self, driving: &Driving) -> Result<AgentRow, DriverError> {
        let id = driving.run.started.agent;
        self.store()
            .agent(id)
            .await?
            .ok_or_else(|| DriverError::Missing(format!("agent {id}")))
    }

    /// Returns the agent whose active session a run belongs to; none for a chat, which takes no
    /// slot.
    pub(super) async fn holder(&self, run: &Run) -> Result<Option<Agent>, DriverError> {
        if run.started.session_type == CHAT {
            return Ok(None);
        }
        Ok(self
            .store()
            .agent(run.started.agent)
            .await?
            .map(|row| row.agent))
    }

    /// Returns the limits of a step's run: those that it began with, lowered to those in force now.
    pub(super) fn limits_of(&self, scope: &Scope<'_>) -> Limits {
        let started = &scope.driving.run.started;
        self.core.serving.limits_of_run(started)
    }

    /// Wakes sessions to which a commit gave work.
    pub(super) fn wake(&self, sessions: Vec<SessionId>) {
        sessions
            .into_iter()
            .for_each(|session| self.core.wake(session));
    }

    /// Returns inputs by their ids.
    pub(super) async fn claimed(
        &self,
        inputs: &[InputId],
    ) -> Result<Vec<InputAccepted>, DriverError> {
        let mut claimed = Vec::new();
        for id in inputs {
            let (input, _) = self
                .store()
                .input(*id)
                .await?
                .ok_or_else(|| DriverError::Missing(format!("input {id}")))?;
            claimed.push(input);
        }
        Ok(claimed)
    }
}

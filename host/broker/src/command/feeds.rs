//! Events as they are followed, and who sees them.
//!
//! A follower's role and the operator's rules decide at every event, even if they change while they
//! follow.

use super::{AgentView, Broker, Error, Feeds};
use crate::boxed::boxed;
use domain::agent::visibility::{Sight, sight};
use domain::event::{Event, Recorded};
use domain::id::{AgentId, RunId, SessionId};
use domain::role::AgentRole;
use domain::user::UserId;
use std::collections::HashMap;
use store::{EventFilter, SpawnedSession};

/// Sessions whose owner is remembered; then the list is cleared.
const SESSIONS_MAX: usize = 1_024;

/// The follower of an agent, and the events visible to them.
#[derive(Debug)]
pub struct Viewer {
    user: UserId,
    /// The topmost agent above the one that is followed: its users are those of all below it.
    root: AgentId,
    /// None once they may see nothing any more.
    role: Option<AgentRole>,
    /// True if the follower is the operator, whose view depends on no role.
    is_operator: bool,
    broker: Broker,
    /// The path of the agent that is followed.
    path: String,
    theirs: HashMap<SessionId, bool>,
}

impl Feeds<'_> {
    /// Returns the follower of an agent: a user who has a role with it, or the operator, who reads
    /// as a PRIMARY user.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn viewer(
        &self,
        user: &UserId,
        found: &AgentView,
        is_operator: bool,
    ) -> Result<Viewer, Error> {
        let role = if is_operator {
            AgentRole::Primary
        } else {
            found.role
        };
        Ok(Viewer {
            user: user.clone(),
            root: self.store().root(found.row.agent.id).await?,
            role: Some(role),
            is_operator,
            broker: self.broker(),
            path: found.row.agent.path.to_string(),
            theirs: HashMap::new(),
        })
    }

    /// Returns events after a position, in order. [`Viewer::sees`] tells to whom each may be shown.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn events(
        &self,
        after: u64,
        filter: EventFilter,
        limit: usize,
    ) -> Result<Vec<Recorded>, Error> {
        Ok(self.store().events(after, filter, limit).await?)
    }

    /// Returns events like [`Self::events`]: those of a session, and of the sessions below it with
    /// whose agents the user may do something.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn events_of_tree(
        &self,
        user: &UserId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Recorded>, Error> {
        let clearance = self.access().clearance(user).await?;
        let page = self
            .store()
            .events_with_spawned(after, session, &clearance, limit);
        Ok(page.await?)
    }

    /// Returns the sessions below one, as far as the user may do something with their agents.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn spawned(
        &self,
        user: &UserId,
        session: SessionId,
    ) -> Result<Vec<SpawnedSession>, Error> {
        let clearance = self.access().clearance(user).await?;
        Ok(self.store().spawned(session, &clearance).await?)
    }

    /// Returns the sessions of an agent in which a run is open, the latest first.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn running(&self, agent: AgentId) -> Result<Vec<(AgentId, SessionId)>, Error> {
        Ok(self.store().sessions_running(agent).await?)
    }

    /// Returns whether a run is known to be open.
    #[boxed]
    pub async fn is_open(&self, run: RunId) -> bool {
        let run = self.store().run(run).await;
        run.is_ok_and(|run| run.is_some_and(|run| run.end.is_none()))
    }
}

impl Viewer {
    /// Returns whether they may still see anything.
    #[must_use]
    pub fn may_follow(&self) -> bool {
        self.role().is_some()
    }

    /// Returns their role, unless the operator's rules hide the agent by now.
    fn role(&self) -> Option<AgentRole> {
        let is_hidden = !self.is_operator && !self.broker.access().may_see(&self.user, &self.path);
        self.role.filter(|_| !is_hidden)
    }

    /// Looks up what they are by now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        if self.is_operator {
            return Ok(());
        }
        self.role = self.broker.store().role(&self.user, self.root).await?;
        Ok(())
    }

    /// Updates the follower's role by an event, whether they see it or not.
    pub fn witness(&mut self, recorded: &Recorded) {
        if self.is_operator || recorded.subject.agent != Some(self.root) {
            return;
        }
        match &recorded.event {
            Some(Event::UserAssigned(it)) if it.user_id == self.user => self.role = Some(it.role),
            Some(Event::RoleChanged(it)) if it.user_id == self.user => self.role = Some(it.role),
            Some(Event::UserUnassigned(it)) if it.user_id == self.user => self.role = None,
            _ => {}
        }
    }

    /// Returns whether they see an event.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sees(&mut self, recorded: &Recorded) -> Result<bool, Error> {
        let Some(role) = self.role() else {
            return Ok(false);
        };
        match sight(role, &self.user, recorded) {
            Sight::Shown => Ok(true),
            Sight::Hidden => Ok(false),
            Sight::IfTheirs(session) => self.is_theirs(session).await,
        }
    }

    /// Returns whether they see frames of a session while they happen.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sees_session(&mut self, session: SessionId) -> Result<bool, Error> {
        match self.role() {
            None => Ok(false),
            Some(role) if role.sees_all_sessions() => Ok(true),
            Some(_) => self.is_theirs(session).await,
        }
    }

    /// Returns whether a session belongs to them. The owner of a session never changes.
    async fn is_theirs(&mut self, session: SessionId) -> Result<bool, Error> {
        if let Some(known) = self.theirs.get(&session) {
            return Ok(*known);
        }
        let Some(row) = self.broker.store().session(session).await? else {
            return Ok(false);
        };
        if self.theirs.len() >= SESSIONS_MAX {
            self.theirs.clear();
        }
        let is_theirs = row.user_id == self.user;
        self.theirs.insert(session, is_theirs);
        Ok(is_theirs)
    }
}

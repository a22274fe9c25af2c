//! The follower of a stream, and the events visible to them. Their role and the operator's rules
//! decide at every event, even if they change while they follow.

use broker::{AgentView, Broker};
use domain::agent::visibility::{Sight, sight};
use domain::event::{Event, Recorded};
use domain::id::{AgentId, SessionId};
use domain::role::AgentRole;
use domain::user::UserId;
use std::collections::HashMap;
use store::{ReadError, Store};

/// Sessions whose owner is remembered; then the list is cleared.
const SESSIONS_MAX: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub(super) struct Viewer {
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

impl Viewer {
    pub(super) fn new(user: UserId, root: AgentId, broker: &Broker, found: &AgentView) -> Self {
        Self {
            user,
            root,
            role: Some(found.role),
            is_operator: false,
            broker: broker.clone(),
            path: found.row.agent.path.to_string(),
            theirs: HashMap::new(),
        }
    }

    /// The operator, reading as a PRIMARY user.
    pub(super) fn operator(
        user: UserId,
        root: AgentId,
        broker: &Broker,
        found: &AgentView,
    ) -> Self {
        Self {
            is_operator: true,
            role: Some(AgentRole::Primary),
            ..Self::new(user, root, broker, found)
        }
    }

    /// Returns whether they may still see anything.
    pub(super) fn may_follow(&self) -> bool {
        self.role().is_some()
    }

    /// Returns their role, unless the operator's rules hide the agent by now.
    fn role(&self) -> Option<AgentRole> {
        let is_hidden = !self.is_operator && !self.broker.access().may_see(&self.user, &self.path);
        self.role.filter(|_| !is_hidden)
    }

    /// Looks up what they are by now.
    pub(super) async fn refresh(&mut self, store: &Store) -> Result<(), ReadError> {
        if self.is_operator {
            return Ok(());
        }
        self.role = store.role(&self.user, self.root).await?;
        Ok(())
    }

    /// Updates the follower's role by an event, whether they see it or not.
    pub(super) fn witness(&mut self, recorded: &Recorded) {
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
    pub(super) async fn sees(
        &mut self,
        store: &Store,
        recorded: &Recorded,
    ) -> Result<bool, ReadError> {
        let Some(role) = self.role() else {
            return Ok(false);
        };
        match sight(role, &self.user, recorded) {
            Sight::Shown => Ok(true),
            Sight::Hidden => Ok(false),
            Sight::IfTheirs(session) => self.is_theirs(store, session).await,
        }
    }

    /// Returns whether they see frames of a session while they happen.
    pub(super) async fn sees_session(
        &mut self,
        store: &Store,
        session: SessionId,
    ) -> Result<bool, ReadError> {
        match self.role() {
            None => Ok(false),
            Some(role) if role.sees_all_sessions() => Ok(true),
            Some(_) => self.is_theirs(store, session).await,
        }
    }

    /// Returns whether a session belongs to them. The owner of a session never changes.
    async fn is_theirs(&mut self, store: &Store, session: SessionId) -> Result<bool, ReadError> {
        if let Some(known) = self.theirs.get(&session) {
            return Ok(*known);
        }
        let Some(row) = store.session(session).await? else {
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

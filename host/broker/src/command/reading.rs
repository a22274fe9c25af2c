//! Readings of users' content by the operator.
//!
//! They may be of any agent, and are on record before anything is shown.

use super::{Access, Broker, Error, Other, Target};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{session_not_found, turn_not_found};
use domain::event::{Event, OperatorRead};
use domain::id::{AgentId, RunId, SessionId, Stream, TurnId};
use domain::role::AgentRole;
use domain::user::UserId;
use std::collections::BTreeSet;
use store::{Commit, Expected};

/// A reading on behalf of the operator.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The user of the operator's credential.
    pub by: &'a UserId,
    /// The request, as the ledger names it.
    pub request: &'a str,
    /// The session that it names.
    pub session: Option<SessionId>,
    /// The run that it names.
    pub run: Option<RunId>,
    /// The turn that it names.
    pub turn: Option<TurnId>,
}

impl Broker {
    /// Returns the broker for the operator, from whom no rule on paths hides anything. For reading
    /// only.
    #[must_use]
    pub fn for_operator(&self) -> Self {
        Self {
            core: self.core.clone(),
            is_unruled: true,
        }
    }
}

impl Access<'_> {
    /// Returns the user as whom the operator reads of an agent: its first PRIMARY user.
    ///
    /// The reading is recorded when this returns. None if the operator sees the agent by their own
    /// role, or if the agent does not exist: the answer is then the same as for any other user.
    ///
    /// # Errors
    /// The store cannot be read, or the reading cannot be recorded: then nothing may be shown.
    #[boxed]
    pub async fn read_as_operator<'a>(
        &'a self,
        reading: Reading<'a>,
        target: &Target,
    ) -> Result<Option<UserId>, Error> {
        let row = match target {
            Target::Agent(id) => self.store().agent(*id).await?,
            Target::Path(path) => self.store().agent_at(path).await?,
            Target::Definition(_) => None,
        };
        let Some(row) = row.filter(|row| !row.purged) else {
            return Ok(None);
        };
        if self
            .is_seen(reading.by, row.agent.id, row.agent.path.as_str())
            .await?
        {
            return Ok(None);
        }
        let root = self.store().root(row.agent.id).await?;
        let Some(root) = self.store().agent_with_users(root).await? else {
            return Ok(None);
        };
        let primary = root
            .agent
            .assignments
            .iter()
            .find(|assignment| assignment.role == AgentRole::Primary);
        let Some(primary) = primary.map(|assignment| assignment.user_id.clone()) else {
            return Ok(None);
        };
        self.note_readings(reading, [row.agent.id]).await?;
        Ok(Some(primary))
    }

    /// Records an inspection of lists as the operator. There is one record for each agent in them
    /// that the operator does not see by their own role.
    ///
    /// # Errors
    /// The store cannot be read, or the reading cannot be recorded: then nothing may be shown.
    #[boxed]
    pub async fn read_lists_as_operator<'a>(
        &'a self,
        reading: Reading<'a>,
        agents: BTreeSet<AgentId>,
    ) -> Result<(), Error> {
        let mut others = Vec::new();
        for agent in agents {
            let path = self.store().agent(agent).await?;
            let path = path.map_or_else(String::new, |row| row.agent.path.into());
            if !self.is_seen(reading.by, agent, &path).await? {
                others.push(agent);
            }
        }
        self.note_readings(reading, others).await
    }

    /// Records the reading of the other side of a comparison, unless the operator sees it by their
    /// own role. The record names the session, the turn if it is one, and their agent.
    ///
    /// # Errors
    /// It is not there, or not seen by the user as whom the operator reads; the store cannot be
    /// read, or the reading cannot be recorded: then nothing may be shown.
    #[boxed]
    pub async fn compare_as_operator<'a>(
        &'a self,
        reading: Reading<'a>,
        user: &UserId,
        with: Other,
    ) -> Result<(), Error> {
        let (session, turn) = match with {
            Other::Session(session) => (session, None),
            Other::Turn(turn) => {
                let clearance = self.clearance(user).await?;
                let showing = self.store().session_showing(&clearance, None, turn).await?;
                (
                    showing.ok_or_else(|| turn_not_found(turn).at("query:with"))?,
                    Some(turn),
                )
            }
        };
        let row = self.store().session(session).await?;
        let row = row.ok_or_else(|| session_not_found(session).at("query:with"))?;
        let reading = Reading {
            session: Some(session),
            turn,
            ..reading
        };
        self.read_lists_as_operator(reading, BTreeSet::from([row.agent]))
            .await
    }

    /// Returns whether a user sees all of an agent by their role and the rules on paths.
    async fn is_seen(&self, user: &UserId, agent: AgentId, path: &str) -> Result<bool, Error> {
        let role = self.store().role(user, agent).await?;
        Ok(role.is_some_and(AgentRole::sees_all_sessions) && self.may_see(user, path))
    }

    async fn note_readings(
        &self,
        reading: Reading<'_>,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<(), Error> {
        let by = reading.by;
        let time = self.core.now();
        let events: Vec<_> = agents
            .into_iter()
            .map(|agent| {
                let read = OperatorRead {
                    user_id: by.clone(),
                    request: reading.request.to_owned(),
                    agent,
                    session: reading.session,
                    run: reading.run,
                    turn: reading.turn,
                    time,
                };
                Context::by(by, time)
                    .about(agent, reading.session, reading.run)
                    .event(Event::OperatorRead(read))
            })
            .collect();
        if events.is_empty() {
            return Ok(());
        }
        self.store()
            .commit(Commit::new().append(Stream::Host, Expected::Any, events))
            .await
            .map(drop)
            .map_err(Error::unavailable)
    }
}

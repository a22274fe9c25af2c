//! A user's sessions with all agents, in groups by agent.

use super::{Broker, Error};
use crate::boxed::boxed;
use domain::definition::Definition;
use domain::user::UserId;
use std::sync::Arc;
use store::{AgentRow, SessionRow};

/// An agent with sessions of a user's.
#[derive(Debug, Clone)]
pub struct AgentSessions {
    /// The agent.
    pub agent: AgentRow,
    /// Its definition, with the look that clients show; none when it is no longer there.
    pub definition: Option<Arc<Definition>>,
    /// The sessions, those that are pinned first.
    pub sessions: Vec<SessionRow>,
}

/// Sessions of all agents.
#[derive(Debug, Clone, Default)]
pub struct SessionsByAgent {
    /// The agents in the order of their first sessions.
    pub agents: Vec<AgentSessions>,
    /// True if there are more sessions.
    pub more: bool,
}

impl Broker {
    /// Returns a user's own sessions with the active agents that they may see, `limit` at most. The
    /// last pinned sessions come first, then the most recently updated; an agent's are together.
    #[boxed]
    pub async fn sessions_by_agent(
        &self,
        user: &UserId,
        open: bool,
        limit: usize,
    ) -> Result<SessionsByAgent, Error> {
        let mut rows = self
            .store()
            .sessions_pinned_first(user, open, limit.saturating_add(1))
            .await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let served = self.core.served();
        let mut agents: Vec<AgentSessions> = Vec::new();
        for row in rows {
            let there = agents
                .iter_mut()
                .find(|group| group.agent.agent.id == row.agent);
            if let Some(group) = there {
                group.sessions.push(row);
                continue;
            }
            // The operator's rules hide agents, and all that is theirs.
            let agent = self.store().agent(row.agent).await?;
            if let Some(agent) = agent.filter(|agent| self.may_see(user, &agent.agent.path)) {
                let definition = served.catalogue.definition(&agent.agent.definition);
                agents.push(AgentSessions {
                    definition: definition.cloned(),
                    agent,
                    sessions: vec![row],
                });
            }
        }
        Ok(SessionsByAgent { agents, more })
    }
}

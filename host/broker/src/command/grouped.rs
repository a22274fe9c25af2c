//! A user's sessions with all agents, in groups by agent.

use super::{Error, Sessions};
use crate::boxed::boxed;
use domain::definition::Definition;
use domain::id::AgentId;
use domain::user::UserId;
use std::collections::HashMap;
use std::sync::Arc;
use store::{AgentRow, PinnedFirst, SessionRow};

/// Sessions that are read at once.
const SESSIONS_READ: usize = 200;
/// Maximum number of reads for one list. The list may then end before its limit, with a place to
/// continue.
const READS_MAX: usize = 50;

/// An agent with sessions of a user's.
#[derive(Debug, Clone)]
pub struct AgentSessions {
    /// The agent.
    pub agent: AgentRow,
    /// Its definition, with the appearance that clients show; none if it no longer exists.
    pub definition: Option<Arc<Definition>>,
    /// The sessions, those that are pinned first.
    pub sessions: Vec<SessionRow>,
}

/// Sessions of all agents.
#[derive(Debug, Clone, Default)]
pub struct SessionsByAgent {
    /// The agents in the order of their first sessions.
    pub agents: Vec<AgentSessions>,
    /// The place after which there may be more sessions; none if these are the last.
    pub next_after: Option<PinnedFirst>,
}

impl Sessions<'_> {
    /// Returns a user's own sessions with the active agents that they may see, `limit` at most,
    /// after a place. The last pinned sessions come first, then the most recently updated; those of
    /// one agent are together.
    #[boxed]
    pub async fn by_agent(
        &self,
        user: &UserId,
        open: bool,
        after: Option<PinnedFirst>,
        limit: usize,
    ) -> Result<SessionsByAgent, Error> {
        let mut listing = Listing::default();
        let mut at = after;
        let clearance = self.access().clearance(user).await?;
        for _ in 0..READS_MAX {
            let rows = self
                .store()
                .sessions_pinned_first(&clearance, open, at, SESSIONS_READ)
                .await?;
            let is_last = rows.len() < SESSIONS_READ;
            for row in rows {
                let shown = self.place_of(user, row.agent, &mut listing).await?;
                if shown.is_some() && listing.sessions >= limit {
                    return Ok(listing.grouped(at));
                }
                at = Some(PinnedFirst::of(&row));
                if let Some(place) = shown {
                    listing.add(place, row);
                }
            }
            if is_last {
                return Ok(listing.grouped(None));
            }
        }
        Ok(listing.grouped(at))
    }

    /// Returns the place of an agent's group, or none if the operator's rules hide the agent, and
    /// all that is its own.
    async fn place_of(
        &self,
        user: &UserId,
        agent: AgentId,
        listing: &mut Listing,
    ) -> Result<Option<usize>, Error> {
        if let Some(there) = listing.places.get(&agent) {
            return Ok(*there);
        }
        let row = self.store().agent(agent).await?;
        let row = row.filter(|row| self.access().may_see(user, row.agent.path.as_str()));
        let place = row.map(|agent| {
            let served = self.core.served();
            let definition = served.catalogue.definition(&agent.agent.definition);
            listing.groups.push(AgentSessions {
                definition: definition.cloned(),
                agent,
                sessions: Vec::new(),
            });
            listing.groups.len() - 1
        });
        listing.places.insert(agent, place);
        Ok(place)
    }
}

/// A list that is being made.
#[derive(Default)]
struct Listing {
    groups: Vec<AgentSessions>,
    /// The places of the agents among the groups; none for a hidden agent.
    places: HashMap<AgentId, Option<usize>>,
    /// Number of sessions in all groups.
    sessions: usize,
}

impl Listing {
    fn add(&mut self, place: usize, row: SessionRow) {
        if let Some(group) = self.groups.get_mut(place) {
            group.sessions.push(row);
            self.sessions += 1;
        }
    }

    fn grouped(mut self, next_after: Option<PinnedFirst>) -> SessionsByAgent {
        // The agent of the session that did not fit has none here.
        self.groups.retain(|group| !group.sessions.is_empty());
        SessionsByAgent {
            agents: self.groups,
            next_after,
        }
    }
}

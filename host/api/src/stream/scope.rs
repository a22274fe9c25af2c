//! The scope of a stream: the events that it shows.

use crate::caller::{Caller, OperatorReading};
use crate::reading::without_names;
use crate::wire::{self, Spawned};
use broker::Broker;
use domain::event::{Event, Recorded, Source};
use domain::id::{AgentId, SessionId};
use domain::user::UserId;
use std::collections::{BTreeSet, HashMap};
use store::EventFilter;

/// See the module.
#[derive(Debug)]
pub(super) enum StreamScope {
    Agent(AgentId),
    Session(SessionId),
    /// A session with all that were begun below it.
    Tree(Tree),
}

/// A session with all that were begun below it, as far as the user may do something with their
/// agents.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) session: SessionId,
    user: UserId,
    /// Knows what the operator's rules hide from the user.
    broker: Broker,
    /// The operator's reading, if they follow without a role of their own.
    operator: Option<OperatorReading>,
    /// The agents of which that reading is on record.
    noted: BTreeSet<AgentId>,
    spawned: HashMap<SessionId, Spawned>,
}

impl Tree {
    /// A session of an agent's that the caller follows.
    pub(super) fn new(agent: AgentId, session: SessionId, caller: &Caller, broker: Broker) -> Self {
        Self {
            session,
            user: caller.user.clone(),
            broker,
            operator: caller.operator.clone(),
            // The request names it, so that its reading is on record.
            noted: BTreeSet::from([agent]),
            spawned: HashMap::new(),
        }
    }

    /// Reads which sessions are below. Each is known, and with that shown, once the operator's
    /// reading of its agent is on record.
    async fn learn(&mut self) -> Result<(), broker::Error> {
        let feeds = self.broker.feeds();
        let below = feeds.spawned(&self.user, self.session).await?;
        self.note(below.iter().map(|session| session.agent).collect())
            .await?;
        self.spawned = below
            .iter()
            .map(|session| (session.id, wire::spawned(session)))
            .collect();
        Ok(())
    }

    /// Records the agents that the operator reads from now on.
    async fn note(&mut self, mut agents: BTreeSet<AgentId>) -> Result<(), broker::Error> {
        let Some(OperatorReading { by, request }) = &self.operator else {
            return Ok(());
        };
        agents.retain(|agent| !self.noted.contains(agent));
        if agents.is_empty() {
            return Ok(());
        }
        let reading = without_names(by, request);
        let reading = self
            .broker
            .access()
            .read_lists_as_operator(reading, agents.clone())
            .await;
        reading?;
        self.noted.append(&mut agents);
        Ok(())
    }

    fn knows(&self, session: SessionId) -> bool {
        session == self.session || self.spawned.contains_key(&session)
    }
}

impl StreamScope {
    /// Reads the sessions below, which must be known before anything is shown.
    pub(super) async fn open(&mut self) -> Result<(), broker::Error> {
        match self {
            Self::Agent(_) | Self::Session(_) => Ok(()),
            Self::Tree(tree) => tree.learn().await,
        }
    }

    /// Reads events after a position, in order. Everything that [`StreamScope::spawned`] is asked
    /// about them is known then.
    pub(super) async fn read(
        &mut self,
        broker: &Broker,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Recorded>, broker::Error> {
        let filter = match self {
            Self::Agent(agent) => EventFilter {
                agent: Some(*agent),
                ..EventFilter::default()
            },
            Self::Session(session) => EventFilter {
                session: Some(*session),
                ..EventFilter::default()
            },
            Self::Tree(tree) => {
                let page = tree
                    .broker
                    .feeds()
                    .events_of_tree(&tree.user, tree.session, after, limit)
                    .await?;
                let mut sessions = page.iter().filter_map(|recorded| recorded.subject.session);
                if sessions.any(|session| !tree.knows(session)) {
                    tree.learn().await?;
                }
                return Ok(page);
            }
        };
        broker.feeds().events(after, filter, limit).await
    }

    /// Returns whether a stored event is shown, by what is known so far: see
    /// [`StreamScope::may_grow_with`].
    pub(super) fn shows(&self, recorded: &Recorded) -> bool {
        let session = recorded.subject.session;
        match self {
            Self::Agent(wanted) => recorded.subject.agent == Some(*wanted),
            Self::Session(wanted) => session == Some(*wanted),
            Self::Tree(tree) => session.is_some_and(|session| tree.knows(session)),
        }
    }

    /// Returns whether the scope may grow with this event's commit. Only [`StreamScope::read`] can
    /// then tell, from before that commit.
    pub(super) fn may_grow_with(&self, recorded: &Recorded) -> bool {
        match self {
            Self::Agent(_) | Self::Session(_) => false,
            Self::Tree(tree) => {
                begins_for_another(recorded)
                    && recorded
                        .subject
                        .session
                        .is_none_or(|session| !tree.knows(session))
            }
        }
    }

    /// Returns whether frames about this session of this agent are shown.
    pub(super) fn has(&self, agent: AgentId, session: SessionId) -> bool {
        match self {
            Self::Agent(wanted) => *wanted == agent,
            Self::Session(wanted) => *wanted == session,
            Self::Tree(tree) => tree.knows(session),
        }
    }

    /// Returns whether frames about this session of this agent are shown, or may be in a moment:
    /// more sessions below the followed one may be known by then.
    pub(super) fn may_have(&self, agent: AgentId, session: SessionId) -> bool {
        match self {
            Self::Agent(_) | Self::Session(_) => self.has(agent, session),
            Self::Tree(_) => true,
        }
    }

    /// Returns the place of a session that was begun below the followed one.
    pub(super) fn spawned(&self, session: SessionId) -> Option<&Spawned> {
        match self {
            Self::Agent(_) | Self::Session(_) => None,
            Self::Tree(tree) => tree.spawned.get(&session),
        }
    }
}

/// Returns whether an agent begins a session, or hands work to it.
fn begins_for_another(recorded: &Recorded) -> bool {
    match &recorded.event {
        Some(Event::SessionOpened(opened)) => opened.started_by.starts_with("agent:"),
        Some(Event::InputAccepted(accepted)) => matches!(accepted.source, Source::Dispatch { .. }),
        _ => false,
    }
}

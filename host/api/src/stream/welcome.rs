//! The first frames for a client that shows a session: its state, and the questions that wait.

use super::feed::{self, Pending, Welcome};
use super::frame::{View, bytes};
use super::scope::StreamScope;
use crate::wire::{self, SessionFrame};
use broker::{Broker, SessionView, Target};
use domain::id::{AgentId, SessionId};
use domain::user::UserId;
use store::EventFilter;

/// Sessions that are looked at for questions that wait when a client comes.
const SESSIONS_ASKED_MAX: usize = 100;
/// Events of one session that are looked at, of those that came while the client came.
const EVENTS_SINCE_MAX: usize = 100;

/// A client at the moment when it comes to a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitorEntry<'a> {
    /// The broker as the client reads from it.
    pub(super) broker: &'a Broker,
    pub(super) user: &'a UserId,
    /// The events that the stream shows.
    pub(super) scope: &'a StreamScope,
    /// The position of the last event at that moment.
    pub(super) last: u64,
}

impl VisitorEntry<'_> {
    /// Returns the first frames for a client that shows a session; none of the log.
    pub(super) async fn welcome(
        self,
        view: View,
        shown: Option<&SessionView>,
    ) -> Result<Option<Welcome>, broker::Error> {
        if view == View::Log {
            return Ok(None);
        }
        let connected = match shown {
            None => SessionFrame::Connected {
                session_id: None,
                status: None,
                control_mode: None,
                pending_action: None,
            },
            Some(shown) => SessionFrame::Connected {
                session_id: Some(shown.row.id),
                status: Some(wire::phase(&shown.row)),
                control_mode: Some(wire::control_mode(&shown.row.session_type)),
                pending_action: wire::ui_state(shown).active_widget,
            },
        };
        Ok(Some(Welcome {
            connected: bytes(&connected),
            pending: self.pending().await?,
        }))
    }

    /// Returns the questions that wait in the sessions of the scope, as far as they are the user's
    /// to see.
    async fn pending(self) -> Result<Vec<Pending>, broker::Error> {
        let mut pending = Vec::new();
        let sessions = self.sessions().await?;
        for (agent, session) in sessions.into_iter().take(SESSIONS_ASKED_MAX) {
            // One that is not theirs to see asks them nothing.
            let Ok(shown) = self
                .broker
                .sessions()
                .get(self.user, &Target::Agent(agent), session, Some((1, 0)))
                .await
            else {
                continue;
            };
            pending.extend(self.questions(&shown).await?);
        }
        Ok(pending)
    }

    /// Returns the sessions of the scope in which questions may wait.
    async fn sessions(self) -> Result<Vec<(AgentId, SessionId)>, broker::Error> {
        let feeds = self.broker.feeds();
        let (session, below) = match self.scope {
            StreamScope::Agent(agent) => return feeds.running(*agent).await,
            StreamScope::Session(session) => (*session, Vec::new()),
            StreamScope::Tree(tree) => {
                (tree.session, feeds.spawned(self.user, tree.session).await?)
            }
        };
        let agent = self.broker.sessions().agent_of(session).await?;
        let own = agent.map(|agent| (agent, session));
        let below = below.into_iter().map(|session| (session.agent, session.id));
        Ok(own.into_iter().chain(below).collect())
    }

    /// Returns the questions that wait in a session since before the client came: later ones are
    /// streamed.
    async fn questions(self, shown: &SessionView) -> Result<Vec<Pending>, broker::Error> {
        let asked: Vec<_> = wire::pending_actions(shown).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let session = shown.row.id;
        let filter = EventFilter {
            session: Some(session),
            ..EventFilter::default()
        };
        let since = self
            .broker
            .feeds()
            .events(self.last, filter, EVENTS_SINCE_MAX)
            .await?;
        let before = asked
            .into_iter()
            .filter(|asked| !since.iter().any(|it| feed::asks(it, asked.tool_call_id)));
        let pending = |question| Pending { session, question };
        Ok(before.map(pending).collect())
    }
}

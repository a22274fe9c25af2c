//! The making of events for the store: ids, salts, subjects, and the cause of each.

use crate::core::fresh;
use domain::event::{Event, NewEvent, Subject};
use domain::id::{AgentId, InputId, RunId, SessionId};
use domain::time::Timestamp;

/// The properties that the events of one commit share.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) subject: Subject,
    pub(crate) actor: String,
    pub(crate) correlation: Option<InputId>,
    pub(crate) time: Timestamp,
}

impl Context {
    pub(crate) fn new(actor: impl Into<String>, time: Timestamp) -> Self {
        Self {
            subject: Subject::default(),
            actor: actor.into(),
            correlation: None,
            time,
        }
    }

    pub(crate) fn about(
        mut self,
        agent: AgentId,
        session: Option<SessionId>,
        run: Option<RunId>,
    ) -> Self {
        self.subject = Subject {
            agent: Some(agent),
            session,
            run,
        };
        self
    }

    pub(crate) fn following(mut self, input: Option<InputId>) -> Self {
        self.correlation = input;
        self
    }

    pub(crate) fn event(&self, event: Event) -> NewEvent {
        NewEvent {
            id: fresh::event(),
            event,
            subject: self.subject,
            actor: self.actor.clone(),
            causation: None,
            correlation: self.correlation,
            time: self.time,
            salt: fresh::salt(),
        }
    }

    pub(crate) fn events(&self, events: impl IntoIterator<Item = Event>) -> Vec<NewEvent> {
        events.into_iter().map(|event| self.event(event)).collect()
    }
}

//! The making of events for the store: ids, salts, subjects, and the cause of each.

use crate::fresh;
use domain::event::{Event, FileUploaded, NewEvent, RunStarted, Subject};
use domain::file::File;
use domain::id::{AgentId, InputId, RunId, SessionId};
use domain::time::Timestamp;
use domain::user::UserId;

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

    /// Creates the properties of events that a user brings about.
    pub(crate) fn by(user: &UserId, time: Timestamp) -> Self {
        Self::new(format!("user:{user}"), time)
    }

    /// Creates the properties of events that a run brings about.
    pub(crate) fn of_run(started: &RunStarted, time: Timestamp) -> Self {
        Self::new(format!("agent:{}", started.definition), time)
            .about_run(started)
            .following(started.claimed.first().copied())
    }

    pub(crate) fn about_run(self, started: &RunStarted) -> Self {
        self.about(started.agent, Some(started.session), Some(started.run))
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

/// Returns the event of a file that was handed over.
pub(crate) fn uploaded(session: SessionId, file: &File, by: &UserId, time: Timestamp) -> Event {
    Event::FileUploaded(FileUploaded {
        session,
        digest: file.digest,
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        bytes: file.bytes,
        user_id: by.clone(),
        time,
    })
}

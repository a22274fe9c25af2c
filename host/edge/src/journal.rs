//! The making of the edge's events for the store: ids, salts, actors.

use domain::digest::Salt;
use domain::event::{Event, NewEvent, Subject};
use domain::id::{EventId, TriggerEventId};
use domain::time::Timestamp;
use domain::user::UserId;
use uuid::Uuid;

/// The actor that causes an event, and the time of it.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    actor: String,
    time: Timestamp,
}

impl Context {
    /// Creates the context of events that a trigger, a connector or the host brings about.
    pub(crate) fn new(actor: impl Into<String>, time: Timestamp) -> Self {
        Self {
            actor: actor.into(),
            time,
        }
    }

    /// Creates the context of events that a user brings about.
    pub(crate) fn by(user: &UserId, time: Timestamp) -> Self {
        Self::new(format!("user:{user}"), time)
    }

    /// Returns an event for the store.
    pub(crate) fn event(&self, event: Event) -> NewEvent {
        NewEvent {
            id: EventId(Uuid::now_v7()),
            event,
            subject: Subject::default(),
            actor: self.actor.clone(),
            causation: None,
            correlation: None,
            time: self.time,
            salt: Salt(*Uuid::new_v4().as_bytes()),
        }
    }

    /// Returns events for the store.
    pub(crate) fn events(&self, events: impl IntoIterator<Item = Event>) -> Vec<NewEvent> {
        events.into_iter().map(|event| self.event(event)).collect()
    }
}

/// Returns the id of a new event of a trigger, or of an inbound message of a connector.
pub(crate) fn trigger_event() -> TriggerEventId {
    TriggerEventId(Uuid::now_v7())
}

//! An event with its stored metadata.

use super::Event;
use crate::values::digest::{Digest, Salt};
use crate::values::id::{AgentId, EventId, InputId, RunId, SessionId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The subject of an event, for filters and for visibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subject {
    /// The agent.
    pub agent: Option<AgentId>,
    /// The session.
    pub session: Option<SessionId>,
    /// The run.
    pub run: Option<RunId>,
}

/// An event that is about to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// The event itself.
    pub event: Event,
    /// The subject of the event.
    pub subject: Subject,
    /// The cause of the event: `user:<id>`, `agent:<path>`, `host`.
    pub actor: String,
    /// The event or input that caused it.
    pub causation: Option<EventId>,
    /// The id of the input that caused it. All events that follow from one input share it.
    pub correlation: Option<InputId>,
    /// Time of the event.
    pub time: Timestamp,
    /// The salt of its payload's digest.
    pub salt: Salt,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place among all events, counted from 1, without gaps, in the order of commits.
    pub position: u64,
    /// Its stream, as text.
    pub stream: String,
    /// Its place in its stream, counted from 1.
    pub version: u64,
    /// Its id.
    pub id: EventId,
    /// Its CloudEvents type.
    pub kind: String,
    /// The event itself; none if it was erased.
    pub event: Option<Event>,
    /// The subject of the event.
    pub subject: Subject,
    /// The actor that caused it.
    pub actor: String,
    /// The event or input that caused it.
    pub causation: Option<EventId>,
    /// The input from which it follows.
    pub correlation: Option<InputId>,
    /// Time of the event.
    pub time: Timestamp,
    /// Its hash, chained to the event before it.
    pub hash: Digest,
}

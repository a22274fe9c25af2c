//! An event with its stored metadata.

use super::Event;
use crate::values::digest::{Digest, Salt};
use crate::values::id::{AgentId, EventId, InputId, RunId, SessionId};
use crate::values::time::Timestamp;
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;

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

// The list of event kinds, derived from the code that reads them. There is no second list to
// maintain.

/// The current kinds, in the order of the variants of [`Event`].
#[must_use]
pub fn kinds() -> &'static [&'static str] {
    // No such kind exists: the deserializer reports the kinds that do.
    let nothing = MapDeserializer::<_, Expected>::new(std::iter::once(("type", "")));
    Event::deserialize(nothing)
        .err()
        .map_or(&[], |Expected(kinds)| kinds)
}

/// The expected kinds.
#[derive(Debug)]
struct Expected(&'static [&'static str]);

impl serde::de::Error for Expected {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

impl std::error::Error for Expected {}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }
}

#[cfg(test)]
mod kinds_tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_is_listed_once_and_has_a_version() {
        let kinds = kinds();
        assert!(kinds.len() > 20, "{kinds:?}");
        assert_eq!(
            kinds.iter().collect::<BTreeSet<_>>().len(),
            kinds.len(),
            "{kinds:?}"
        );
        for kind in kinds {
            let (name, version) = kind.rsplit_once(".v").unwrap();
            assert!(
                name.contains('.') && version.parse::<u32>().is_ok(),
                "{kind}"
            );
        }
    }
}

//! Events as rows: how they are written, read back, and what of a row its hash commits to.

use crate::fault;
use crate::sql::{Columns, Sql, unreadable};
use domain::chain::{GENESIS, Link};
use domain::digest::{Digest, Salt};
use domain::event::upcast::{NotKnown, is_retired, upcast};
use domain::event::{Event, Recorded, Subject, kinds};
use domain::id::{EventId, InputId};
use domain::time::Timestamp;
use rusqlite::Row;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The columns of [`read`], in order, for a `SELECT` on `events`.
macro_rules! event_columns {
    () => {
        "position, stream, version, id, kind, agent, session, run, actor, causation, correlation, \
         time, hash, payload"
    };
}
pub(crate) use event_columns;

/// An event as its type and its payload.
pub(crate) fn encode(event: &Event) -> Result<(String, Vec<u8>), serde_json::Error> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let text = serde_json::to_string(event)?;
    let written: Written<'_> = serde_json::from_str(&text)?;
    Ok((
        written.kind.into_owned(),
        written.data.get().as_bytes().to_vec(),
    ))
}

/// Reason why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// Its kind, or what is stored under it, is not known.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
    /// Its payload is not what its kind has.
    #[error("the payload of a `{kind}` cannot be read")]
    Payload {
        /// The kind.
        kind: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

/// The same, with where the event is.
#[derive(Debug, thiserror::Error)]
#[error("event {position} cannot be read")]
struct UnreadAt {
    position: u64,
    #[source]
    source: Unread,
}

/// An event from its type and its payload, whatever version wrote it.
pub(crate) fn decode(kind: &str, payload: &[u8]) -> Result<Event, Unread> {
    let failed = |source| Unread::Payload {
        kind: kind.to_owned(),
        source,
    };
    if is_retired(kind) {
        let (newest, payload) = upcast(kind, serde_json::from_slice(payload).map_err(failed)?)?;
        return Event::deserialize(json!({ "type": newest, "data": payload })).map_err(failed);
    }
    Event::deserialize(MapAccessDeserializer::new(Tagged {
        kind: Some(kind),
        payload,
        data: true,
    }))
    .map_err(|source| {
        if kinds().contains(&kind) {
            failed(source)
        } else {
            NotKnown::Kind {
                kind: kind.to_owned(),
            }
            .into()
        }
    })
}

/// A type and a payload, looking like the object `{"type": …, "data": …}` without being copied into
/// one.
struct Tagged<'a> {
    /// None once it was read.
    kind: Option<&'a str>,
    payload: &'a [u8],
    /// True if the payload is still to be read.
    data: bool,
}

impl<'de> MapAccess<'de> for Tagged<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let key = match (self.kind, self.data) {
            (Some(_), _) => "type",
            (None, true) => "data",
            (None, false) => return Ok(None),
        };
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        if let Some(kind) = self.kind.take() {
            return seed.deserialize(kind.into_deserializer());
        }
        self.data = false;
        let mut payload = serde_json::Deserializer::from_slice(self.payload);
        let value = seed.deserialize(&mut payload)?;
        payload.end()?;
        Ok(value)
    }
}

/// Reads the event whose kind and payload begin at a column; none when it was erased.
pub(crate) fn decode_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Event>> {
    let kind: String = row.get(column)?;
    let payload = row
        .get_ref(column + 1)?
        .as_blob_or_null()
        .map_err(|error| unreadable(column + 1, error))?;
    payload
        .map(|payload| decode(&kind, payload))
        .transpose()
        .map_err(|error| unreadable(column + 1, error))
}

/// Reads a row of [`event_columns`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let kind: String = row.get(4)?;
    let payload = row
        .get_ref(13)?
        .as_blob_or_null()
        .map_err(|error| unreadable(13, error))?;
    let position = row.uint(0)?;
    if let Some(payload) = payload {
        fault::read(payload);
    }
    let event = payload
        .map(|payload| decode(&kind, payload))
        .transpose()
        .map_err(|source| unreadable(13, UnreadAt { position, source }))?;
    Ok(Recorded {
        position,
        stream: row.get(1)?,
        version: row.uint(2)?,
        id: row.id(3)?,
        kind,
        event,
        subject: Subject {
            agent: row.id_opt(5)?,
            session: row.id_opt(6)?,
            run: row.id_opt(7)?,
        },
        actor: row.get(8)?,
        causation: row.id_opt::<EventId>(9)?,
        correlation: row.id_opt::<InputId>(10)?,
        time: Timestamp(row.uint(11)?),
        hash: row.digest(12)?,
    })
}

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last event's position; 0 before the first.
    pub(crate) position: u64,
    /// The last event's hash.
    pub(crate) hash: Digest,
}

impl Head {
    /// Reads the event that was stored last.
    pub(crate) fn read(sql: &Sql<'_>) -> rusqlite::Result<Self> {
        let recorded = sql.row("SELECT position, hash FROM head WHERE id = 1", [], |row| {
            Ok(Self {
                position: row.uint(0)?,
                hash: row.digest(1)?,
            })
        })?;
        Ok(recorded.unwrap_or(Self {
            position: 0,
            hash: GENESIS,
        }))
    }
}

/// The columns of [`RawEvent::read`], in order.
pub(crate) const RAW_EVENTS_AFTER: &str = "SELECT position, stream, version, id, kind, agent, \
                                           session, run, actor, causation, \
     correlation, time, hash, payload, salt, payload_digest FROM events WHERE position > ?1 ORDER \
     BY position LIMIT ?2";

/// A row as it stands, for checking it: nothing in it is believed.
#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) position: u64,
    pub(crate) stream: String,
    pub(crate) version: u64,
    pub(crate) kind: String,
    pub(crate) hash: Option<Digest>,
    pub(crate) payload: Option<Vec<u8>>,
    salt: Option<Salt>,
    payload_digest: Option<Digest>,
    id: String,
    subject: [Option<String>; 3],
    actor: String,
    causation: Option<String>,
    correlation: Option<String>,
    time: u64,
}

impl RawEvent {
    /// Reads a row of [`RAW_EVENTS_AFTER`].
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let bytes = |column| {
            row.get_ref(column)?
                .as_blob_or_null()
                .map_err(|error| unreadable(column, error))
        };
        Ok(Self {
            position: row.uint(0)?,
            stream: row.get(1)?,
            version: row.uint(2)?,
            id: row.get(3)?,
            kind: row.get(4)?,
            subject: [row.get(5)?, row.get(6)?, row.get(7)?],
            actor: row.get(8)?,
            causation: row.get(9)?,
            correlation: row.get(10)?,
            time: row.uint(11)?,
            hash: bytes(12)?.and_then(|hash| hash.try_into().ok()).map(Digest),
            payload: bytes(13)?.map(<[u8]>::to_vec),
            salt: bytes(14)?.and_then(|salt| salt.try_into().ok()).map(Salt),
            payload_digest: bytes(15)?
                .and_then(|digest| digest.try_into().ok())
                .map(Digest),
        })
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp(self.time)
    }

    /// Returns whether the payload matches the recorded digest; none when the payload was erased.
    pub(crate) fn payload_intact(&self) -> Option<bool> {
        match (&self.payload, self.salt) {
            (Some(payload), Some(salt)) => Some(self.payload_digest == Some(salt.digest(payload))),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => Some(false),
        }
    }

    /// The hash that follows from the row and the hash before it.
    pub(crate) fn follows(&self, previous: Digest) -> Option<Digest> {
        let [agent, session, run] = &self.subject;
        let link = Link {
            previous,
            position: self.position,
            stream: &self.stream,
            version: self.version,
            id: &self.id,
            kind: &self.kind,
            actor: &self.actor,
            time: self.time,
            causation: self.causation.as_deref().unwrap_or_default(),
            correlation: self.correlation.as_deref().unwrap_or_default(),
            subject: [
                agent.as_deref().unwrap_or_default(),
                session.as_deref().unwrap_or_default(),
                run.as_deref().unwrap_or_default(),
            ],
            payload: self.payload_digest?,
        };
        Some(link.hash())
    }
}

#[cfg(test)]
mod tests {
    use super::{Unread, decode};

    #[test]
    fn what_cannot_be_read_says_whether_a_newer_version_wrote_it() {
        let newer = decode("run.started.v9", b"{}").unwrap_err();
        assert!(
            matches!(newer, Unread::NotKnown(_)) && newer.to_string().contains("newer version"),
            "{newer}"
        );
        let damaged = decode("run.started.v1", b"{}").unwrap_err();
        assert!(matches!(damaged, Unread::Payload { .. }), "{damaged}");
    }
}

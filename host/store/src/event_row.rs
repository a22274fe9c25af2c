//! Events as rows: how they are written and read back, and the part of a row that its hash commits
//! to.

use crate::fault;
use crate::projections::scope_name;
use crate::sql::{self, Args, Cells, FromRow, Sql, args, row, select, text, unreadable};
use crate::streams::Named;
use crate::texts;
use domain::chain::{GENESIS, Link};
use domain::digest::{Digest, Salt};
use domain::event::upcast::{NotKnown, is_retired, upcast};
use domain::event::{Event, Recorded, Subject, kinds};
use domain::time::Timestamp;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use uuid::Uuid;

/// The columns of a [`Recorded`], for a `SELECT` on [`EVENTS`].
pub(crate) const EVENT_COLUMNS: &str = "position, own.stream_kind, own.stream_id, version, id, \
                                        kind, of_agent.stream_id AS agent, of_session.stream_id \
                                        AS session, of_run.stream_id AS run, actor, causation, \
                                        correlation, time, hash, payload";

/// The events joined with the streams that they name. The join takes a fifth of the time of a
/// separate lookup for each event.
pub(crate) const EVENTS: &str = "events LEFT JOIN streams own ON own.number = stream LEFT JOIN \
                                 streams of_agent ON of_agent.number = agent LEFT JOIN streams \
                                 of_session ON of_session.number = session LEFT JOIN streams \
                                 of_run ON of_run.number = run";

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

/// Returns the subject of an event, for the kinds that are searched by subject.
pub(crate) fn about(event: &Event) -> Option<String> {
    use Event as E;
    Some(match event {
        E::ComponentAdmitted(it) => it.component.clone(),
        E::DefinitionMade(it) => it.definition.0.clone(),
        E::TurnsImported(it) => it.erased?.to_string(),
        E::KeyValueWritten(it) => format!("{}/{}", scope_name(it.place.scope), it.place.of),
        E::TriggerEventAccepted(it) => it.trigger_event.to_string(),
        E::TriggerEventFailed(it) => it.trigger_event.to_string(),
        E::TriggerFired(it) => it.trigger_event.to_string(),
        E::TriggerPosted(it) => it.trigger_event.to_string(),
        E::OutboundMessageQueued(it) => it.outbound_message.to_string(),
        E::OutboundMessageStarted(it) => it.outbound_message.to_string(),
        E::OutboundMessageSettled(it) => it.outbound_message.to_string(),
        E::OutboundMessageRequeued(it) => it.outbound_message.to_string(),
        E::SlotTaken(it) => it.session_id.to_string(),
        E::SlotCompleted(it) => it.session_id.to_string(),
        E::SlotTerminated(it) => it.session_id.to_string(),
        E::ExecutionSuspended(it) => it.session_id.to_string(),
        E::ExecutionResumed(it) => it.session_id.to_string(),
        E::ActionRequested(it) => it.session_id.to_string(),
        E::ResponseReceived(it) => it.session_id.to_string(),
        E::ActionWithdrawn(it) => it.session_id.to_string(),
        E::SessionImported(it) => it.session.session_id.to_string(),
        E::NoteRemembered(it) => it.session.to_string(),
        E::NoteForgotten(it) => it.session.to_string(),
        _ => return None,
    })
}

/// Reason why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// Its kind, or the type of its payload, is unknown.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
    /// Its payload does not match its kind.
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

/// The event that a row points to, `e` in its statement; none if it was erased or does not exist.
pub(crate) struct StoredEvent(pub(crate) Option<Event>);

impl StoredEvent {
    pub(crate) const COLUMNS: &str = "e.kind, e.payload";

    /// Returns the content of the event if it is of the expected kind; none if there is no event.
    pub(crate) fn only<T>(
        self,
        read: impl FnOnce(Event) -> Option<T>,
        otherwise: &'static str,
    ) -> sql::Result<Option<T>> {
        let said = self.0.map(|event| read(event).ok_or(otherwise));
        said.transpose()
            .map_err(|otherwise| unreadable("kind", otherwise))
    }
}

impl FromRow for StoredEvent {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let kind: Option<String> = cells.next("kind")?;
        let event = match (kind, cells.next_bytes("payload")?) {
            (Some(kind), Some(payload)) => Some(decode(&kind, &texts::whole(cells.sql, &payload)?)),
            (Some(_) | None, _) => None,
        };
        let event = event.transpose();
        Ok(Self(event.map_err(|error| unreadable("payload", error))?))
    }
}

/// Reads the event that a statement joins, by its kind and payload; none if it does not exist or
/// was erased.
pub(crate) fn event(
    sql: &Sql<'_>,
    text: &'static str,
    args: impl Args,
) -> sql::Result<Option<Event>> {
    let stored: Option<StoredEvent> = sql.one(text, args)?;
    Ok(stored.and_then(|stored| stored.0))
}

impl FromRow for Recorded {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let mut recorded = Self {
            position: cells.next("position")?,
            stream: Named::read(cells)?
                .0
                .ok_or_else(|| unreadable("stream", "there is no such stream"))?,
            version: cells.next("version")?,
            id: cells.next("id")?,
            kind: cells.next("kind")?,
            event: None,
            subject: Subject {
                agent: cells.next("agent")?,
                session: cells.next("session")?,
                run: cells.next("run")?,
            },
            actor: cells.next("actor")?,
            causation: cells.next("causation")?,
            correlation: cells.next("correlation")?,
            time: cells.next("time")?,
            hash: cells.next("hash")?,
        };
        if let Some(payload) = cells.next_bytes("payload")? {
            let payload = texts::whole(cells.sql, &payload)?;
            fault::read(&payload);
            let position = recorded.position;
            let event = decode(&recorded.kind, &payload)
                .map_err(|source| unreadable("payload", UnreadAt { position, source }))?;
            recorded.event = Some(event);
        }
        Ok(recorded)
    }
}

/// Erases the payload and the salt of an event; the digest of both stays, for the chain. Returns
/// whether there were any.
pub(crate) fn erase(sql: &Sql<'_>, position: u64) -> sql::Result<bool> {
    let stored = "SELECT salt, payload FROM events WHERE position = ?1 AND payload IS NOT NULL";
    let Some((salt, payload)) = sql.one::<(Vec<u8>, Vec<u8>)>(stored, [position])? else {
        return Ok(false);
    };
    let salt = of_length(Some(salt.into()))
        .map(Salt)
        .ok_or_else(|| unreadable("salt", "its length is wrong"))?;
    texts::release(sql, &payload)?;
    let text = "UPDATE events SET payload = NULL, salt = NULL, about = NULL, bytes = 0, \
                payload_digest = ?2 WHERE position = ?1";
    sql.write(text, args![position, salt.digest(&payload)])?;
    Ok(true)
}

row! {
    /// The end of the chain.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Head from "head" {
        /// The last event's position; 0 before the first.
        pub(crate) position: u64,
        /// The last event's hash.
        pub(crate) hash: Digest,
    }
}

impl Head {
    /// Reads the event that was stored last.
    pub(crate) fn stored(sql: &Sql<'_>) -> sql::Result<Self> {
        let recorded = sql.one(select!(Head, "WHERE id = 1"), [])?;
        Ok(recorded.unwrap_or(Self {
            position: 0,
            hash: GENESIS,
        }))
    }
}

/// A row as it is stored, for checking: none of its values is trusted.
#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) position: u64,
    /// The number of its stream.
    pub(crate) stream: i64,
    pub(crate) version: u64,
    pub(crate) kind: String,
    pub(crate) hash: Option<Digest>,
    pub(crate) payload: Option<Vec<u8>>,
    stream_name: Option<String>,
    salt: Option<Salt>,
    /// The digest of the erased payload.
    payload_digest: Option<Digest>,
    id: Option<Uuid>,
    subject: [Option<Uuid>; 3],
    actor: String,
    causation: Option<Uuid>,
    correlation: Option<Uuid>,
    time: u64,
}

impl FromRow for RawEvent {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            position: cells.next("position")?,
            stream_name: Named::read(cells)?.0,
            version: cells.next("version")?,
            id: id(cells, "id")?,
            kind: cells.next("kind")?,
            subject: [
                id(cells, "agent")?,
                id(cells, "session")?,
                id(cells, "run")?,
            ],
            actor: cells.next("actor")?,
            causation: id(cells, "causation")?,
            correlation: id(cells, "correlation")?,
            time: cells.next("time")?,
            hash: of_length(cells.next_bytes("hash")?).map(Digest),
            payload: cells.next_bytes("payload")?.map(Cow::into_owned),
            salt: of_length(cells.next_bytes("salt")?).map(Salt),
            payload_digest: of_length(cells.next_bytes("payload_digest")?).map(Digest),
            stream: cells.next("stream")?,
        })
    }
}

/// Reads the next column as an id; none if its length is not that of an id.
fn id(cells: &mut Cells<'_, '_>, name: &'static str) -> sql::Result<Option<Uuid>> {
    Ok(of_length(cells.next_bytes(name)?).map(Uuid::from_bytes))
}

/// Returns bytes if they are as many as they have to be.
fn of_length<const N: usize>(bytes: Option<Cow<'_, [u8]>>) -> Option<[u8; N]> {
    (*bytes?).try_into().ok()
}

impl RawEvent {
    /// The statement for events after the position `?1`, at most `?2`.
    pub(crate) const AFTER: &str = text!(
        "SELECT ",
        EVENT_COLUMNS,
        ", salt, payload_digest, stream FROM ",
        EVENTS,
        " WHERE position > ?1 ORDER BY position LIMIT ?2"
    );

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp(self.time)
    }

    /// The hash that follows from the row and the hash before it. The payload's digest is stored
    /// only once the payload is erased.
    pub(crate) fn follows(&self, previous: Digest) -> Option<Digest> {
        let text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let payload = match (&self.payload, self.salt) {
            (Some(payload), Some(salt)) => salt.digest(payload),
            (None, None) => self.payload_digest?,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let [agent, session, run] = self.subject.map(text);
        let link = Link {
            previous,
            position: self.position,
            stream: self.stream_name.as_deref().unwrap_or_default(),
            version: self.version,
            id: &text(self.id),
            kind: &self.kind,
            actor: &self.actor,
            time: self.time,
            causation: &text(self.causation),
            correlation: &text(self.correlation),
            subject: [&agent, &session, &run],
            payload,
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

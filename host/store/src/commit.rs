//! Requests to the store's writer, and their possible outcomes.

use crate::api_key::api_key_here;
use crate::event_row::{self, about};
use crate::guard::Guard;
use crate::payload::Payload;
use crate::read::ReadError;
use crate::sql::Source;
use domain::chain::GENESIS;
use domain::digest::{Digest, Salt};
use domain::event::{NewEvent, Recorded};
use domain::id::{SessionId, Stream};
use domain::json::{self, STORED_DEPTH_MAX};
use domain::key::KeyId;
use serde::ser::Error as _;
use std::fmt;

/// A set of changes that are stored together or not at all.
///
/// Its guards see the store as it was before its own events. Then the events are appended in order,
/// and every projection sees each event after the ones before it. Everything that it stores of a
/// user is charged to the API key of the committing task ([`crate::under_api_key`]).
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// Events, stream by stream.
    pub appends: Vec<Append>,
    /// Conditions that must hold.
    pub guards: Vec<Guard>,
    /// Content that its events name by digest. The digests are computed before the commit is
    /// queued.
    pub blobs: Vec<Vec<u8>>,
    /// Idempotency key that makes a repetition of the same request harmless.
    pub key: Option<Key>,
    /// Folds worth keeping.
    pub snapshots: Vec<(Stream, Snapshot)>,
}

impl Commit {
    /// An empty commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds events for a stream.
    #[must_use]
    pub fn append(mut self, stream: Stream, expected: Expected, events: Vec<NewEvent>) -> Self {
        self.appends.push(Append {
            stream,
            expected,
            events,
        });
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn guard(mut self, guard: impl Into<Guard>) -> Self {
        self.guards.push(guard.into());
        self
    }

    /// Adds conditions.
    #[must_use]
    pub fn guards(mut self, guards: impl IntoIterator<Item = Guard>) -> Self {
        self.guards.extend(guards);
        self
    }

    /// Adds content.
    #[must_use]
    pub fn blob(mut self, bytes: Vec<u8>) -> Self {
        self.blobs.push(bytes);
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a snapshot of a stream.
    #[must_use]
    pub fn snapshot(mut self, stream: Stream, snapshot: Snapshot) -> Self {
        self.snapshots.push((stream, snapshot));
        self
    }
}

/// Events for one stream.
#[derive(Debug, Clone)]
pub struct Append {
    /// The stream.
    pub stream: Stream,
    /// The expected version of the stream.
    pub expected: Expected,
    /// The events, in order.
    pub events: Vec<NewEvent>,
}

/// Version at which a stream must be for an append to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any version.
    Any,
    /// No version: the stream has no events yet.
    New,
    /// Its last event has this version.
    Version(u64),
}

/// Idempotency key of a request, remembered for seven days ([`domain::limits::IDEMPOTENCY_MS`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The requester.
    pub source: String,
    /// The name that they gave the request.
    pub key: String,
    /// The digest of the request: another request under the same name is refused.
    pub request: Digest,
    /// The reply to a repetition of the same request.
    pub reply: Vec<u8>,
    /// The session that the request concerns; the record is deleted with that session. By default
    /// it is the session of the commit's first event, or its agent.
    pub about: Option<SessionId>,
}

/// The fold of a stream up to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the last event in it.
    pub version: u64,
    /// The layout of the state.
    pub format: u32,
    /// The state.
    pub state: Vec<u8>,
}

/// The result of a commit that landed. It is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The position of its first event.
    pub first_position: u64,
    /// The position of its last event. Without events, it is one less than the position of the next
    /// event.
    pub last_position: u64,
    /// The version of each of its streams afterwards, each stream once, in the order of its
    /// appends.
    pub versions: Vec<(Stream, u64)>,
    /// True if the commit accepted inputs and all of them can wait for an open run without a
    /// notification. That run takes them in at its end or after another step: its driver checks for
    /// them then.
    pub waits_unheard: bool,
}

/// Reason why a commit did not land. Nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Something was not as the commit expected: load again and decide again.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// The same request landed before.
    #[error("the same request was committed before")]
    Replayed {
        /// The reply that was given the first time.
        reply: Vec<u8>,
    },
    /// Another request landed under this idempotency key.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
    /// Too many commits wait. Try again shortly.
    #[error("too many commits are waiting")]
    Busy,
    /// The disk is full. Reads still work. Commits are accepted again as soon as there is space.
    #[error("no space is left to store anything")]
    Full,
    /// The database did not accept it, and may accept it later.
    #[error("the store is not available")]
    Unavailable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// Something in it can be stored neither now nor later: an event that is nested too deep, or is
    /// too large, or over which the writer panics.
    #[error("this can never be stored")]
    Unstorable {
        /// The part that cannot be stored, and the cause.
        #[source]
        source: Source,
    },
    /// Stored data that the commit depends on is not in the expected form: a newer version wrote
    /// it, or it was damaged. A retry fails until the data is repaired.
    #[error("something stored that this rests on does not read as what it should be")]
    Unreadable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Conversion for a transaction that is not attempted because a read before it failed.
impl From<ReadError> for CommitError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Busy | ReadError::InTheWay => Self::Busy,
            ReadError::Closed => Self::Closed,
            ReadError::Unavailable { source } => Self::Unavailable { source },
            ReadError::Unreadable { source } => Self::Unreadable { source },
            error @ ReadError::Missing { .. } => Self::Unreadable {
                source: error.into(),
            },
        }
    }
}

/// A condition that did not hold as a commit expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The part of the commit that did not hold.
    pub clash: Clash,
    /// Human-readable description of the actual state.
    pub detail: String,
}

/// The part of a commit that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// The stream was not at the expected version.
    Stream(Stream),
    /// This guard.
    Guard(Guard),
    /// One of its events contradicts stored data, such as a second agent at a path: a guard is
    /// missing.
    Row,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.clash {
            Clash::Stream(stream) => write!(f, "{stream}: {}", self.detail),
            Clash::Guard(guard) => write!(f, "{guard:?}: {}", self.detail),
            Clash::Row => f.write_str(&self.detail),
        }
    }
}

/// A commit that is ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) appends: Vec<PreparedAppend>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) blobs: Vec<(Digest, Vec<u8>)>,
    pub(crate) key: Option<Key>,
    pub(crate) snapshots: Vec<(Stream, Snapshot)>,
    /// The API key that its bytes are charged to.
    pub(crate) api_key: Option<KeyId>,
    /// Number of events in it.
    pub(crate) events: usize,
    /// Approximate number of bytes that it adds to the database.
    pub(crate) bytes: usize,
}

/// Events for one stream, ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedAppend {
    pub(crate) stream: Stream,
    pub(crate) expected: Expected,
    pub(crate) events: Vec<PreparedEvent>,
}

/// One event, ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedEvent {
    /// The event as it is recorded. The writer sets its position, its version and its hash.
    pub(crate) recorded: Recorded,
    /// Its ids as its hash has them.
    pub(crate) ids: Ids,
    pub(crate) salt: Salt,
    pub(crate) payload: Payload,
    pub(crate) payload_digest: Digest,
    /// Bytes of the payload as JSON.
    pub(crate) bytes: usize,
    /// See [`about`].
    pub(crate) about: Option<String>,
}

/// The ids of an event as text.
#[derive(Debug)]
pub(crate) struct Ids {
    pub(crate) event: String,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) causation: Option<String>,
    pub(crate) correlation: Option<String>,
}

impl Ids {
    fn from_event(new: &NewEvent) -> Self {
        Self {
            event: new.id.to_string(),
            agent: new.subject.agent.map(|id| id.to_string()),
            session: new.subject.session.map(|id| id.to_string()),
            run: new.subject.run.map(|id| id.to_string()),
            causation: new.causation.map(|id| id.to_string()),
            correlation: new.correlation.map(|id| id.to_string()),
        }
    }
}

/// Maximum size of one event's payload, in bytes. A larger payload would be read, and sent to
/// followers, as one chunk.
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 20;
/// Approximate size of an event without its payload, in bytes.
const EVENT_OVERHEAD_BYTES: usize = 512;

impl Commit {
    /// Serialises and digests it, as is done on the caller's side before it is queued. Returns the
    /// approximate number of bytes that it would add to the database. For measurements: nothing is
    /// stored.
    ///
    /// # Errors
    /// [`CommitError::Unstorable`], as [`crate::Store::commit`] would refuse it.
    pub fn encoded_bytes(self) -> Result<usize, CommitError> {
        match Prepared::new(self) {
            Ok(prepared) => Ok(prepared.bytes),
            Err(error) => Err(CommitError::Unstorable {
                source: error.into(),
            }),
        }
    }
}

impl Prepared {
    /// Serialises and digests. Fails for an event that could not be written or read back: every
    /// retry of the same commit fails too.
    pub(crate) fn new(commit: Commit) -> Result<Self, serde_json::Error> {
        let Commit {
            appends,
            guards,
            blobs,
            key,
            snapshots,
        } = commit;
        let mut events = 0;
        let mut bytes = 0;
        let mut ready = Vec::with_capacity(appends.len());
        for append in appends {
            let name = append.stream.to_string();
            let prepared: Vec<PreparedEvent> = append
                .events
                .into_iter()
                .map(|new| prepare(new, &name))
                .collect::<Result<_, _>>()?;
            events += prepared.len();
            bytes += prepared
                .iter()
                .map(|event| event.bytes + EVENT_OVERHEAD_BYTES)
                .sum::<usize>();
            ready.push(PreparedAppend {
                stream: append.stream,
                expected: append.expected,
                events: prepared,
            });
        }
        let blobs: Vec<(Digest, Vec<u8>)> = blobs
            .into_iter()
            .map(|blob| (Digest::of(&blob), blob))
            .collect();
        bytes += blobs.iter().map(|(_, blob)| blob.len()).sum::<usize>();
        bytes += key.as_ref().map_or(0, |key| key.reply.len());
        bytes += snapshots
            .iter()
            .map(|(_, snapshot)| snapshot.state.len())
            .sum::<usize>();
        Ok(Self {
            appends: ready,
            guards,
            blobs,
            key,
            snapshots,
            api_key: api_key_here(),
            events,
            bytes,
        })
    }
}

fn prepare(new: NewEvent, stream: &str) -> Result<PreparedEvent, serde_json::Error> {
    let (kind, payload) = event_row::encode(&new.event)?;
    // Whatever is stored can be read again.
    if json::depth(&payload) > STORED_DEPTH_MAX {
        return Err(serde_json::Error::custom(format!(
            "it is nested deeper than {STORED_DEPTH_MAX} levels, and could not be read again"
        )));
    }
    if payload.len() > EVENT_BYTES_MAX {
        return Err(serde_json::Error::custom(format!(
            "an event has {} bytes; {EVENT_BYTES_MAX} at most",
            payload.len()
        )));
    }
    if crate::fault::is_unstorable(&payload) {
        return Err(serde_json::Error::custom("a test wants it so"));
    }
    let bytes = payload.len();
    let payload = Payload::of(&payload);
    let payload_digest = new.salt.digest(&payload.packed);
    let about = about(&new.event);
    let ids = Ids::from_event(&new);
    let salt = new.salt;
    let recorded = Recorded {
        position: 0,
        stream: stream.to_owned(),
        version: 0,
        id: new.id,
        kind,
        event: Some(new.event),
        subject: new.subject,
        actor: new.actor,
        causation: new.causation,
        correlation: new.correlation,
        time: new.time,
        hash: GENESIS,
    };
    Ok(PreparedEvent {
        recorded,
        ids,
        salt,
        payload,
        payload_digest,
        bytes,
        about,
    })
}

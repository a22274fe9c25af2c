//! A commit made ready on its caller's side: serialised and digested, so that the one writer only
//! has to insert it.

use crate::api_key::api_key_here;
use crate::commit::{Commit, CommitError, Expected, Key, Snapshot};
use crate::event_row::{self, about};
use crate::guard::Guard;
use crate::payload::Payload;
use domain::chain::GENESIS;
use domain::digest::{Digest, Salt};
use domain::event::{NewEvent, Recorded};
use domain::id::Stream;
use domain::json::{self, STORED_DEPTH_MAX};
use domain::key::KeyId;
use serde::ser::Error as _;

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

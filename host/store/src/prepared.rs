//! A commit made ready on its caller's side: serialised and digested, so that the one writer only has to insert it.

use crate::commit::{Commit, Expected, Guard, Key, Snapshot};
use crate::event_row;
use domain::digest::Digest;
use domain::event::NewEvent;
use domain::id::Stream;
use domain::json::{self, STORED_DEPTH_MAX};
use serde::ser::Error as _;

/// A commit that is ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) appends: Vec<PreparedAppend>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) blobs: Vec<(Digest, Vec<u8>)>,
    pub(crate) key: Option<Key>,
    pub(crate) snapshots: Vec<(Stream, Snapshot)>,
    /// How many events it has.
    pub(crate) events: usize,
    /// How much it adds to the database, roughly.
    pub(crate) bytes: usize,
}

/// Events for one stream, ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedAppend {
    pub(crate) stream: Stream,
    /// The stream as text.
    pub(crate) name: String,
    pub(crate) expected: Expected,
    pub(crate) events: Vec<PreparedEvent>,
}

/// One event, ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedEvent {
    pub(crate) new: NewEvent,
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) payload_digest: Digest,
}

/// Bytes of one event's payload. What is larger would be read, and sent to whoever follows, as one piece.
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 20;
/// What an event takes beside its payload, roughly, in bytes.
const EVENT_OVERHEAD_BYTES: usize = 512;

impl Prepared {
    /// Serialises and digests. Fails for an event that could not be written, or not be read again: the same commit fails whenever it is tried.
    pub(crate) fn new(commit: Commit) -> Result<Self, serde_json::Error> {
        let Commit { appends, guards, blobs, key, snapshots } = commit;
        let (mut events, mut bytes) = (0, 0);
        let mut ready = Vec::with_capacity(appends.len());
        for append in appends {
            let prepared: Vec<PreparedEvent> = append.events.into_iter().map(prepare).collect::<Result<_, _>>()?;
            events += prepared.len();
            bytes += prepared.iter().map(|event| event.payload.len() + EVENT_OVERHEAD_BYTES).sum::<usize>();
            ready.push(PreparedAppend {
                stream: append.stream,
                name: append.stream.to_string(),
                expected: append.expected,
                events: prepared,
            });
        }
        let blobs: Vec<(Digest, Vec<u8>)> = blobs.into_iter().map(|blob| (Digest::of(&blob), blob)).collect();
        bytes += blobs.iter().map(|(_, blob)| blob.len()).sum::<usize>();
        bytes += key.as_ref().map_or(0, |key| key.reply.len());
        bytes += snapshots.iter().map(|(_, snapshot)| snapshot.state.len()).sum::<usize>();
        Ok(Self { appends: ready, guards, blobs, key, snapshots, events, bytes })
    }
}

fn prepare(new: NewEvent) -> Result<PreparedEvent, serde_json::Error> {
    let (kind, payload) = event_row::encode(&new.event)?;
    // Whatever is stored can be read again.
    if json::depth(&payload) > STORED_DEPTH_MAX {
        let told = format!("it is nested deeper than {STORED_DEPTH_MAX} levels, and could not be read again");
        return Err(serde_json::Error::custom(told));
    }
    if payload.len() > EVENT_BYTES_MAX {
        return Err(serde_json::Error::custom(format!("an event has {} bytes; {EVENT_BYTES_MAX} at most", payload.len())));
    }
    if crate::fault::is_unstorable(&payload) {
        return Err(serde_json::Error::custom("a test wants it so"));
    }
    let payload_digest = new.salt.digest(&payload);
    Ok(PreparedEvent { new, kind, payload, payload_digest })
}

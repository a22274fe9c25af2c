//! The hash chain over all events: changing, dropping or reordering one breaks every hash after it.

use crate::values::digest::Digest;

/// The parts of an event that its hash commits to. The payload enters as its salted digest: it can
/// be erased and the chain still verifies.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// The hash of the event before; 32 zero bytes before the first.
    pub previous: Digest,
    /// The event's place among all events.
    pub position: u64,
    /// Its stream.
    pub stream: &'a str,
    /// Its place in its stream.
    pub version: u64,
    /// Its id.
    pub id: &'a str,
    /// Its CloudEvents type.
    pub kind: &'a str,
    /// The actor that caused it.
    pub actor: &'a str,
    /// The time at which it happened, in milliseconds.
    pub time: u64,
    /// The id of the event or input that caused it; empty for none.
    pub causation: &'a str,
    /// The id of its original input; empty for none.
    pub correlation: &'a str,
    /// Its subject: agent, session and run, each empty for none.
    pub subject: [&'a str; 3],
    /// The salted digest of its payload.
    pub payload: Digest,
}

/// The hash before the first event.
pub const GENESIS: Digest = Digest([0; 32]);

impl Link<'_> {
    /// The event's hash.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let [agent, session, run] = self.subject;
        Digest::of_parts(&[
            b"event",
            &self.previous.0,
            &self.position.to_be_bytes(),
            self.stream.as_bytes(),
            &self.version.to_be_bytes(),
            self.id.as_bytes(),
            self.kind.as_bytes(),
            self.actor.as_bytes(),
            &self.time.to_be_bytes(),
            self.causation.as_bytes(),
            self.correlation.as_bytes(),
            agent.as_bytes(),
            session.as_bytes(),
            run.as_bytes(),
            &self.payload.0,
        ])
    }
}

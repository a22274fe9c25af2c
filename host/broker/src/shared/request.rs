//! A request under its user's idempotency key, as its effect is committed with it.

use domain::digest::Digest;
use domain::id::{RunId, SessionId};
use serde::{Deserialize, Serialize};
use store::Key;

/// A request with a key.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) source: String,
    pub(crate) key: String,
    pub(crate) digest: Digest,
    pub(crate) about: Option<SessionId>,
}

impl Request {
    /// Returns the key for the commit of the request's effect. A repetition is answered with
    /// `reply`.
    pub(crate) fn answered(&self, reply: &impl Serialize) -> Key {
        Key {
            source: self.source.clone(),
            key: self.key.clone(),
            request: self.digest,
            reply: serde_json::to_vec(reply).unwrap_or_default(),
            about: self.about,
        }
    }
}

/// The place where an answer is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerAt {
    pub(crate) run: RunId,
    /// The version of its event in the run's stream.
    pub(crate) version: u64,
}

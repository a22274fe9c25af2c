//! Things given with words that a trigger or a connector brings: their source, their origin, the
//! mark *untrusted*, and a session of their own.

use super::Request;
use domain::digest::Digest;
use domain::event::Source;
use domain::message::{Draft, Part, Role};
use domain::queue;
use domain::speaker::Speaker;
use domain::user::UserId;
use std::borrow::Cow;

/// The origin of words of a caller of the API.
const API: &str = "api";
/// Maximum bytes of an idempotency key that is stored verbatim. A longer one is replaced by its
/// digest.
const KEY_BYTES_MAX: usize = 255;

/// The provenance of words that no caller of the API said.
#[derive(Debug, Clone)]
pub struct Arriving {
    /// The source that their input has: a trigger or a connector.
    pub source: Source,
    /// The origin that their message has: `trigger:<name>` or `connector:<name>`. Idempotency keys
    /// of different origins are independent.
    pub origin: String,
    /// True if they depend on content from outside, and are not the user's own.
    pub untrusted: bool,
    /// The author of the words; none if their origin identifies the author.
    pub speaker: Option<Speaker>,
    /// True if the replies to them are sent to no chat. They get a turn of their own, and are never
    /// joined with messages whose replies are sent.
    pub unheard: bool,
    /// The session that is begun for them alone; none when they go to their address.
    pub isolated: Option<Isolated>,
}

/// A session that is begun for words alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolated {
    /// Its label.
    pub name: Option<String>,
}

impl Arriving {
    /// Returns whether a directive of the queue among them is followed: only a user's own words
    /// change settings, and never the text that a trigger made.
    pub(super) fn may_direct(&self) -> bool {
        !self.untrusted && matches!(self.source, Source::Connector { .. })
    }

    /// Describes the request under its key. Words are accepted once under one key, whatever their
    /// content.
    pub(super) fn request(&self, key: &str) -> Request {
        let digest = Digest::of(key.as_bytes());
        let key = match key.len() {
            0..=KEY_BYTES_MAX => key.to_owned(),
            _ => digest.hex(),
        };
        Request {
            source: self.origin.clone(),
            key,
            digest,
            about: None,
        }
    }
}

/// Returns the source of an input.
pub(super) fn source(arriving: Option<&Arriving>) -> Source {
    arriving.map_or(Source::Api, |arriving| arriving.source.clone())
}

/// Returns the message of an input that was received for a user.
pub(super) fn draft(arriving: Option<&Arriving>, user: &UserId, content: Vec<Part>) -> Draft {
    let of_user = || Speaker::User {
        user_id: user.clone(),
    };
    Draft {
        role: Role::User,
        parts: content,
        origin: arriving.map_or_else(|| API.to_owned(), |arriving| arriving.origin.clone()),
        untrusted: arriving.is_some_and(|arriving| arriving.untrusted),
        speaker: arriving.map_or_else(|| Some(of_user()), |arriving| arriving.speaker.clone()),
        answers: None,
    }
}

/// Returns the text of the line that stays of words if they are dropped.
pub(super) fn line<'a>(arriving: Option<&Arriving>, text: &'a str) -> Cow<'a, str> {
    let speaker = arriving.and_then(|arriving| arriving.speaker.as_ref());
    let untrusted = arriving.is_some_and(|arriving| arriving.untrusted);
    queue::line(speaker, untrusted, text)
}

/// Returns who began a session for its first words: whatever brought them, for a session of their
/// own.
pub(super) fn started_by(arriving: Option<&Arriving>, user: &UserId) -> String {
    match arriving.filter(|arriving| arriving.isolated.is_some()) {
        Some(arriving) => arriving.origin.clone(),
        None => format!("user:{user}"),
    }
}

//! Import of sessions from the system that this one replaces: one agent for each user and session
//! type.
//!
//! The document is `{"format": "agent-host.sessions/1", "sessions": [...]}`; a session has the
//! fields of the design's `Session.to_dict` and a `user_id`. Other fields are ignored, so that an
//! export of the old system is accepted unchanged. A document is accepted or refused as a whole,
//! with the place of the first fault. `docs/old-sessions.md` describes the fate of each field. This
//! module never reads the host's configuration.
//!
//! This module can be removed: delete this file and `import/` (970 lines, and 520 of tests), its
//! callers (`command/import.rs` of the broker and of the program, `routes/import.rs` of the API:
//! 670), and the transition `agent/import_session.rs`. The event stays, for sessions that were
//! imported.

mod fields;
mod item;
mod session;
#[cfg(test)]
mod tests;

pub use item::{Answered, OldAction, OldItem};
pub use session::{ImportStatus, OldSession, OldStatus};

use crate::access::user::{Naming, UserId};
use crate::values::id::{ConversationId, SessionId};
use crate::values::time::Timestamp;
use fields::Fields;
use serde_json::Value;
use std::collections::HashMap;

/// The format that is understood.
pub const FORMAT: &str = "agent-host.sessions/1";
/// Sessions in one document.
pub const SESSIONS_MAX: usize = 100_000;
/// Milliseconds by which the old system's clock may have been ahead of this host's.
const AHEAD_MS_MAX: u64 = 300_000;

/// A document of old sessions.
#[derive(Debug, Clone)]
pub struct OldSessions {
    /// [`FORMAT`].
    pub format: String,
    /// The issuer that vouched for the users of the old system. Their sessions are imported for the
    /// users whom that issuer's tokens identify here. Without it their ids are used unchanged.
    pub issuer: Option<Voucher>,
    /// The sessions, in any order.
    pub sessions: Vec<Value>,
}

/// An issuer of tokens, and the rule for its users' names here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The rule for the names of its users.
    pub naming: Naming,
}

/// A fault in a document, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ImportFault {
    /// The element at fault, a JSON pointer into the document: `/sessions/3/items/1/started_at`.
    pub field: String,
    /// The fault, and how to correct it.
    pub message: String,
}

/// Reads a document: its sessions, in the order in which they began.
///
/// # Errors
/// The first invalid element.
pub fn read(document: &OldSessions, now: Timestamp) -> Result<Vec<OldSession>, ImportFault> {
    if document.format != FORMAT {
        let message = format!("it is `{}` and must be `{FORMAT}`", document.format);
        return Err(ImportFault {
            field: "/format".to_owned(),
            message,
        });
    }
    if document.sessions.len() > SESSIONS_MAX {
        let message = format!(
            "there are {} and may be {SESSIONS_MAX}; import them in several documents",
            document.sessions.len()
        );
        return Err(ImportFault {
            field: "/sessions".to_owned(),
            message,
        });
    }
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    let mut conversations: HashMap<ConversationId, (UserId, usize)> = HashMap::new();
    let mut sessions = Vec::with_capacity(document.sessions.len());
    for (place, value) in document.sessions.iter().enumerate() {
        let fields = Fields::new(value, format!("/sessions/{place}"))?;
        let session = OldSession::read(
            &fields,
            place,
            document.issuer.as_ref(),
            now.plus_ms(AHEAD_MS_MAX),
        )?;
        if let Some(first) = places.insert(session.session_id, place) {
            let message = format!(
                "/sessions/{first} has the id `{}` too; each session stands in a document once",
                session.session_id
            );
            return Err(fields.fault(fields.named("session_id", "id"), message));
        }
        // A conversation is one user's.
        let (of, first) = conversations
            .entry(session.conversation_id)
            .or_insert_with(|| (session.user_id.clone(), place));
        if *of != session.user_id {
            let message = format!(
                "/sessions/{first} has the conversation `{}` too, of another user; each is one \
                 user's",
                session.conversation_id
            );
            return Err(fields.fault("conversation_id", message));
        }
        sessions.push(session);
    }
    sessions.sort_by_key(|session| (session.started_at, session.session_id));
    Ok(sessions)
}

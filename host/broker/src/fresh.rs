//! Random ids and salts. They are made here only.

use domain::digest::Salt;
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId};
use domain::key::{ApiKey, KEY_ID_CHARS, KEY_SECRET_BYTES, KeyId};
use uuid::Uuid;

pub(crate) fn agent() -> AgentId {
    AgentId(Uuid::new_v4())
}

pub(crate) fn session() -> SessionId {
    SessionId(Uuid::new_v4())
}

/// Returns twelve hexadecimal digits for an id that people read.
pub(crate) fn digits() -> String {
    Uuid::new_v4()
        .simple()
        .to_string()
        .chars()
        .take(12)
        .collect()
}

pub(crate) fn conversation() -> ConversationId {
    ConversationId(Uuid::new_v4())
}

pub(crate) fn run() -> RunId {
    RunId(Uuid::now_v7())
}

/// Returns the id of a call that belongs to no operation.
pub(crate) fn call() -> String {
    Uuid::now_v7().to_string()
}

pub(crate) fn input() -> InputId {
    InputId(Uuid::now_v7())
}

pub(crate) fn event() -> EventId {
    EventId(Uuid::now_v7())
}

pub(crate) fn salt() -> Salt {
    Salt(*Uuid::new_v4().as_bytes())
}

pub(crate) fn api_key() -> Result<ApiKey, getrandom::Error> {
    let mut id = [0; KEY_ID_CHARS];
    let mut secret = [0; KEY_SECRET_BYTES];
    getrandom::fill(&mut id)?;
    getrandom::fill(&mut secret)?;
    Ok(ApiKey::new(KeyId::of(id), secret))
}

//! The broker's refusals, in the designs' words.

use domain::digest::Digest;
use domain::refusal::{Kind, Refusal};

pub(crate) fn not_suspended() -> Refusal {
    Refusal::new(Kind::Conflict, "NOT_SUSPENDED", "Cannot resume: agent is not suspended")
}

pub(crate) fn restored_from_backup(what: &str) -> Refusal {
    Refusal::new(Kind::Conflict, "RESTORED_FROM_BACKUP", what)
}

pub(crate) fn agent_not_found(named: &str) -> Refusal {
    Refusal::new(Kind::NotFound, "AGENT_NOT_FOUND", format!("there is no agent `{named}`"))
}

pub(crate) fn agent_archived(agent: impl std::fmt::Display) -> Refusal {
    let message = format!("Agent {agent} is archived: it can be looked at, and takes no commands");
    Refusal::new(Kind::Conflict, "AGENT_ARCHIVED", message)
}

/// An agent that another one spawned is set up and shared through the topmost agent above it.
pub(crate) fn spawned(agent: impl std::fmt::Display) -> Refusal {
    let message = format!("Agent {agent} was spawned by another agent; that takes the topmost agent above it");
    Refusal::new(Kind::Conflict, "AGENT_SPAWNED", message)
}

pub(crate) fn session_not_found(named: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::NotFound, "SESSION_NOT_FOUND", format!("this agent has no session `{named}`"))
}

pub(crate) fn file_not_found(digest: Digest) -> Refusal {
    Refusal::new(Kind::NotFound, "FILE_NOT_FOUND", format!("this session has no file `{}`", digest.reference()))
}

pub(crate) fn session_closed() -> Refusal {
    Refusal::new(Kind::Conflict, "SESSION_CLOSED", "the session has ended; open another one")
}

pub(crate) fn session_active(agent: impl std::fmt::Display) -> Refusal {
    let message = format!("Agent {agent} already has an active session. Complete or terminate the current session first.");
    Refusal::new(Kind::Conflict, "SESSION_ALREADY_ACTIVE", message)
}

pub(crate) fn no_active_session() -> Refusal {
    Refusal::new(Kind::Conflict, "NO_ACTIVE_SESSION", "Cannot terminate: no active session")
}

pub(crate) fn busy(message: &str) -> Refusal {
    Refusal::new(Kind::Busy, "BUSY", message)
}

pub(crate) fn key_reused() -> Refusal {
    Refusal::new(Kind::Conflict, "IDEMPOTENCY_KEY_REUSED", "this idempotency key belongs to another request; use a new one")
        .at("header:Idempotency-Key")
}

pub(crate) fn definition_not_found(named: &str, known: &[&str]) -> Refusal {
    let message = format!("there is no definition `{named}`; configured are: {}", known.join(", "));
    Refusal::new(Kind::NotFound, "DEFINITION_NOT_FOUND", message)
}

pub(crate) fn too_large(bytes: usize, max: usize) -> Refusal {
    Refusal::new(Kind::TooLarge, "MESSAGE_TOO_LARGE", format!("the message has {bytes} bytes and may have {max}")).at("/content")
}

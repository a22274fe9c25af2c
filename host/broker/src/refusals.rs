//! The broker's refusals, in the words of the designs.

use domain::digest::Digest;
use domain::id::{InputId, SessionId, TurnId};
use domain::path::PathVerdict;
use domain::queue::QueueFull;
use domain::refusal::{Refusal, RefusalKind};
use store::InputState;

pub(crate) fn not_suspended() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "NOT_SUSPENDED",
        "Cannot resume: agent is not suspended",
    )
}

pub(crate) fn restored_from_backup(what: &str) -> Refusal {
    Refusal::new(RefusalKind::Conflict, "RESTORED_FROM_BACKUP", what)
}

pub(crate) fn agent_not_found(named: &str) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "AGENT_NOT_FOUND",
        format!("there is no agent `{named}`"),
    )
}

pub(crate) fn agent_archived(agent: impl std::fmt::Display) -> Refusal {
    let message = format!("Agent {agent} is archived: it can be looked at, and takes no commands");
    Refusal::new(RefusalKind::Conflict, "AGENT_ARCHIVED", message)
}

/// The refusal to set up or share an agent that another one spawned. Such a command goes to the
/// topmost agent above it.
pub(crate) fn spawned(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "Agent {agent} was spawned by another agent; that takes the topmost agent above it"
    );
    Refusal::new(RefusalKind::Conflict, "AGENT_SPAWNED", message)
}

pub(crate) fn session_not_found(named: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "SESSION_NOT_FOUND",
        format!("this agent has no session `{named}`"),
    )
}

/// The refusal of a purged session, which is gone for good.
pub(crate) fn session_purged(named: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        RefusalKind::Gone,
        "SESSION_PURGED",
        format!("session `{named}` was purged: nothing of it is left"),
    )
}

pub(crate) fn agent_purged(named: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        RefusalKind::Gone,
        "AGENT_PURGED",
        format!("agent `{named}` was purged: nothing of it is left"),
    )
}

/// The refusal to purge a session that is not deleted.
pub(crate) fn session_not_deleted(
    agent: impl std::fmt::Display,
    session: impl std::fmt::Display,
) -> Refusal {
    let message = format!(
        "session `{session}` is not deleted; delete it first: DELETE \
                 /api/agents/{agent}/sessions/{session}"
    );
    Refusal::new(RefusalKind::Conflict, "SESSION_NOT_DELETED", message)
}

/// The refusal to purge an agent that is not archived.
pub(crate) fn agent_not_archived(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "agent `{agent}` is not archived; archive it first: POST /api/agents/{agent}/archive"
    );
    Refusal::new(RefusalKind::Conflict, "AGENT_NOT_ARCHIVED", message)
}

pub(crate) fn file_not_found(digest: Digest) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "FILE_NOT_FOUND",
        format!("this session has no file `{}`", digest.reference()),
    )
}

/// The refusal of a command of which a part can never be stored. A repetition would be in vain.
pub(crate) fn not_storable() -> Refusal {
    Refusal::new(
        RefusalKind::Invalid,
        "NOT_STORABLE",
        "this can never be recorded; whoever runs the host finds the reason in its log",
    )
}

/// The refusal of a session whose agent was not named.
pub(crate) fn session_unknown(session: SessionId) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "SESSION_NOT_FOUND",
        format!("there is no session `{session}`"),
    )
}

/// The refusal of a command that needs a driver, in a session that has none because of its
/// quarantine.
pub(crate) fn session_quarantined(session: SessionId, reason: &str) -> Refusal {
    let message = format!(
        "session `{session}` is in quarantine, and nothing is done for it until the \
                 operator releases it: {reason}"
    );
    Refusal::new(RefusalKind::Conflict, "SESSION_QUARANTINED", message)
}

pub(crate) fn not_quarantined(session: SessionId) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "NOT_QUARANTINED",
        format!("session `{session}` is not in quarantine"),
    )
}

pub(crate) fn session_closed() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "SESSION_CLOSED",
        "the session has ended; open another one",
    )
}

pub(crate) fn session_active(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "Agent {agent} already has an active session. Complete or terminate the current \
                 session first."
    );
    Refusal::new(RefusalKind::Conflict, "SESSION_ALREADY_ACTIVE", message)
}

pub(crate) fn no_active_session() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "NO_ACTIVE_SESSION",
        "Cannot terminate: no active session",
    )
}

pub(crate) fn busy(message: &str) -> Refusal {
    Refusal::new(RefusalKind::Busy, "BUSY", message)
}

/// The refusal after others changed the same thing faster than the command could be decided upon
/// it.
pub(crate) fn changing(what: &str) -> Refusal {
    busy(&format!(
        "{what} is changing at this moment; try again shortly"
    ))
}

pub(crate) fn key_reused() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "IDEMPOTENCY_KEY_REUSED",
        "this idempotency key belongs to another request; use a new one",
    )
    .at("header:Idempotency-Key")
}

pub(crate) fn definition_not_found(named: &str, known: &[&str]) -> Refusal {
    let message = format!(
        "there is no definition `{named}`; configured are: {}",
        known.join(", ")
    );
    Refusal::new(RefusalKind::NotFound, "DEFINITION_NOT_FOUND", message)
}

pub(crate) fn too_large(bytes: usize, max: usize) -> Refusal {
    Refusal::new(
        RefusalKind::TooLarge,
        "MESSAGE_TOO_LARGE",
        format!("the message has {bytes} bytes and may have {max}"),
    )
    .at("/content")
}

pub(crate) fn run_open() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "RUN_OPEN",
        "a turn is in the making in this session; cancel it first, or let it end",
    )
}

pub(crate) fn inputs_wait(message: &str) -> Refusal {
    Refusal::new(RefusalKind::Conflict, "INPUTS_WAIT", message)
}

pub(crate) fn nothing_to_compact() -> Refusal {
    let message = "there is nothing to summarise: no turn was added since the thread began, or \
                   since it was compacted";
    Refusal::new(RefusalKind::Conflict, "NOTHING_TO_COMPACT", message)
}

pub(crate) fn session_structured(only: &str) -> Refusal {
    let message = format!("a structured session keeps what was asked and answered in it; {only}");
    Refusal::new(RefusalKind::Conflict, "SESSION_STRUCTURED", message)
}

pub(crate) fn turn_not_found(turn: TurnId) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "TURN_NOT_FOUND",
        format!("there is no turn `{turn}` in a session that you see here"),
    )
}

pub(crate) fn thread_empty() -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "THREAD_EMPTY",
        "no turn was stored in this session's thread yet; there is nothing to fork",
    )
}

pub(crate) fn threads_apart(max: usize) -> Refusal {
    let message = format!(
        "one of the two threads goes on alone for more than {max} turns; compare with a turn of it"
    );
    Refusal::new(RefusalKind::Conflict, "THREADS_APART", message)
}

pub(crate) fn turn_conflict(turn: TurnId) -> Refusal {
    let message = format!(
        "turn `{turn}` of the file, or its run, is here already and is not the same; \
                 nothing more was taken of the file"
    );
    Refusal::new(RefusalKind::Conflict, "TURN_CONFLICT", message)
}

pub(crate) fn export_too_large(max: usize) -> Refusal {
    let message = format!(
        "the session has more than {max} bytes as a file; export a fork at an earlier \
                 turn, or its thread alone"
    );
    Refusal::new(RefusalKind::Conflict, "EXPORT_TOO_LARGE", message)
}

pub(crate) fn not_exportable(cause: &str) -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "NOT_EXPORTABLE",
        format!("the session cannot be written as a file: {cause}"),
    )
}

pub(crate) fn queue_full(full: &QueueFull) -> Refusal {
    Refusal::new(RefusalKind::Busy, "QUEUE_FULL", full.to_string()).at("/queue")
}

pub(crate) fn input_not_found(input: InputId) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "INPUT_NOT_FOUND",
        format!("this session has no input `{input}`"),
    )
}

/// The refusal to take back an input that is no words. It belongs to whoever waits for its result.
pub(crate) fn input_not_words() -> Refusal {
    let message = "only words can be taken back: another agent handed this over, or the session \
                   began with it; cancel the turn that waits for it";
    Refusal::new(RefusalKind::Conflict, "INPUT_NOT_WORDS", message)
}

pub(crate) fn input_not_waiting(state: &InputState) -> Refusal {
    let message = match state {
        InputState::Claimed { .. } => {
            "a turn is dealing with it; cancel the turn: POST \
             /api/agents/{id}/sessions/{sid}/cancel"
        }
        InputState::Consumed { .. } => "a turn has dealt with it",
        InputState::Dead { .. } => "it was put aside as a dead letter",
        InputState::Cancelled => "it was cancelled before",
        InputState::Dropped => "it was dropped from the queue",
        InputState::Waiting => "it has just changed; look at it again",
    };
    Refusal::new(RefusalKind::Conflict, "INPUT_NOT_WAITING", message)
}

/// The refusal of an agent that was made for a piece of work which ended long ago.
pub(crate) fn agent_dead(agent: impl std::fmt::Display) -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "AGENT_DEAD",
        format!("Agent is dead: {agent}"),
    )
}

/// The refusal of a command that the operator's rules on paths do not allow.
pub(crate) fn path_forbidden(path: &str, verdict: PathVerdict<'_>) -> Refusal {
    Refusal::new(
        RefusalKind::Forbidden,
        "PATH_FORBIDDEN",
        format!("the operator's rules let you not command the agent at `{path}`: {verdict}"),
    )
}

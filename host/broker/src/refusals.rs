//! The broker's refusals, in the words of the designs.

use domain::agent::Agent;
use domain::digest::Digest;
use domain::id::{ConversationId, InputId, NoteId, SessionId, TurnId};
use domain::path::{AgentPath, PathVerdict};
use domain::queue::QueueFull;
use domain::refusal::{Refusal, RefusalKind};
use std::collections::BTreeSet;
use store::InputState;

/// Creates the refusal of something that is not there, or is not the caller's.
pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::NotFound, code, message)
}

/// Creates the refusal of something that the state of its object rules out.
pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Conflict, code, message)
}

/// Creates the refusal of something that the caller may not do.
pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Forbidden, code, message)
}

pub(crate) fn not_suspended() -> Refusal {
    conflict("NOT_SUSPENDED", "Cannot resume: agent is not suspended")
}

pub(crate) fn restored_from_backup(what: &str) -> Refusal {
    conflict("RESTORED_FROM_BACKUP", what)
}

pub(crate) fn agent_not_found(named: &str) -> Refusal {
    let path = named.parse::<AgentPath>().ok();
    let connector = path.as_ref().and_then(AgentPath::connector_name);
    let fix = connector.map_or_else(String::new, |connector| {
        format!("; it is there once its user has written through `{connector}`")
    });
    not_found(
        "AGENT_NOT_FOUND",
        format!("there is no agent `{named}`{fix}"),
    )
}

pub(crate) fn agent_archived(agent: impl std::fmt::Display) -> Refusal {
    let message = format!("Agent {agent} is archived: it can be looked at, and takes no commands");
    conflict("AGENT_ARCHIVED", message)
}

/// The refusal to set up or share an agent that another one spawned. Such a command goes to the
/// topmost agent above it.
pub(crate) fn spawned(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "Agent {agent} was spawned by another agent; that takes the topmost agent above it"
    );
    conflict("AGENT_SPAWNED", message)
}

pub(crate) fn session_not_found(named: impl std::fmt::Display) -> Refusal {
    let message = format!("this agent has no session `{named}`");
    not_found("SESSION_NOT_FOUND", message)
}

/// The refusal of a conversation of another user.
pub(crate) fn conversation_taken(conversation: ConversationId) -> Refusal {
    let message = format!(
        "the conversation `{conversation}` is another user's; choose another UUID, or leave it out \
         for a new one"
    );
    conflict("CONVERSATION_TAKEN", message).at("/conversation_id")
}

/// The refusal of a session that is another agent's, which the user sees.
pub(crate) fn session_of_another(named: impl std::fmt::Display, other: &Agent) -> Refusal {
    let message = format!(
        "session `{named}` is one of another agent: `{}`, of the definition `{}`",
        other.path, other.definition
    );
    not_found("SESSION_NOT_FOUND", message)
}

/// The refusal of a purged session, which is gone for good.
pub(crate) fn session_purged(named: impl std::fmt::Display) -> Refusal {
    let message = format!("session `{named}` was purged: nothing of it is left");
    Refusal::new(RefusalKind::Gone, "SESSION_PURGED", message)
}

pub(crate) fn agent_purged(named: impl std::fmt::Display) -> Refusal {
    let message = format!("agent `{named}` was purged: nothing of it is left");
    Refusal::new(RefusalKind::Gone, "AGENT_PURGED", message)
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
    conflict("SESSION_NOT_DELETED", message)
}

/// The refusal to purge an agent that is not archived.
pub(crate) fn agent_not_archived(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "agent `{agent}` is not archived; archive it first: POST /api/agents/{agent}/archive"
    );
    conflict("AGENT_NOT_ARCHIVED", message)
}

pub(crate) fn file_not_found(digest: Digest) -> Refusal {
    let message = format!("this session has no file `{}`", digest.reference());
    not_found("FILE_NOT_FOUND", message)
}

/// The refusal of a command of which a part can never be stored. A repetition would be in vain.
pub(crate) fn not_storable() -> Refusal {
    let message = "this can never be recorded; whoever runs the host finds the reason in its log";
    Refusal::new(RefusalKind::Invalid, "NOT_STORABLE", message)
}

/// The refusal of a session whose agent was not named.
pub(crate) fn session_unknown(session: SessionId) -> Refusal {
    let message = format!("there is no session `{session}`");
    not_found("SESSION_NOT_FOUND", message)
}

/// The refusal of a command that needs a driver, in a session that has none because of its
/// quarantine.
pub(crate) fn session_quarantined(session: SessionId, reason: &str) -> Refusal {
    let message = format!(
        "session `{session}` is in quarantine, and nothing is done for it before it is released: \
         {reason}"
    );
    conflict("SESSION_QUARANTINED", message)
}

pub(crate) fn not_quarantined(session: SessionId) -> Refusal {
    let message = format!("session `{session}` is not in quarantine");
    not_found("NOT_QUARANTINED", message)
}

pub(crate) fn session_closed() -> Refusal {
    conflict("SESSION_CLOSED", "the session has ended; open another one")
}

pub(crate) fn session_full(max: u64) -> Refusal {
    let message = "the session has as many messages as its agent's definition permits \
                   (maxSessionMessages); open another one";
    conflict("SESSION_FULL", message)
        .with("limit", "maxSessionMessages")
        .with("max", max)
}

pub(crate) fn session_expired() -> Refusal {
    let message = "the session was idle for longer than its agent's definition permits \
                   (sessionTimeout); open another one";
    conflict("SESSION_EXPIRED", message).with("limit", "sessionTimeout")
}

pub(crate) fn session_taken(named: impl std::fmt::Display) -> Refusal {
    let message =
        format!("the session `{named}` is another agent's, or another user's; take another name");
    conflict("SESSION_TAKEN", message)
}

pub(crate) fn agent_not_external(definition: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "`{definition}` is no external agent; give its definition `type = \"external\"`, or open \
         the session with POST /api/agents/{definition}/sessions"
    );
    conflict("AGENT_NOT_EXTERNAL", message)
}

pub(crate) fn signature_invalid() -> Refusal {
    let message = "the signature is none of this session's agent over this time, session, message \
                   and body";
    forbidden("SIGNATURE_INVALID", message).at("header:X-Agent-Host-Signature")
}

pub(crate) fn signature_stale(signed_s: u64, now_s: u64) -> Refusal {
    let message = format!(
        "the request was signed at second {signed_s}, and it is {now_s} here; sign it again"
    );
    forbidden("SIGNATURE_STALE", message).at("header:X-Agent-Host-Time")
}

/// The refusal of an answer that is larger than the host takes from anybody. It was not read, so
/// that nobody knows who signed it.
pub(crate) fn answer_unread() -> Refusal {
    too_large_answer("the answer is larger than an answer of any agent may be")
}

pub(crate) fn answer_too_large(bytes_max: u32) -> Refusal {
    too_large_answer(format!(
        "an answer of this agent has at most {bytes_max} bytes"
    ))
}

fn too_large_answer(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::TooLarge, "ANSWER_TOO_LARGE", message).at("body")
}

pub(crate) fn session_active(agent: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "Agent {agent} already has an active session. Complete or terminate the current \
                 session first."
    );
    conflict("SESSION_ALREADY_ACTIVE", message)
}

pub(crate) fn no_active_session() -> Refusal {
    conflict("NO_ACTIVE_SESSION", "Cannot terminate: no active session")
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
    let message = "this idempotency key belongs to another request; use a new one";
    conflict("IDEMPOTENCY_KEY_REUSED", message).at("header:Idempotency-Key")
}

pub(crate) fn definition_not_found(named: &str, known: &[String]) -> Refusal {
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let message = format!(
        "there is no definition `{named}`; configured are: {}",
        known.join(", ")
    );
    not_found("DEFINITION_NOT_FOUND", message)
}

/// The refusal of words to an agent whose definition was taken away.
pub(crate) fn definition_gone(definition: impl std::fmt::Display) -> Refusal {
    let message = format!(
        "the definition `{definition}` is no longer configured: its agents can be looked at, and \
         take no words"
    );
    conflict("DEFINITION_GONE", message)
}

pub(crate) fn too_large(bytes: usize, max: usize) -> Refusal {
    let message = format!("the message has {bytes} bytes and may have {max}");
    Refusal::new(RefusalKind::TooLarge, "MESSAGE_TOO_LARGE", message).at("/content")
}

pub(crate) fn run_open() -> Refusal {
    let message = "a turn is in the making in this session; cancel it first, or let it end";
    conflict("RUN_OPEN", message)
}

/// The refusal of a return to a session that is at work, from another one.
pub(crate) fn run_open_where_from(session: SessionId) -> Refusal {
    let message = format!(
        "a turn is in the making in the session {session}, from which you came: answer what it \
         asks, cancel it, or let it end"
    );
    conflict("RUN_OPEN", message)
}

/// The refusal of a switch without a message to a session that is at work.
pub(crate) fn run_open_there() -> Refusal {
    let message = "a turn is in the making in your chat with that agent; come with a message, or \
                   let the turn end";
    conflict("RUN_OPEN", message).at("/agent")
}

pub(crate) fn inputs_wait(message: &str) -> Refusal {
    conflict("INPUTS_WAIT", message)
}

pub(crate) fn nothing_to_compact() -> Refusal {
    let message = "there is nothing to summarise: no turn was added since the thread began, or \
                   since it was compacted";
    conflict("NOTHING_TO_COMPACT", message)
}

pub(crate) fn not_switched() -> Refusal {
    let message = "the user did not switch to this session from another one, or has returned";
    conflict("NOT_SWITCHED", message)
}

pub(crate) fn same_session() -> Refusal {
    let message = "this is the chat with that agent already; name another agent";
    conflict("SAME_SESSION", message).at("/agent")
}

pub(crate) fn memory_not_configured() -> Refusal {
    let message = "no agent reads the sessions of this agent; its definition needs `memory`";
    conflict("MEMORY_NOT_CONFIGURED", message)
}

pub(crate) fn note_not_found(note: NoteId) -> Refusal {
    let message = format!("there is no note `{note}` of this agent that you see");
    not_found("NOTE_NOT_FOUND", message)
}

pub(crate) fn session_structured(only: &str) -> Refusal {
    let message = format!("a structured session keeps what was asked and answered in it; {only}");
    conflict("SESSION_STRUCTURED", message)
}

pub(crate) fn turn_not_found(turn: TurnId) -> Refusal {
    let message = format!("there is no turn `{turn}` in a session that you see here");
    not_found("TURN_NOT_FOUND", message)
}

pub(crate) fn thread_empty() -> Refusal {
    let message = "no turn was stored in this session's thread yet; there is nothing to fork";
    conflict("THREAD_EMPTY", message)
}

pub(crate) fn threads_apart(max: usize) -> Refusal {
    let message = format!(
        "one of the two threads goes on alone for more than {max} turns; compare with a turn of it"
    );
    conflict("THREADS_APART", message)
}

pub(crate) fn turn_conflict(turn: TurnId) -> Refusal {
    let message = format!(
        "turn `{turn}` of the file, or its run, is here already and is not the same; \
                 nothing more was taken of the file"
    );
    conflict("TURN_CONFLICT", message)
}

pub(crate) fn export_too_large(max: usize) -> Refusal {
    let message = format!(
        "the session has more than {max} bytes as a file; export a fork at an earlier \
                 turn, or its thread alone"
    );
    conflict("EXPORT_TOO_LARGE", message)
}

pub(crate) fn not_exportable(cause: &str) -> Refusal {
    let message = format!("the session cannot be written as a file: {cause}");
    conflict("NOT_EXPORTABLE", message)
}

pub(crate) fn queue_full(full: &QueueFull) -> Refusal {
    Refusal::new(RefusalKind::Busy, "QUEUE_FULL", full.to_string()).at("/queue")
}

pub(crate) fn input_not_found(input: InputId) -> Refusal {
    let message = format!("this session has no input `{input}`");
    not_found("INPUT_NOT_FOUND", message)
}

/// The refusal to take back an input that is no words. It belongs to whoever waits for its result.
pub(crate) fn input_not_words() -> Refusal {
    let message = "only words can be taken back: another agent handed this over, or the session \
                   began with it; cancel the turn that waits for it";
    conflict("INPUT_NOT_WORDS", message)
}

pub(crate) fn input_not_waiting(state: &InputState) -> Refusal {
    let message = match state {
        InputState::Claimed { .. } => {
            "a turn is dealing with it; cancel the turn: POST \
             /api/agents/{id}/sessions/{sid}/cancel"
        }
        InputState::Consumed { .. } => "a turn has dealt with it",
        InputState::Dead { .. } => "it was put aside as a dead letter",
        InputState::Cancelled { .. } => "it was cancelled before",
        InputState::Dropped => "it was dropped from the queue",
        InputState::Waiting => "it has just changed; look at it again",
    };
    conflict("INPUT_NOT_WAITING", message)
}

/// The refusal of an agent that was made for a piece of work which ended long ago.
pub(crate) fn agent_dead(agent: impl std::fmt::Display) -> Refusal {
    conflict("AGENT_DEAD", format!("Agent is dead: {agent}"))
}

/// The refusal of a command that the operator's rules on paths do not allow.
pub(crate) fn path_forbidden(path: &str, verdict: PathVerdict<'_>) -> Refusal {
    forbidden(
        "PATH_FORBIDDEN",
        format!("the operator's rules let you not command the agent at `{path}`: {verdict}"),
    )
}

#[cfg(test)]
mod tests {
    use super::definition_not_found;

    #[test]
    fn each_configured_definition_is_named_once_to_who_named_none() {
        let known = ["web", "assistant", "assistant", "assistant"].map(str::to_owned);
        let told = definition_not_found("nobody", &known).message;
        assert_eq!(
            told,
            "there is no definition `nobody`; configured are: assistant, web"
        );
    }
}

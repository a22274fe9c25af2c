//! The broker's refusals, in the words of the designs.

use domain::agent::Agent;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::id::{ConversationId, InputId, NoteId, SessionId, TurnId};
use domain::path::{AgentPath, PathVerdict};
use domain::queue::QueueFull;
use domain::refusal::Refusal;
use std::collections::BTreeSet;
use store::InputState;

domain::refusals! {
    inputs_wait(message: &str) = InputsWait: "{message}";
    busy(message: &str) = Busy: "{message}";
    restored_from_backup(what: &str) = RestoredFromBackup: "{what}";
    not_suspended() = NotSuspended: "Cannot resume: agent is not suspended";
    agent_archived(agent: impl std::fmt::Display) = AgentArchived:
        "Agent {agent} is archived: it can be looked at, and takes no commands";
    /// The refusal to set up or share an agent that another one spawned. Such a command has to
    /// address the topmost agent above it.
    spawned(agent: impl std::fmt::Display) = AgentSpawned:
        "Agent {agent} was spawned by another agent; that takes the topmost agent above it";
    session_not_found(named: impl std::fmt::Display) = SessionNotFound:
        "this agent has no session `{named}`";
    /// The refusal of a conversation of another user.
    conversation_taken(conversation: ConversationId) = ConversationTaken:
        "the conversation `{conversation}` is another user's; choose another UUID, or leave it out \
         for a new one";
    /// The refusal of a purged session, which is gone for good.
    session_purged(named: impl std::fmt::Display) = SessionPurged:
        "session `{named}` was purged: nothing of it is left";
    agent_purged(named: impl std::fmt::Display) = AgentPurged:
        "agent `{named}` was purged: nothing of it is left";
    /// The refusal to purge a session that is not deleted.
    session_not_deleted(
        agent: impl std::fmt::Display, session: impl std::fmt::Display
    ) = SessionNotDeleted:
        "session `{session}` is not deleted; delete it first: DELETE \
         /api/agents/{agent}/sessions/{session}";
    /// The refusal to purge an agent that is not archived.
    agent_not_archived(agent: impl std::fmt::Display) = AgentNotArchived:
        "agent `{agent}` is not archived; archive it first: POST /api/agents/{agent}/archive";
    /// The refusal of a command of which a part can never be stored. A repetition would fail too.
    not_storable() = NotStorable:
        "this can never be recorded; whoever runs the host finds the reason in its log";
    /// The refusal of a session whose agent was not named.
    session_unknown(session: SessionId) = SessionNotFound: "there is no session `{session}`";
    /// The refusal of a command that needs a driver, in a session that has none because of its
    /// quarantine.
    session_quarantined(session: SessionId, reason: &str) = SessionQuarantined:
        "session `{session}` is in quarantine, and nothing is done for it before it is released: \
         {reason}";
    not_quarantined(session: SessionId) = NotQuarantined:
        "session `{session}` is not in quarantine";
    session_closed() = SessionClosed: "the session has ended; open another one";
    session_taken(named: impl std::fmt::Display) = SessionTaken:
        "the session `{named}` is another agent's, or another user's; take another name";
    agent_not_external(definition: impl std::fmt::Display) = AgentNotExternal:
        "`{definition}` is no external agent; give its definition `type = \"external\"`, or open \
         the session with POST /api/agents/{definition}/sessions";
    signature_invalid() = SignatureInvalid:
        "the signature is none of this session's agent over this time, session, message and body";
    signature_stale(signed_s: u64, now_s: u64) = SignatureStale:
        "the request was signed at second {signed_s}, and it is {now_s} here; sign it again";
    session_active(agent: impl std::fmt::Display) = SessionAlreadyActive:
        "Agent {agent} already has an active session. Complete or terminate the current session \
         first.";
    no_active_session() = NoActiveSession: "Cannot terminate: no active session";
    key_reused() = IdempotencyKeyReused:
        "this idempotency key belongs to another request; use a new one";
    /// The refusal of words to an agent whose definition was taken away.
    definition_gone(definition: impl std::fmt::Display) = DefinitionGone:
        "the definition `{definition}` is no longer configured: its agents can be looked at, and \
         take no words";
    too_large(bytes: usize, max: usize) = MessageTooLarge:
        "the message has {bytes} bytes and may have {max}";
    run_open() = RunOpen: "a turn is in the making in this session; cancel it first, or let it end";
    /// The refusal of a return to a session that is at work, from another one.
    run_open_where_from(session: SessionId) = RunOpen:
        "a turn is in the making in the session {session}, from which you came: answer what it \
         asks, cancel it, or let it end";
    /// The refusal of a switch without a message to a session that is at work.
    run_open_there() = RunOpen at "/agent":
        "a turn is in the making in your chat with that agent; come with a message, or let the \
         turn end";
    nothing_to_compact() = NothingToCompact:
        "there is nothing to summarise: no turn was added since the thread began, or since it was \
         compacted";
    not_switched() = NotSwitched:
        "the user did not switch to this session from another one, or has returned";
    same_session() = SameSession: "this is the chat with that agent already; name another agent";
    memory_not_configured() = MemoryNotConfigured:
        "no agent reads the sessions of this agent; its definition needs `memory`";
    note_not_found(note: NoteId) = NoteNotFound:
        "there is no note `{note}` of this agent that you see";
    session_structured(only: &str) = SessionStructured:
        "a structured session keeps what was asked and answered in it; {only}";
    turn_not_found(turn: TurnId) = TurnNotFound:
        "there is no turn `{turn}` in a session that you see here";
    no_turn_there(turn: TurnId) = TurnNotFound at "/to/thread": "there is no turn `{turn}`";
    no_thread_found() = NoThreadFound:
        "no thread of yours speaks of that; name an agent, a persona or a session, or say in \
         `about` what it was about";
    thread_empty() = ThreadEmpty:
        "no turn was stored in this session's thread yet; there is nothing to fork";
    threads_apart(max: usize) = ThreadsApart:
        "one of the two threads goes on alone for more than {max} turns; compare with a turn of it";
    turn_conflict(turn: TurnId) = TurnConflict:
        "turn `{turn}` of the file, or its run, is here already and is not the same; nothing more \
         was taken of the file";
    export_too_large(max: usize) = ExportTooLarge:
        "the session has more than {max} bytes as a file; export a fork at an earlier turn, or its \
         thread alone";
    not_exportable(cause: &str) = NotExportable: "the session cannot be written as a file: {cause}";
    input_not_found(input: InputId) = InputNotFound: "this session has no input `{input}`";
    /// The refusal to withdraw an input that is no words. It belongs to the caller that waits for
    /// its result.
    input_not_words() = InputNotWords:
        "only words can be taken back: another agent handed this over, or the session began with \
         it; cancel the turn that waits for it";
    /// The refusal of an agent that was made for a piece of work which ended long ago.
    agent_dead(agent: impl std::fmt::Display) = AgentDead: "Agent is dead: {agent}";
    /// The refusal of an answer that exceeds the maximum of the host. It was not read, so its
    /// signer is unknown.
    answer_unread() = AnswerTooLarge: "the answer is larger than an answer of any agent may be";
    answer_too_large(bytes_max: u32) = AnswerTooLarge:
        "an answer of this agent has at most {bytes_max} bytes";
    /// The refusal after others changed the same thing faster than the command could be decided
    /// upon it.
    changing(what: &str) = Busy: "{what} is changing at this moment; try again shortly";
    queue_full(full: &QueueFull) = QueueFull: "{full}";
    /// The refusal of a command that the operator's rules on paths do not allow.
    path_forbidden(path: &str, verdict: PathVerdict<'_>) = PathForbidden:
        "the operator's rules let you not command the agent at `{path}`: {verdict}";
}

pub(crate) fn agent_not_found(named: &str) -> Refusal {
    let path = named.parse::<AgentPath>().ok();
    let connector = path.as_ref().and_then(AgentPath::connector_name);
    let fix = connector.map_or_else(String::new, |connector| {
        format!("; it is there once its user has written through `{connector}`")
    });
    Refusal::new(
        ErrorCode::AgentNotFound,
        format!("there is no agent `{named}`{fix}"),
    )
}

/// The refusal of a session that is another agent's, which the user sees.
pub(crate) fn session_of_another(named: impl std::fmt::Display, other: &Agent) -> Refusal {
    let message = format!(
        "session `{named}` is one of another agent: `{}`, of the definition `{}`",
        other.path, other.definition
    );
    Refusal::new(ErrorCode::SessionNotFound, message)
}

pub(crate) fn file_not_found(digest: Digest) -> Refusal {
    let message = format!("this session has no file `{}`", digest.reference());
    Refusal::new(ErrorCode::FileNotFound, message)
}

pub(crate) fn session_full(max: u64) -> Refusal {
    let message = "the session has as many messages as its agent's definition permits \
                   (maxSessionMessages); open another one";
    Refusal::new(ErrorCode::SessionFull, message)
        .with("limit", "maxSessionMessages")
        .with("max", max)
}

pub(crate) fn session_expired() -> Refusal {
    let message = "the session was idle for longer than its agent's definition permits \
                   (sessionTimeout); open another one";
    Refusal::new(ErrorCode::SessionExpired, message).with("limit", "sessionTimeout")
}

pub(crate) fn definition_not_found(named: &str, known: &[String]) -> Refusal {
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let message = format!(
        "there is no definition `{named}`; configured are: {}",
        known.join(", ")
    );
    Refusal::new(ErrorCode::DefinitionNotFound, message)
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
    Refusal::new(ErrorCode::InputNotWaiting, message)
}

#[cfg(test)]
mod tests {
    use super::definition_not_found;

    #[test]
    fn each_configured_definition_is_named_once_to_who_named_none() {
        let known = ["web", "assistant", "assistant", "assistant"].map(str::to_owned);
        let reported = definition_not_found("nobody", &known).message;
        assert_eq!(
            reported,
            "there is no definition `nobody`; configured are: assistant, web"
        );
    }
}

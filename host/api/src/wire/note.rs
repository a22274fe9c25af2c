//! The notes of an agent's memory.

use super::Time;
use domain::id::{AgentId, NoteId, RunId, SessionId, TurnId};
use domain::user::UserId;
use serde::Serialize;
use store::NoteRow;

/// A note of an agent's memory.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct NoteView {
    /// Its id, under which it is forgotten.
    note_id: NoteId,
    /// The text.
    text: String,
    /// The subject, if it names one.
    about: Option<String>,
    /// The session in which it was made.
    session_id: SessionId,
    /// The user of that session.
    user_id: UserId,
    /// True if it rests on content from outside: a page that was read, a tool's answer.
    untrusted: bool,
    /// The last turn that it was taken from, if an agent read the session for it.
    turn_id: Option<TurnId>,
    /// The run that kept it, if that is recorded.
    run_id: Option<RunId>,
    /// The agent that wrote it, if that is recorded: the agent itself, or its memory agent.
    written_by: Option<AgentId>,
    /// Time at which it was kept.
    time: Time,
}

/// Returns the view of a note.
pub(crate) fn note(row: &NoteRow) -> NoteView {
    let from = row.provenance.as_ref();
    NoteView {
        note_id: row.id,
        text: row.text.clone(),
        about: row.about.clone(),
        session_id: row.session,
        user_id: row.user_id.clone(),
        untrusted: row.untrusted,
        turn_id: from.and_then(|from| from.turn),
        run_id: from.map(|from| from.run),
        written_by: from.map(|from| from.written_by),
        time: Time(row.time),
    }
}

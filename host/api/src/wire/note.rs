//! The notes of an agent's memory.

use serde::Serialize;
use store::NoteRow;

/// A note of an agent's memory.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct NoteView {
    /// Its id, under which it is forgotten.
    note_id: String,
    /// The text.
    text: String,
    /// The subject, if it names one.
    about: Option<String>,
    /// The session in which it was made.
    session_id: String,
    /// The user of that session.
    user_id: String,
    /// True if it rests on content from outside: a page that was read, a tool's answer.
    untrusted: bool,
    /// The last turn that it was taken from, if an agent read the session for it.
    turn_id: Option<String>,
    /// The run that kept it, if that is recorded.
    run_id: Option<String>,
    /// The agent that wrote it, if that is recorded: the agent itself, or its memory agent.
    written_by: Option<String>,
    /// Time at which it was kept.
    time: String,
}

/// Returns the view of a note.
pub(crate) fn note(row: &NoteRow) -> NoteView {
    let from = row.provenance.as_ref();
    NoteView {
        note_id: row.id.to_string(),
        text: row.text.clone(),
        about: row.about.clone(),
        session_id: row.session.to_string(),
        user_id: row.user_id.to_string(),
        untrusted: row.untrusted,
        turn_id: from.and_then(|from| from.turn).map(|turn| turn.to_string()),
        run_id: from.map(|from| from.run.to_string()),
        written_by: from.map(|from| from.written_by.to_string()),
        time: row.time.to_string(),
    }
}

//! The history of an agent's sessions, as the agent sees it in a turn for one of its users.

use crate::resolved_config::Sealed;
use domain::id::AgentId;
use domain::role::AgentRole;
use domain::session::HISTORY_MAX;
use domain::user::UserId;
use serde_json::{Value, json};
use store::{ReadError, SessionRow, Store};

/// The history as a step is shown it.
pub(crate) struct SeenHistory {
    /// The sessions, a JSON array.
    pub(crate) sealed: Sealed,
    /// True if what is said of the end of any of them rests on content from outside.
    pub(crate) untrusted: bool,
}

/// Returns the agent's last ended structured sessions that a user in this role may see, sealed.
///
/// None when there are none.
pub(crate) async fn seen_by(
    store: &Store,
    agent: AgentId,
    user: &UserId,
    role: Option<AgentRole>,
) -> Result<Option<SeenHistory>, ReadError> {
    let whose = if role.is_some_and(AgentRole::sees_all_sessions) {
        None
    } else {
        Some(user.clone())
    };
    let ended = store
        .session_history(agent, whose, None, HISTORY_MAX)
        .await?;
    if ended.is_empty() {
        return Ok(None);
    }
    let summaries: Vec<Value> = ended.iter().map(|ended| summary(&ended.row)).collect();
    Ok(Some(SeenHistory {
        sealed: Sealed::json(&summaries),
        untrusted: ended.iter().any(|ended| ended.untrusted),
    }))
}

/// Returns an ended session as agents see it.
fn summary(session: &SessionRow) -> Value {
    json!({
        "session_id": session.id,
        "user_id": session.user_id,
        "session_type": session.session_type,
        "status": session.status.as_str(),
        "reason": session.ended_reason,
        "started_at": session.created_at.to_string(),
        "completed_at": session.ended_at.unwrap_or(session.updated_at).to_string(),
        "items": session.items,
        "summary": session.summary,
    })
}

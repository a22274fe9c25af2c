//! What a user did with an agent before, as the agent sees it.

use crate::outfit::Sealed;
use domain::agent::session::HISTORY_MAX;
use domain::id::AgentId;
use domain::user::UserId;
use serde_json::{Value, json};
use store::{ReadError, SessionRow, Store};

/// The user's structured sessions with the agent that have ended, sealed; none when there are none.
pub(crate) async fn of_user(store: &Store, agent: AgentId, user: &UserId) -> Result<Option<Sealed>, ReadError> {
    let ended = store.session_history(agent, Some(user.clone()), None, HISTORY_MAX).await?;
    Ok((!ended.is_empty()).then(|| Sealed::json(&ended.iter().map(told).collect::<Vec<Value>>())))
}

fn told(session: &SessionRow) -> Value {
    json!({
        "session_id": session.id,
        "session_type": session.session_type,
        "status": session.status.word(),
        "reason": session.ended_reason,
        "started_at": session.created_at.to_string(),
        "completed_at": session.ended_at.unwrap_or(session.updated_at).to_string(),
        "items": session.items,
        "summary": session.summary,
    })
}

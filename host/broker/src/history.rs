//! The history of an agent's sessions, as the agent sees it in a turn for one of its users.

use crate::readers::readers;
use crate::resolved_config::Sealed;
use domain::event::RunStarted;
use domain::id::AgentId;
use domain::memory::{Searched, searched_for};
use domain::role::AgentRole;
use domain::session::HISTORY_MAX;
use serde_json::{Value, json};
use store::{EndedSession, HistoryFilter, ReadError, SessionRow, Store};

/// The history as a step is shown it.
pub(crate) struct SeenHistory {
    /// The sessions, a JSON array.
    pub(crate) sealed: Sealed,
    /// True if the description of the end of any of them depends on content from outside.
    pub(crate) untrusted: bool,
}

/// Returns the last ended structured sessions of a run's agent that all readers of the run's
/// messages may see, sealed. The user for whom it works has this role with the agent.
///
/// None if there are no such sessions.
pub(crate) async fn seen_by(
    store: &Store,
    started: &RunStarted,
    role: Option<AgentRole>,
) -> Result<Option<SeenHistory>, ReadError> {
    let agent = started.agent;
    // Most agents have no such sessions, and then no other roles are read.
    let alone = searched_for(&[(started.user_id.clone(), role)]);
    if ended_among(store, agent, alone, 1).await?.is_empty() {
        return Ok(None);
    }
    let Some(readers) = readers(store, started, agent).await? else {
        return Ok(None);
    };
    let ended = ended_among(store, agent, searched_for(&readers), HISTORY_MAX).await?;
    if ended.is_empty() {
        return Ok(None);
    }
    let summaries: Vec<Value> = ended.iter().map(|ended| summary(&ended.row)).collect();
    Ok(Some(SeenHistory {
        sealed: Sealed::json(&summaries),
        untrusted: ended.iter().any(|ended| ended.untrusted),
    }))
}

/// Returns the last of an agent's ended structured sessions among these.
async fn ended_among(
    store: &Store,
    agent: AgentId,
    among: Searched,
    limit: usize,
) -> Result<Vec<EndedSession>, ReadError> {
    let user = match among {
        Searched::All => None,
        Searched::Of(user) => Some(user),
        Searched::Nothing => return Ok(Vec::new()),
    };
    let filter = HistoryFilter {
        user,
        deleted: false,
    };
    store.session_history(agent, filter, None, limit).await
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

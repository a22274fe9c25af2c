//! Your sessions with all agents, in groups by agent or as one conversation.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::cursor::List;
use crate::input::{InPath, Params, page_query, read_path};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, AgentSessionsView, SessionRowView};
use axum::extract::State;
use domain::error_code::ErrorCode;
use domain::id::ConversationId;
use domain::user::UserId;
use serde::Serialize;
use store::{PinnedFirst, UserSessionFilter};

error_codes! {
    ConversationErrors = [ConversationNotFound];
}

/// Sessions in one answer.
const SESSIONS_MAX: usize = 200;

page_query! {
    /// Query that selects sessions of all agents.
    pub(super) struct GroupParams: String, 200 of 200 {
        /// `true`: only those that take input.
        open: Option<bool>,
    }
}

/// Sessions of all agents.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SessionGroups {
    /// The agents, each with your sessions. An agent with a pinned session is before those without;
    /// then the agent of the most recently updated session is first.
    agents: Vec<AgentSessionsView>,
    /// True if there may be more sessions.
    more: bool,
    /// The `after` of the next page, an opaque token; none on the last. `GET
    /// /api/agents/{id}/sessions` lists all of one agent.
    next_after: Option<String>,
}

/// Lists your own sessions with all agents, grouped by agent, pinned ones first.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions",
    operation_id = "listAllSessions",
    security(("token" = ["read"])),
    params(GroupParams),
    responses((status = 200, description = "The sessions.", body = SessionGroups)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(params): Params<GroupParams>,
) -> Result<axum::Json<SessionGroups>, Problem> {
    let limit = params.limit()?;
    let open = params.open.unwrap_or_default();
    let after = after(params.after.as_deref())?;
    let listed = api
        .broker()?
        .sessions()
        .by_agent(&caller.user, open, after, limit)
        .await?;
    Ok(axum::Json(SessionGroups {
        agents: listed.agents.iter().map(wire::agent_sessions).collect(),
        more: listed.next_after.is_some(),
        next_after: listed.next_after.map(token),
    }))
}

/// A conversation: sessions of one user's that belong together for clients.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Conversation {
    /// Its id, a UUID.
    id: ConversationId,
    /// The user whose it is.
    user_id: UserId,
    /// Its sessions, the latest first, 200 at most. Deleted ones are left out, and those of agents
    /// that you are not assigned to any more.
    sessions: Vec<SessionRowView>,
    /// True if there may be more sessions.
    more: bool,
}

/// Looks at a conversation of yours.
#[utoipa::path(
    get, path = "/api/conversations/{conversation}", tag = "sessions",
    operation_id = "getConversation",
    security(("token" = ["read"])),
    params(("conversation" = String, Path, description = "UUID of the conversation.")),
    responses((status = 200, description = "The conversation.", body = Conversation)),
)]
pub(super) async fn conversation(
    State(api): State<Api>,
    caller: Caller,
    InPath(conversation): InPath<String>,
) -> Result<axum::Json<Conversation>, Refused<ConversationErrors>> {
    let id: ConversationId = read_path("conversation", &conversation)?;
    let filter = UserSessionFilter {
        conversation: Some(id),
        ..UserSessionFilter::default()
    };
    let found = api
        .broker()?
        .sessions()
        .of_user(&caller.user, filter, SESSIONS_MAX)
        .await?;
    if found.is_empty() {
        let detail = format!("you have no conversation `{id}`");
        return Err(Problem::new(ErrorCode::ConversationNotFound, detail).into());
    }
    Ok(axum::Json(Conversation {
        id,
        user_id: caller.user.clone(),
        sessions: found.iter().map(wire::session_row).collect(),
        more: found.len() == SESSIONS_MAX,
    }))
}

/// Returns the token of a place. Pinned ones come first, and go on in a list of their own.
fn token(place: PinnedFirst) -> String {
    let list = if place.is_pinned {
        List::AllPinned
    } else {
        List::AllUnpinned
    };
    list.token(place.time, place.session)
}

/// Reads the place from the query's `after`.
fn after(token: Option<&str>) -> Result<Option<PinnedFirst>, Problem> {
    let place = |is_pinned| {
        move |(time, session)| PinnedFirst {
            is_pinned,
            time,
            session,
        }
    };
    match List::AllPinned.after(token) {
        Ok(after) => Ok(after.map(place(true))),
        Err(_) => Ok(List::AllUnpinned.after(token)?.map(place(false))),
    }
}

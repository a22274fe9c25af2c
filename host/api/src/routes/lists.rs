//! Lists of sessions and of what is in them: an agent's sessions, its history, the items of a
//! session.

use crate::caller::Caller;
use crate::codes::{self, Refused};
use crate::cursor::List;
use crate::input::{
    Params, Position, SessionInPath, TargetAgent, TargetSession, limit, next_after, page_query,
    read_query,
};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use store::{SessionFilter, SessionRow, SessionStatus};

/// Sessions or items in one list.
const LIST_MAX: usize = 200;

page_query! {
    /// Query that selects a page of sessions.
    pub(super) struct ListParams: String, 200 of 200 {
        /// Only of this type.
        session_type: Option<String>,
        /// Only those that are open, `completed` or `terminated`. `open` stands for every other
        /// status.
        #[param(inline)]
        status: Option<Status>,
        /// Only those for this user.
        user: Option<String>,
        /// `true`: only those that are pinned, the most recently pinned first. `false`: only those
        /// that are not.
        pinned: Option<bool>,
    }
}

/// The state of a session.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// A session that takes input.
    Open,
    /// A structured one that ended well.
    Completed,
    /// A structured one that was ended from outside, failed or expired.
    Terminated,
}

/// An agent's sessions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SessionList {
    /// The most recently updated first. One that is updated after a page was read goes to the
    /// front, and is not on the pages that follow; the others stay where they are, whichever it
    /// was.
    sessions: Vec<wire::SessionRowView>,
    /// The `after` of the next page, an opaque token; none on the last.
    next_after: Option<String>,
}

/// Lists an agent's sessions; for a mentee, their own.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions", tag = "sessions",
    operation_id = "listSessions",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path."), ListParams),
    responses((status = 200, description = "The sessions.", body = SessionList)),
)]
pub(super) async fn sessions(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    Params(params): Params<ListParams>,
) -> Result<axum::Json<SessionList>, Refused<codes::Agent>> {
    let limit = params.limit()?;
    let filter = SessionFilter {
        user: read_query("user", params.user.as_deref())?,
        session_type: params.session_type,
        status: params.status.map(|status| match status {
            Status::Open => SessionStatus::Open,
            Status::Completed => SessionStatus::Completed,
            Status::Terminated => SessionStatus::Terminated,
        }),
        pinned: params.pinned,
    };
    let list = if params.pinned == Some(true) {
        List::Pinned
    } else {
        List::Sessions
    };
    let after = list.after(params.after.as_deref())?;
    let mut sessions = caller
        .reading(&api)?
        .sessions()
        .list(&caller.user, &target, filter, after, limit + 1)
        .await?;
    let next_after = next_after(&mut sessions, limit, |last| {
        let pinned_at = last.pinned_at.filter(|_| list == List::Pinned);
        list.token(pinned_at.unwrap_or(last.updated_at), last.id)
    });
    Ok(axum::Json(SessionList {
        sessions: sessions.iter().map(wire::session_row).collect(),
        next_after,
    }))
}

page_query! {
    /// Query that selects a page of an agent's history.
    pub(super) struct HistoryParams: String, 200 of 200 {
        /// Only those for this user.
        user: Option<String>,
    }
}

/// Structured sessions of an agent that have ended.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SessionHistory {
    /// The latest first.
    sessions: Vec<wire::PastSessionView>,
    /// The `after` of the next page, an opaque token; none on the last.
    next_after: Option<String>,
}

/// Lists an agent's structured sessions that have ended, all of them; for a mentee, their own.
#[utoipa::path(
    get, path = "/api/agents/{id}/history", tag = "sessions",
    operation_id = "listPastSessions",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path."), HistoryParams),
    responses((status = 200, description = "The sessions.", body = SessionHistory)),
)]
pub(super) async fn history(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    Params(params): Params<HistoryParams>,
) -> Result<axum::Json<SessionHistory>, Refused<codes::Agent>> {
    let limit = params.limit()?;
    let of = read_query("user", params.user.as_deref())?;
    let after = List::History.after(params.after.as_deref())?;
    let mut sessions = caller
        .reading(&api)?
        .sessions()
        .ended(&caller.user, &target, of, after, limit + 1)
        .await?;
    let ended_at = |last: &SessionRow| last.ended_at.unwrap_or(last.updated_at);
    let next_after = next_after(&mut sessions, limit, |last| {
        List::History.token(ended_at(last), last.id)
    });
    Ok(axum::Json(SessionHistory {
        sessions: sessions.iter().map(wire::past_session).collect(),
        next_after,
    }))
}

/// Query that selects items of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemParams {
    /// Only items after this one; 0 without.
    #[param(inline)]
    after: Option<Position>,
    /// Maximum number of results, from 1 to 200; 200 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// Items of a session.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ItemList {
    /// The items in the order in which they were recorded.
    items: Vec<wire::ItemView>,
}

/// Lists what was asked and answered in a structured session.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/items", tag = "sessions",
    operation_id = "listItems",
    security(("token" = ["read"])),
    params(SessionInPath, ItemParams),
    responses((status = 200, description = "The items.", body = ItemList)),
)]
pub(super) async fn items(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<ItemParams>,
) -> Result<axum::Json<ItemList>, Refused<codes::SessionOfAgent>> {
    let after = params.after.map_or(0, |Position(after)| after);
    let limit = limit(params.limit, LIST_MAX, LIST_MAX)?;
    let recorded = caller
        .reading(&api)?
        .sessions()
        .items(&caller.user, &target, session, after, limit)
        .await?;
    Ok(axum::Json(ItemList {
        items: wire::items(after, &recorded),
    }))
}

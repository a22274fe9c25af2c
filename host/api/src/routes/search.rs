//! Full-text search over messages.

use crate::caller::Caller;
use crate::codes::{self, Refused};
use crate::input::{Params, existing, limit};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use serde::{Deserialize, Serialize};

/// Messages in one answer, unless others are asked for, and at most.
const HITS: (usize, usize) = (20, 100);

/// Query for a search.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    /// Words to search for. A message with any of them is found, one with more of them before one
    /// with fewer. No character has a special meaning.
    q: String,
    /// Only in sessions of this agent: a UUID or a path.
    agent: Option<String>,
    /// Maximum number of results, from 1 to 100; 20 by default.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// The result of a search.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SearchResult {
    /// The best first; of those that are as good, the latest.
    hits: Vec<wire::FoundView>,
}

/// Searches the messages of users and agents in every session that you see.
///
/// A mentee's search covers their own sessions. Deleted sessions are not searched. A turn is found
/// in the session in which it was made, not in forks that continue from it.
#[utoipa::path(
    get, path = "/api/search", tag = "sessions",
    operation_id = "searchMessages",
    security(("token" = ["read"])),
    params(SearchParams),
    responses((status = 200, description = "The messages that were found.", body = SearchResult)),
)]
pub(super) async fn search(
    State(api): State<Api>,
    caller: Caller,
    Params(SearchParams {
        q,
        agent,
        limit: asked,
    }): Params<SearchParams>,
) -> Result<axum::Json<SearchResult>, Refused<codes::Agent>> {
    let (without, max) = HITS;
    let limit = limit(asked, without, max)?;
    let target = agent.as_deref().map(existing).transpose()?;
    let found = caller
        .reading(&api)?
        .transcripts()
        .search(&caller.user, target.as_ref(), &q, limit)
        .await?;
    Ok(axum::Json(SearchResult {
        hits: found.iter().map(|found| wire::found(found, &q)).collect(),
    }))
}

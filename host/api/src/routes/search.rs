//! Full-text search over what was said.

use crate::caller::Caller;
use crate::input::{Params, existing, limit};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use serde::{Deserialize, Serialize};

/// Messages in one answer, unless others are asked for, and at most.
const HITS: (usize, usize) = (20, 100);

/// What is looked for.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    /// Words. A message with any of them is found, one with more of them before one with fewer; nothing in them has a meaning of its own.
    q: String,
    /// Only in sessions of this agent: a UUID or a path.
    agent: Option<String>,
    /// At most so many, from 1 to 100; 20 without.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SearchResult {
    /// The best first; of those that are as good, the latest.
    hits: Vec<wire::FoundView>,
}

/// Looks for words in what users and agents said, in every session that you see: as a mentee, in your own. Sessions that were deleted are not
/// searched. A turn is found in the session in which it was made, not in forks that go on from it.
#[utoipa::path(
    get, path = "/api/search", tag = "sessions", params(SearchParams),
    responses((status = 200, description = "What was found.", body = SearchResult))
)]
pub(super) async fn search(
    State(api): State<Api>,
    caller: Caller,
    Params(SearchParams { q, agent, limit: asked }): Params<SearchParams>,
) -> Result<axum::Json<SearchResult>, Problem> {
    let (without, max) = HITS;
    let limit = limit(asked, without, max)?;
    let target = agent.as_deref().map(existing).transpose()?;
    let found = caller.reading(&api)?.search(&caller.user, target.as_ref(), &q, limit).await?;
    Ok(axum::Json(SearchResult { hits: found.iter().map(|found| wire::found(found, &q)).collect() }))
}

//! The tree of turns: one turn, the tree of a session, where two threads part.

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{InPath, Params, SessionInPath, TargetSession, next_after, page_query};
use crate::problem::Problem;
use crate::reading::note_compared;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::Other;
use domain::digest::Digest;
use domain::id::{RunId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::OutboundMessageRow;

error_codes! {
    ShowErrors = [TurnNotFound];
    DiffErrors = [ThreadsApart, TurnNotFound] + SessionOfAgent;
}

/// Shows a turn with its messages, its neighbours and the sessions that point to it.
///
/// Only what you see is shown. A turn is visible to everyone who sees a session whose thread
/// contains it, or in which it was made.
#[utoipa::path(
    get, path = "/api/turns/{turn_id}", tag = "sessions",
    operation_id = "getTurn",
    security(("token" = ["read"])),
    params(("turn_id" = TurnId, Path, description = "64 hexadecimal digits.")),
    responses((status = 200, description = "The turn.", body = wire::TurnView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(turn): InPath<String>,
) -> Result<axum::Json<wire::TurnView>, Refused<ShowErrors>> {
    let no_id = || Problem::invalid_id("turn_id", "a turn's id is 64 hexadecimal digits");
    let turn = Digest::from_hex(&turn).map(TurnId).ok_or_else(no_id)?;
    let broker = caller.reading(&api)?;
    let (seen, outbound_messages) = broker.transcripts().turn(&caller.user, turn).await?;
    Ok(axum::Json(wire::turn(&seen, &outbound_messages)))
}

page_query! {
    /// Query that selects a page of a tree.
    pub(super) struct TreeParams: String, 1_000 of 1_000 {}
}

/// A tree of turns.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct TurnTree {
    /// Each after its parent, the root first.
    turns: Vec<wire::TreeTurnView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Shows the tree of which a session's thread is a branch.
///
/// It has the root and every branch that you see, with the sessions that point to them. It is empty
/// as long as there are no messages.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/tree", tag = "sessions",
    operation_id = "listTurns",
    security(("token" = ["read"])),
    params(SessionInPath, TreeParams),
    responses((status = 200, description = "The tree.", body = TurnTree)),
)]
pub(super) async fn tree(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<TreeParams>,
) -> Result<axum::Json<TurnTree>, Refused<codes::SessionOfAgent>> {
    let limit = params.limit()?;
    let no_turn = || {
        Problem::invalid_query(
            "after",
            "after: this is not the `next_after` of a page of a tree",
        )
    };
    let after = params
        .after
        .map(|after| Digest::from_hex(&after).map(TurnId).ok_or_else(no_turn))
        .transpose()?;
    let broker = caller.reading(&api)?;
    let (mut turns, outbound_messages) = broker
        .transcripts()
        .tree(&caller.user, &target, session, after, limit + 1)
        .await?;
    let next_after = next_after(&mut turns, limit, |turn| turn.node.id.to_string());
    let mut of_runs: HashMap<RunId, Vec<OutboundMessageRow>> = HashMap::new();
    for row in outbound_messages {
        if let Some(run) = wire::run_of(&row) {
            of_runs.entry(run).or_default().push(row);
        }
    }
    let turns = turns.iter().map(|turn| {
        let reported = of_runs.remove(&turn.node.run).unwrap_or_default();
        wire::tree_turn(turn, &reported)
    });
    Ok(axum::Json(TurnTree {
        turns: turns.collect(),
        next_after,
    }))
}

/// The other side of a comparison.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffParams {
    /// A session, by its UUID, or a turn, by its 64 hexadecimal digits.
    with: String,
}

/// Compares the thread of a session with that of another session or turn that you see.
///
/// The response has the last turn of both, and the messages in each alone, 1,000 turns at most.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/diff", tag = "sessions",
    operation_id = "compareSession",
    security(("token" = ["read"])),
    params(SessionInPath, DiffParams),
    responses((status = 200, description = "Where they part.", body = wire::PartingView)),
)]
pub(super) async fn diff(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(DiffParams { with }): Params<DiffParams>,
) -> Result<axum::Json<wire::PartingView>, Refused<DiffErrors>> {
    let other = Digest::from_hex(&with)
        .map(|turn| Other::Turn(TurnId(turn)))
        .or_else(|| with.parse().ok().map(Other::Session));
    let neither = || {
        let detail = "with: a session's id is a UUID, a turn's has 64 hexadecimal digits";
        Problem::invalid_query("with", detail)
    };
    let other = other.ok_or_else(neither)?;
    let parting = caller
        .reading(&api)?
        .transcripts()
        .parting(&caller.user, &target, session, other)
        .await?;
    // The path names one side alone.
    note_compared(&api, &caller, other).await?;
    Ok(axum::Json(wire::parting(&parting)))
}

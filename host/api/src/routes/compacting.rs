//! Compacting a thread before it has to be.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, SessionInPath, TargetSession};
use crate::state::Api;
use axum::extract::State;
use domain::id::{RunId, SessionId};
use http::StatusCode;
use serde::Serialize;

error_codes! {
    CompactErrors = [
        DefinitionGone, NothingToCompact, RunOpen, SessionClosed, SessionQuarantined,
        SessionStructured,
    ] + AgentCommand + Session;
}

/// A thread is being compacted.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Compacting {
    /// The session.
    session_id: SessionId,
    /// The run that does it: its events say what comes of it.
    run_id: RunId,
}

/// Starts to compact a chat's thread.
///
/// A turn of its own summarises the conversation. From there on, models see the thread from the
/// summary on, with the newest turns verbatim, half of the thread at most. The summarised turns
/// stay in the tree, where they can be found, exported and forked from. Messages sent meanwhile
/// lead the next turn. A thread that fills its model's window is compacted automatically.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/compact", tag = "sessions",
    operation_id = "compactSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 202, description = "It has begun.", body = Compacting)),
)]
pub(super) async fn compact(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<Compacting>), Refused<CompactErrors>> {
    let run = api
        .command()?
        .runs()
        .compact(key.by(&caller.user), &target, session)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(Compacting {
            session_id: session,
            run_id: run,
        }),
    ))
}

//! Compacting a thread before it has to be.

use crate::caller::Caller;
use crate::codes::{self, AGENT_COMMAND, DRIVER, RECORDING, SESSION};
use crate::input::{Idempotency, IdempotencyKey, SessionInPath, TargetSession};
use crate::problem::Problem;
use crate::state::Api;
use axum::extract::State;
use domain::id::{RunId, SessionId};
use http::StatusCode;
use serde::Serialize;

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
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, SESSION, DRIVER,
        &[
            (409, "DEFINITION_GONE"),
            (409, "NOTHING_TO_COMPACT"),
            (409, "RUN_OPEN"),
            (409, "SESSION_CLOSED"),
            (409, "SESSION_STRUCTURED"),
        ],
    ])))),
)]
pub(super) async fn compact(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<Compacting>), Problem> {
    let run = api
        .command()?
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

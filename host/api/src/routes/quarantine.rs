//! Sessions for which nothing is done.

use crate::codes::{Refused, error_codes};
use crate::input::{InPath, read_path};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use domain::id::SessionId;
use http::StatusCode;
use serde::Serialize;

error_codes! {
    ReleaseErrors = [NotQuarantined] + Recording;
}

/// The sessions in quarantine.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct QuarantineList {
    /// By when they were put there.
    quarantined: Vec<wire::QuarantinedView>,
}

/// Lists the sessions in quarantine. Nothing is done for them, because nothing can be or because
/// the operator said so at the start: messages to them are accepted and wait.
#[utoipa::path(
    get, path = "/api/quarantine", tag = "operator",
    operation_id = "listQuarantinedSessions",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The sessions.", body = QuarantineList)),
)]
pub(super) async fn list(State(api): State<Api>) -> Result<axum::Json<QuarantineList>, Problem> {
    let quarantined = api.broker()?.quarantines().list();
    Ok(axum::Json(QuarantineList {
        quarantined: quarantined.iter().map(wire::quarantined).collect(),
    }))
}

/// A session that was released.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Released {
    /// Its id.
    session_id: SessionId,
}

/// Releases a session from quarantine. The host goes on with it at once, and puts it back when it
/// still cannot.
#[utoipa::path(
    post, path = "/api/quarantine/{id}/release", tag = "operator",
    operation_id = "releaseQuarantinedSession",
    security(("token" = ["admin"])),
    params(("id" = SessionId, Path, description = "The session's id.")),
    responses((status = 202, description = "It was released.", body = Released)),
)]
pub(super) async fn release(
    State(api): State<Api>,
    InPath(id): InPath<String>,
) -> Result<(StatusCode, axum::Json<Released>), Refused<ReleaseErrors>> {
    let session: SessionId = read_path("id", &id)?;
    api.command()?.quarantines().release(session)?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(Released {
            session_id: session,
        }),
    ))
}

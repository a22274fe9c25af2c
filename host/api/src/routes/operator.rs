//! What an operator asks of the store of a running host.

use crate::problem::Problem;
use crate::state::Api;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use std::os::unix::fs::DirBuilderExt;
use store::{BackupError, Verification};
use uuid::Uuid;

/// A backup.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Backup {
    /// The file, on the host's machine. Move it away: backups are not cleaned up.
    file: String,
    /// The position of the last event when it was begun; it holds that one at least.
    position: u64,
}

/// Makes a backup, consistent as of one point in time, in the folder `backups` of the data folder.
#[utoipa::path(post, path = "/api/backups", tag = "operator", responses((status = 201, description = "It is complete and durable.", body = Backup)))]
pub(super) async fn back_up(State(api): State<Api>) -> Result<(StatusCode, axum::Json<Backup>), Problem> {
    let store = api.broker()?.store();
    let position = *store.durable().borrow();
    let folder = api.backups();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
    let file = folder.join(format!("{}.sqlite", Uuid::now_v7()));
    store.backup(&file).await.map_err(|error: BackupError| failed(&error))?;
    Ok((StatusCode::CREATED, axum::Json(Backup { file: file.display().to_string(), position })))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::warn!(error, "a backup was not made");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "BACKUP_FAILED", "the backup was not made; the host's log says why")
}

/// What a verification found.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Verified {
    /// Whether everything is as it was stored.
    intact: bool,
    /// Events that were found in order.
    events: u64,
    /// Those of them whose payload was erased.
    erased: u64,
    /// Turns whose id was computed again.
    turns: u64,
    /// The hash of the last event that was found in order.
    head: String,
    /// The position of the first event that is wrong.
    fault_position: Option<u64>,
    /// What is wrong with it.
    fault: Option<String>,
}

/// Verifies the whole chain of events. Takes about a second for 100,000 events; everything else goes on meanwhile.
#[utoipa::path(
    post, path = "/api/verifications", tag = "operator", responses((status = 200, description = "What was found.", body = Verified))
)]
pub(super) async fn verify(State(api): State<Api>) -> Result<axum::Json<Verified>, Problem> {
    let Verification { events, erased, turns, head, fault } = api.broker()?.store().verify().await.map_err(broker::Error::from)?;
    let (fault_position, problem) = fault.map(|fault| (fault.position, fault.problem)).unzip();
    let intact = problem.is_none();
    Ok(axum::Json(Verified { intact, events, erased, turns, head: head.hex(), fault_position, fault: problem }))
}

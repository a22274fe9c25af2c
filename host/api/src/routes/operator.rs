//! Maintenance of the store of a running host, by the operator.

use crate::codes::{Refused, error_codes};
use crate::problem::Problem;
use crate::state::Api;
use axum::extract::State;
use domain::error_code::ErrorCode;
use http::StatusCode;
use serde::Serialize;
use std::os::unix::fs::DirBuilderExt;
use store::{BackupError, Health, RebuildError, RebuildStage, RebuildState};
use uuid::Uuid;

error_codes! {
    BackUpErrors = [BackupFailed];
    RebuildErrors = [PurgeRunning, RebuildRunning, ShuttingDown];
}

/// A backup.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Backup {
    /// The file, on the host's machine. Move it away: backups are not cleaned up.
    file: String,
    /// The position of the last event when it was begun; it holds that one at least.
    position: u64,
}

/// Makes a backup, consistent as of one point in time, in the folder `backups` of the data folder.
#[utoipa::path(
    post, path = "/api/backups", tag = "operator",
    operation_id = "createBackup",
    security(("token" = ["admin"])),
    responses((status = 201, description = "It is complete and durable.", body = Backup)),
)]
pub(super) async fn back_up(
    State(api): State<Api>,
) -> Result<(StatusCode, axum::Json<Backup>), Refused<BackUpErrors>> {
    let store = api.broker()?.maintenance();
    let position = *store.durable().borrow();
    let folder = api.backups();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| failed(&error))?;
    let file = folder.join(format!("{}.sqlite", Uuid::now_v7()));
    store
        .backup(&file)
        .await
        .map_err(|error: BackupError| failed(&error))?;
    Ok((
        StatusCode::CREATED,
        axum::Json(Backup {
            file: file.display().to_string(),
            position,
        }),
    ))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::warn!(error, "a backup was not made");
    Problem::new(
        ErrorCode::BackupFailed,
        "the backup was not made; the host's log says why",
    )
}

/// The result of a verification.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Verified {
    /// True if everything is as it was stored.
    intact: bool,
    /// Events that were found in order.
    events: u64,
    /// Number of those whose payload was erased.
    erased: u64,
    /// Turns whose id was computed again.
    turns: u64,
    /// The hash of the last event that was found in order.
    head: String,
    /// The position of the first event that is wrong.
    fault_position: Option<u64>,
    /// A description of the fault.
    fault: Option<String>,
}

/// Verifies the whole chain of events. Takes about a second for 100,000 events; everything else
/// goes on meanwhile.
#[utoipa::path(
    post, path = "/api/verifications", tag = "operator",
    operation_id = "verifyStore",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The result.", body = Verified)),
)]
pub(super) async fn verify(State(api): State<Api>) -> Result<axum::Json<Verified>, Problem> {
    let found = api.broker()?.maintenance().verify().await?;
    Ok(axum::Json(Verified {
        intact: found.fault.is_none(),
        events: found.events,
        erased: found.erased,
        turns: found.turns,
        head: found.head.hex(),
        fault_position: found.fault.as_ref().map(|fault| fault.position),
        fault: found.fault.map(|fault| fault.problem),
    }))
}

/// The state of the store, in numbers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct StoreState {
    /// The health of the store. `well`; `full`: the disk is full; `failing`: the last transaction
    /// failed and none has become durable since; `stalled`: the disk does not respond.
    health: Health,
    /// Bytes of the write-ahead log.
    log_bytes: u64,
    /// Size of the log in bytes from which on the reads that prevent it from being reset are ended.
    log_bytes_max: u64,
    /// The reason why it could not be moved to the database at the last try.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_failing: Option<String>,
    /// Reads that were ended because they were in its way, since the host was started, as all that
    /// follows.
    reads_ended: u64,
    /// Commits that were asked for.
    commits: u64,
    /// Number of those that were refused because too many waited.
    busy: u64,
    /// Transactions that became durable, each with one sync of the disk.
    transactions: u64,
    /// Events in them.
    events: u64,
    /// Transactions that failed as a whole.
    failures: u64,
    /// Number of times that the log was moved to the database, failed tries included.
    checkpoints: u64,
}

/// Reports the state of the store.
#[utoipa::path(
    get, path = "/api/store", tag = "operator",
    operation_id = "getStoreState",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The current state.", body = StoreState)),
)]
pub(super) async fn store_state(State(api): State<Api>) -> Result<axum::Json<StoreState>, Problem> {
    let store = api.broker()?.maintenance();
    let log = store.log_state();
    let stats = store.stats();
    Ok(axum::Json(StoreState {
        health: store.health(),
        log_bytes: log.bytes,
        log_bytes_max: log.bytes_max,
        log_failing: log.failing,
        reads_ended: log.reads_ended,
        commits: stats.commits,
        busy: stats.busy,
        transactions: stats.transactions,
        events: stats.events,
        failures: stats.failures,
        checkpoints: stats.checkpoints,
    }))
}

/// A rebuild, which folds all events again: its progress or its result.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub(super) struct Rebuild {
    /// Its state.
    state: RebuildProgress,
    /// The current stage of a running rebuild.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<RebuildStage>,
    /// Events that were folded so far.
    events: u64,
    /// Events that there were when a running one began.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u64>,
    /// The tables that were not as the events say, and are now.
    replaced: Vec<Replaced>,
    /// True if the full-text index was replaced.
    index_replaced: bool,
    /// The time for which commits waited, in microseconds.
    paused_us: u64,
    /// The reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The state of a rebuild.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = RebuildState)]
enum RebuildProgress {
    /// None was asked for since the host was started.
    #[default]
    Never,
    /// It is under way.
    Running,
    /// It has ended well.
    Done,
    /// It failed, and changed nothing.
    Failed,
}

/// A table that was not as the events say.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Replaced {
    /// The table.
    table: &'static str,
    /// Rows that had other values.
    changed: u64,
    /// Rows that were not there.
    missing: u64,
    /// Rows that should not have been there.
    superfluous: u64,
}

impl From<RebuildState> for Rebuild {
    fn from(state: RebuildState) -> Self {
        match state {
            RebuildState::Never => Self::default(),
            RebuildState::Running { stage, events, of } => Self {
                state: RebuildProgress::Running,
                stage: Some(stage),
                events,
                of: Some(of),
                ..Self::default()
            },
            RebuildState::Done(rebuilt) => {
                let replaced = rebuilt.replaced.into_iter().map(|it| Replaced {
                    table: it.table,
                    changed: it.changed,
                    missing: it.missing,
                    superfluous: it.superfluous,
                });
                let paused_us = u64::try_from(rebuilt.paused.as_micros()).unwrap_or(u64::MAX);
                Self {
                    state: RebuildProgress::Done,
                    events: rebuilt.events,
                    replaced: replaced.collect(),
                    index_replaced: rebuilt.index_replaced,
                    paused_us,
                    ..Self::default()
                }
            }
            RebuildState::Failed { reason } => Self {
                state: RebuildProgress::Failed,
                reason: Some(reason),
                ..Self::default()
            },
        }
    }
}

/// Starts a rebuild: folds all events again, and replaces data that does not match them.
///
/// Everything else continues meanwhile.
#[utoipa::path(
    post, path = "/api/rebuilds", tag = "operator",
    operation_id = "createRebuild",
    security(("token" = ["admin"])),
    responses((status = 202, description = "It has begun.", body = Rebuild)),
)]
pub(super) async fn rebuild(
    State(api): State<Api>,
) -> Result<(StatusCode, axum::Json<Rebuild>), Refused<RebuildErrors>> {
    let store = api.command()?.maintenance();
    // Whoever wants to know what it comes to asks for it.
    store
        .begin_rebuild()
        .map(drop)
        .map_err(|error| match error {
            RebuildError::Running => {
                let detail = "a rebuild is in progress; GET /api/rebuilds reports its progress";
                Problem::new(ErrorCode::RebuildRunning, detail)
            }
            RebuildError::Purging => {
                let detail = "a purge is in progress; try again when it has ended";
                Problem::new(ErrorCode::PurgeRunning, detail)
            }
            RebuildError::Closed => Problem::shutting_down(),
            RebuildError::Io { .. } | RebuildError::Database { .. } => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a rebuild could not be started"
                );
                Problem::unavailable()
            }
        })?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(store.rebuild_state().into()),
    ))
}

/// Reports the progress of the last rebuild, or its result.
#[utoipa::path(
    get, path = "/api/rebuilds", tag = "operator",
    operation_id = "getRebuild",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The last one.", body = Rebuild)),
)]
pub(super) async fn rebuilt(State(api): State<Api>) -> Result<axum::Json<Rebuild>, Problem> {
    Ok(axum::Json(
        api.broker()?.maintenance().rebuild_state().into(),
    ))
}

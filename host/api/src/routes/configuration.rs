//! The configuration of the host: reading it again.

use crate::caller::Caller;
use crate::codes::{self, RECORDING};
use crate::problem::Problem;
use crate::reloads::{ReloadReport, ReloadRequest};
use crate::state::Api;
use axum::extract::State;
use domain::difference::{Change, DIFFERENCES_MAX, Difference};
use serde::Serialize;
use tokio::sync::oneshot;

/// The configuration that is in force, and its differences from the one before.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ReloadView {
    /// The configuration that is in force, by its digest. The start of every turn under it names
    /// it, and so does the event `config.reloaded.v1`.
    configuration: String,
    /// The one that was in force before; the same if nothing has changed.
    replaces: String,
    /// The keys at which they differ, 256 at most, without their values.
    differences: Vec<DifferenceView>,
    /// Number of differences beyond these.
    left_out: usize,
    /// The keys that were changed since the host started and are read at a start only. What they
    /// say now is not in force.
    needs_restart: Vec<String>,
    /// Number of definitions that users made and that fit no template any more. The list of
    /// definitions has them with the reasons.
    definitions_left_out: usize,
}

/// A key of the configuration with another value.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct DifferenceView {
    /// The key, such as `agents[assistant].toolDenylist`.
    #[schema(example = "agents[assistant].toolDenylist")]
    key: String,
    /// The kind of the difference.
    change: ChangeView,
}

/// The kind of a difference.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeView {
    /// The key is there and was not.
    Added,
    /// The key was there and is not.
    Removed,
    /// The key has another value.
    Changed,
}

impl From<Difference> for DifferenceView {
    fn from(difference: Difference) -> Self {
        Self {
            key: difference.key,
            change: match difference.change {
                Change::Added => ChangeView::Added,
                Change::Removed => ChangeView::Removed,
                Change::Changed => ChangeView::Changed,
            },
        }
    }
}

impl From<ReloadReport> for ReloadView {
    fn from(report: ReloadReport) -> Self {
        let left_out = report.differences.len().saturating_sub(DIFFERENCES_MAX);
        let differences = report.differences.into_iter().take(DIFFERENCES_MAX);
        Self {
            configuration: report.configuration.reference(),
            replaces: report.replaces.reference(),
            differences: differences.map(DifferenceView::from).collect(),
            left_out,
            needs_restart: report.needs_restart,
            definitions_left_out: report.definitions_left_out,
        }
    }
}

/// Reads the file of the configuration again and puts it in force as a whole.
///
/// It is checked before anything changes. If anything in it is wrong, all of it is refused, and
/// what was in force stays in force. Every turn that begins after the answer is under it. A turn
/// that has begun keeps its tools, models and limits, less what was taken away. The file is also
/// read when it changes, and on SIGHUP.
#[utoipa::path(
    post, path = "/api/config/reload", tag = "operator",
    operation_id = "reloadConfig",
    security(("token" = ["admin"])),
    responses((status = 200, description = "It is in force.", body = ReloadView)),
    extensions(("x-codes" = json!(codes::join(&[RECORDING, &[(422, "CONFIG_REFUSED")]])))),
)]
pub(super) async fn reload(
    State(api): State<Api>,
    caller: Caller,
) -> Result<axum::Json<ReloadView>, Problem> {
    api.command()?;
    let (reply, answer) = oneshot::channel();
    api.ask_to_reload(ReloadRequest {
        user: caller.user,
        reply,
    })?;
    let read = answer.await.map_err(|_| Problem::shutting_down())?;
    Ok(axum::Json(read?.into()))
}

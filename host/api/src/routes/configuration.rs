//! The configuration of the host: comparing its file with what is in force, and reading it again.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::problem::Problem;
use crate::reloads::{PendingConfig, PendingFinding, ReloadReport, ReloadRequest};
use crate::state::Api;
use axum::extract::State;
use domain::difference::{Change, DIFFERENCES_MAX, Difference};
use domain::grant::BucketScope;
use serde::Serialize;
use serde_json::Value;
use store::Kept;
use tokio::sync::oneshot;

error_codes! {
    ReloadErrors = [ConfigRefused] + Recording;
}

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
    /// Granted folders that were opened anew, because others are in their places now.
    folders_opened: Vec<String>,
    /// Sentences on what is left behind, or opened to others who did not have it.
    left_behind: Vec<String>,
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
            folders_opened: report.folders_opened,
            left_behind: report.left_behind,
            definitions_left_out: report.definitions_left_out,
        }
    }
}

/// Reads the file of the configuration again and puts it in force as a whole.
///
/// It is checked before anything changes. If anything in it is wrong, all of it is refused, and
/// what was in force stays in force. Every turn that begins after the answer is under it. A turn
/// that has begun keeps its tools, models and limits, less what was taken away. The file is also
/// read on SIGHUP, and when it changes unless `server.reload` is `manual`.
#[utoipa::path(
    post, path = "/api/config/reload", tag = "operator",
    operation_id = "reloadConfig",
    security(("token" = ["admin"])),
    responses((status = 200, description = "It is in force.", body = ReloadView)),
)]
pub(super) async fn reload(
    State(api): State<Api>,
    caller: Caller,
) -> Result<axum::Json<ReloadView>, Refused<ReloadErrors>> {
    api.command()?;
    let (reply, answer) = oneshot::channel();
    api.ask_to_reload(ReloadRequest::Apply {
        user: caller.user,
        reply,
    })?;
    let read = answer.await.map_err(|_| Problem::shutting_down())?;
    Ok(axum::Json(read?.into()))
}

/// The content of the configuration file, beside what is in force.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PendingView {
    /// The file, on the host's machine.
    file: String,
    /// The way in which a changed file is put in force: `auto`, by itself, or `manual`.
    reload: &'static str,
    /// The reason why all of it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The findings of a check of it in the environment of the host.
    findings: Vec<PendingFindingView>,
    /// Findings on what it would leave behind or open to others, of what is kept under the names in
    /// force.
    left_behind: Vec<PendingFindingView>,
    /// The keys with other values than those in force.
    changes: Vec<PendingChangeView>,
    /// The keys that were changed since the host started and are read at a start only.
    needs_restart: Vec<String>,
    /// Granted folders in whose places others are now: reading the configuration again opens those.
    moved_folders: Vec<String>,
    /// Content that the host keeps under names of the configuration.
    kept: KeptContentView,
    /// The configuration in force, in which agents and personas have their names for keys. Secrets
    /// are named in it, without their values.
    #[schema(value_type = Object)]
    in_force: Value,
}

/// A finding of the check of a configuration.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PendingFindingView {
    /// `error`, with which no host starts, or `warning`.
    severity: &'static str,
    /// The key of the configuration.
    key: String,
    /// The fault and its fix.
    message: String,
}

/// A key of the configuration with another value than the one in force.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PendingChangeView {
    /// The key, such as `agents.assistant.toolDenylist`.
    key: String,
    /// The value in force, as JSON. Missing for a key or an entry that is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The value in the file, as JSON. Missing for a key or an entry that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    /// The agents whose lists let them call it, for a tool that is new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<String>,
    /// True if only a restart brings it.
    needs_restart: bool,
}

/// Content that the host keeps under names of the configuration.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct KeptContentView {
    /// The buckets of components that have keys.
    buckets: Vec<KeptBucketView>,
    /// The connectors of which there are connector keys.
    connectors: Vec<KeptConnectorView>,
    /// The definitions of which there are agents, without those that users made.
    definitions: Vec<KeptDefinitionView>,
    /// Number of users of whom anything is stored.
    users: u64,
}

/// The people who are known by a connector.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct KeptConnectorView {
    /// The connector.
    name: String,
    /// Number of connector keys.
    keys: u64,
}

/// The living agents of a definition.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct KeptDefinitionView {
    /// Its `agentId`.
    name: String,
    /// Number of agents.
    agents: u64,
    /// Number of their open sessions.
    open_sessions: u64,
    /// Number of their open turns.
    open_turns: u64,
}

/// The content of one bucket of a component in one scope, of all its owners together.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct KeptBucketView {
    /// The component.
    component: String,
    /// The bucket.
    bucket: String,
    /// The calls that share it: `component`, `user`, `agent` or `session`.
    #[schema(value_type = String)]
    scope: BucketScope,
    /// Number of keys.
    keys: u64,
}

impl From<PendingFinding> for PendingFindingView {
    fn from(it: PendingFinding) -> Self {
        Self {
            severity: if it.is_error { "error" } else { "warning" },
            key: it.key,
            message: it.message,
        }
    }
}

impl From<Kept> for KeptContentView {
    fn from(kept: Kept) -> Self {
        let buckets = kept.buckets.into_iter().map(|it| KeptBucketView {
            component: it.component,
            bucket: it.bucket,
            scope: it.scope,
            keys: it.keys,
        });
        let connectors = kept.connectors.into_iter().map(|it| KeptConnectorView {
            name: it.name,
            keys: it.keys,
        });
        let definitions = kept.definitions.into_iter().map(|it| KeptDefinitionView {
            name: it.name,
            agents: it.agents,
            open_sessions: it.open_sessions,
            open_turns: it.open_turns,
        });
        Self {
            buckets: buckets.collect(),
            connectors: connectors.collect(),
            definitions: definitions.collect(),
            users: kept.users,
        }
    }
}

impl PendingView {
    fn new(pending: PendingConfig, kept: Kept) -> Self {
        let findings = pending.findings.into_iter().map(PendingFindingView::from);
        let left_behind = pending.left_behind.into_iter();
        let changes = pending.changes.into_iter().map(|it| PendingChangeView {
            key: it.key,
            before: it.before,
            after: it.after,
            agents: it.agents,
            needs_restart: it.needs_restart,
        });
        Self {
            file: pending.file,
            reload: if pending.is_taken_up {
                "auto"
            } else {
                "manual"
            },
            refused: pending.refused,
            findings: findings.collect(),
            left_behind: left_behind.map(PendingFindingView::from).collect(),
            changes: changes.collect(),
            needs_restart: pending.needs_restart,
            moved_folders: pending.moved_folders,
            kept: kept.into(),
            in_force: pending.in_force,
        }
    }
}

/// Compares the file of the configuration with what is in force, which stays.
///
/// It is checked in the environment of the host: with its variables, its secrets and its rights.
#[utoipa::path(
    get, path = "/api/config/pending", tag = "operator",
    operation_id = "comparePendingConfig",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The differences.", body = PendingView)),
)]
pub(super) async fn pending(State(api): State<Api>) -> Result<axum::Json<PendingView>, Problem> {
    let kept = api.broker()?.maintenance().kept().await?;
    let (reply, answer) = oneshot::channel();
    api.ask_to_reload(ReloadRequest::Compare { reply })?;
    let pending = answer.await.map_err(|_| Problem::shutting_down())?;
    Ok(axum::Json(PendingView::new(pending, kept)))
}

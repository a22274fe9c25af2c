//! Importing sessions of the system that this one replaces.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::Json;
use crate::problem::Problem;
use crate::state::Api;
use axum::extract::State;
use domain::import::{OldSessions, Voucher, read};
use serde::{Deserialize, Serialize};
use serde_json::Value;

error_codes! {
    ImportErrors = [ConversationTaken, Invalid] + Recording;
}

/// Bytes of an issuer.
const ISSUER_BYTES_MAX: usize = 2_000;

/// A document of old sessions.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LegacyImport)]
pub(super) struct Document {
    /// `agent-host.sessions/1`.
    format: String,
    /// The issuer whose tokens name the users, as `server.identity` has it. Needed when the user
    /// ids are the ones in its tokens.
    issuer: Option<String>,
    /// True to check the import only, without importing anything. The report then has zeros.
    #[serde(default)]
    check: bool,
    /// The sessions, in any order. Each has `user_id`, `session_id` (or `id`) and `conversation_id`
    /// (UUIDs), `session_type`, `status` (`pending`, `active`, `awaiting_client_action`,
    /// `completed`, `expired` or `terminated`) and `started_at` (or `created_at`). Optional are
    /// `items` (`id`, `sequence`, `agent_prompt`, `client_action`, `user_response`, `evaluation`,
    /// `started_at`, `completed_at`, `response_time_ms`), `current_item_id`, `pending_action`,
    /// `ui_state`, `completed_at`, `terminated_reason` and `config`. `config` is what the session
    /// was opened with; its `time_limit_seconds` counts from the session's start. Times are in the
    /// format of ISO 8601. Other fields are ignored. All sessions are checked before any is
    /// imported.
    #[schema(value_type = Vec<Object>)]
    sessions: Vec<Value>,
}

/// The result of an import.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
#[schema(as = LegacyImportReport)]
pub(super) struct Report {
    /// Sessions that joined the history of their agent.
    ended: u64,
    /// Sessions that go on, led by their agent from its beginning.
    active: u64,
    /// Sessions that were imported before.
    known: u64,
    /// The agents that they belong to: one for each user and session type.
    agents: u64,
}

/// Imports sessions of the old system: one agent for each user and session type. Done again, it
/// imports nothing again.
#[utoipa::path(
    post, path = "/api/import", tag = "operator",
    operation_id = "importLegacySessions",
    security(("token" = ["admin"])),
    request_body = Document,
    responses((status = 200, description = "They are here.", body = Report)),
)]
pub(super) async fn import(
    State(api): State<Api>,
    caller: Caller,
    Json(document): Json<Document>,
) -> Result<axum::Json<Report>, Refused<ImportErrors>> {
    let issuer = document.issuer.map(|issuer| vouching(&api, issuer));
    let old = OldSessions {
        format: document.format,
        issuer: issuer.transpose()?,
        sessions: document.sessions,
    };
    let sessions = read(&old, api.broker()?.clock().now())
        .map_err(|fault| Problem::invalid_field(&fault.field, fault.message))?;
    let broker = api.command()?;
    if document.check {
        broker.imports().check(&sessions).await?;
        return Ok(axum::Json(Report::default()));
    }
    let imported = broker.imports().run(&caller.user, &sessions).await?;
    Ok(axum::Json(Report {
        ended: imported.ended,
        active: imported.active,
        known: imported.known,
        agents: imported.agents,
    }))
}

/// Returns an issuer, and how user ids are derived for it. For an issuer that is not trusted this
/// is unknown.
fn vouching(api: &Api, issuer: String) -> Result<Voucher, Problem> {
    let invalid = |detail: String| Problem::invalid_field("/issuer", detail);
    if issuer.is_empty() || issuer.len() > ISSUER_BYTES_MAX || issuer.chars().any(char::is_control)
    {
        return Err(invalid(format!(
            "an issuer must have 1 to {ISSUER_BYTES_MAX} bytes and no control characters"
        )));
    }
    match api.access().naming_of(&issuer) {
        Some(naming) => Ok(Voucher { issuer, naming }),
        None => Err(invalid(format!(
            "this host does not trust the issuer `{issuer}`; add it to `server.identity`, \
             and import again"
        ))),
    }
}

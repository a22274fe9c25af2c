//! Importing sessions of the system that this one replaces.

use crate::caller::Caller;
use crate::input::Json;
use crate::problem::{Place, Problem};
use crate::state::Api;
use axum::extract::State;
use domain::import::{OldSessions, Voucher, read};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of an issuer.
const ISSUER_BYTES_MAX: usize = 2_000;

/// A document of old sessions.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// `agent-host.sessions/1`.
    format: String,
    /// The issuer whose tokens the users come with, as `server.identity` has it, when their ids are what its tokens call them.
    issuer: Option<String>,
    /// Only look whether it can be imported, and import nothing: the report then has zeros.
    #[serde(default)]
    check: bool,
    /// The sessions, in any order: `user_id`, `session_id` (or `id`) and `conversation_id` (UUIDs), `session_type`, `status` (`pending`,
    /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`), `started_at` (or `created_at`), and as far as there are
    /// any `items` (`id`, `sequence`, `agent_prompt`, `client_action`, `user_response`, `evaluation`, `started_at`, `completed_at`,
    /// `response_time_ms`), `current_item_id`, `pending_action`, `ui_state`, `completed_at`, `terminated_reason` and `config` (what it was
    /// opened with; `time_limit_seconds` of it counts from when it began). Times are ISO 8601. Whatever else they have is ignored. All of
    /// it is checked before anything is imported.
    #[schema(value_type = Vec<Object>)]
    sessions: Vec<Value>,
}

/// What an import came to.
#[derive(Debug, Serialize, utoipa::ToSchema)]
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

/// Imports sessions of the old system: one agent for each user and session type. Done again, it imports nothing again.
#[utoipa::path(
    post, path = "/api/import", tag = "operator", request_body = Document,
    responses((status = 200, description = "They are here.", body = Report))
)]
pub(super) async fn import(State(api): State<Api>, caller: Caller, Json(document): Json<Document>) -> Result<axum::Json<Report>, Problem> {
    let Document { format, issuer, check, sessions } = document;
    let issuer = issuer.map(|issuer| vouching(&api, issuer)).transpose()?;
    let sessions = read(&OldSessions { format, issuer, sessions }, api.access().clock().now())
        .map_err(|fault| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", fault.message).at(Place::Body(&fault.field)))?;
    let broker = api.command()?;
    if check {
        broker.check_import(&sessions).await?;
        return Ok(axum::Json(Report { ended: 0, active: 0, known: 0, agents: 0 }));
    }
    let broker::Imported { ended, active, known, agents } = broker.import(&caller.user, &sessions).await?;
    Ok(axum::Json(Report { ended, active, known, agents }))
}

/// An issuer, and how its users are called here. Of one that is not trusted nobody could say it.
fn vouching(api: &Api, issuer: String) -> Result<Voucher, Problem> {
    let invalid = |detail: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", detail).at(Place::Body("/issuer"));
    if issuer.is_empty() || issuer.len() > ISSUER_BYTES_MAX || issuer.chars().any(char::is_control) {
        return Err(invalid(format!("an issuer has 1 to {ISSUER_BYTES_MAX} bytes and no control characters")));
    }
    match api.access().naming_of(&issuer) {
        Some(naming) => Ok(Voucher { issuer, naming }),
        None => Err(invalid(format!("`{issuer}` is no issuer that this host trusts; add it to `server.identity`, and import again"))),
    }
}

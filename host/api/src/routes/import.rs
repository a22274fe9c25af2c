//! Importing sessions of the system that this one replaces.

use crate::caller::Caller;
use crate::input::Json;
use crate::problem::{Place, Problem};
use crate::state::Api;
use axum::extract::State;
use domain::import::{OldSessions, read};
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
    /// The sessions, in any order: `user_id`, `session_id` (or `id`) and `conversation_id` (UUIDs), `session_type`, `status` (`pending`,
    /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`), `started_at` (or `created_at`), and as far as there are
    /// any `items` (`agent_prompt`, `client_action`, `user_response`, `evaluation`, `completed_at`), `completed_at`,
    /// `terminated_reason` and `config` (what a session that goes on is opened with; its time limit counts from the import). Times are ISO 8601. Whatever else they have is ignored.
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
    let Document { format, issuer, sessions } = document;
    if issuer.as_ref().is_some_and(|issuer| issuer.is_empty() || issuer.len() > ISSUER_BYTES_MAX || issuer.chars().any(char::is_control)) {
        let detail = format!("an issuer has 1 to {ISSUER_BYTES_MAX} bytes and no control characters");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", detail).at(Place::Body("/issuer")));
    }
    let sessions = read(OldSessions { format, issuer, sessions }).map_err(|complaint| {
        let field = complaint.split_once(": ").map_or("/sessions", |(field, _)| field).to_owned();
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", complaint).at(Place::Body(&field))
    })?;
    let broker::Imported { ended, active, known, agents } = api.command()?.import(&caller.user, sessions).await?;
    Ok(axum::Json(Report { ended, active, known, agents }))
}

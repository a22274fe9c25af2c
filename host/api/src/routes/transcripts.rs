//! Sessions as files of JSON lines, in the dialects of transcripts: one out, one in.
//!
//! Nothing else in this crate uses it. Deleting it takes this file and its two lines in
//! `routes.rs`, `mod transcripts;` and `.merge(transcripts::routes())`: 210 lines. The tests' lists
//! of routes name its two routes.

use super::files::{FileContent, media_type, read_file};
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, Params, SessionInPath, TargetAgent, TargetSession,
};
use crate::respond::Created;
use crate::routing::routes;
use crate::state::Api;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use broker::{ImportSession, TRANSCRIPT_BYTES_MAX};
use domain::id::{AgentId, SessionId};
use domain::transcript::dialect::Dialect;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    ExportErrors = [ExportTooLarge, NotExportable] + SessionOfAgent;
    ImportErrors = [Invalid, TurnConflict] + AgentCommand + File + SessionLimits;
}

/// The media type of JSON lines.
const JSON_LINES: &str = "application/jsonl";

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(export))
        .routes(routes!(import))
}

/// The dialect in which a session is written.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum DialectName {
    /// The whole tree, as entries that pi reads.
    #[default]
    Pi,
    /// The session's thread, as lines that aix reads.
    Aix,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Pi => Self::Pi,
            DialectName::Aix => Self::Aix,
        }
    }
}

/// Query that selects a dialect.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportParams {
    /// `pi` (without): the tree of the session, as far as you see it. `aix`: its thread.
    #[param(inline)]
    dialect: Option<DialectName>,
}

/// Exports a session as a file of JSON lines, 32 MiB at most.
///
/// The same session gives the same bytes. Imported into another host, they give the same turns.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/export", tag = "sessions",
    operation_id = "exportSession",
    security(("token" = ["read"])),
    params(SessionInPath, ExportParams),
    responses(
        (
            status = 200,
            description = "The file.",
            body = inline(FileContent),
            content_type = "application/jsonl",
        ),
    ),
)]
pub(super) async fn export(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<ExportParams>,
) -> Result<Response, Refused<ExportErrors>> {
    let dialect = params.dialect.unwrap_or_default();
    let file = caller
        .reading(&api)?
        .transcripts()
        .export(&caller.user, &target, session, dialect.into())
        .await?;
    let name = match dialect {
        DialectName::Pi => "pi",
        DialectName::Aix => "aix",
    };
    let disposition =
        HeaderValue::from_str(&format!("attachment; filename=\"{session}.{name}.jsonl\""));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(JSON_LINES)),
        (
            CONTENT_DISPOSITION,
            disposition.unwrap_or(HeaderValue::from_static("attachment")),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    Ok((headers, Body::from(file)).into_response())
}

/// The result of an import.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ImportedTranscript {
    /// The session that there is now: the one of the file where its id was free.
    session_id: SessionId,
    /// Its agent.
    agent_id: AgentId,
    /// `pi` or `aix`.
    #[schema(inline)]
    dialect: DialectName,
    /// True if a host of this kind wrote the file. Its turns are then verified and keep their ids.
    /// Otherwise turns are built from the file, and everything in them counts as untrusted.
    exact: bool,
    /// Turns that came in.
    turns: u64,
    /// Turns that were here already, exactly so.
    known: u64,
    /// Lines of another program's file that have no place here.
    left_out: u64,
    /// Lines of another program's file that cannot be read and were passed over, 100 at most: each
    /// with its number, and what is wrong with it.
    passed_over: Vec<String>,
}

/// Imports a session from a file of JSON lines, in pi's dialect or aix's, 32 MiB at most.
///
/// It imports the turns, and opens a chat that points to their head. The dialect, and whether a
/// host of this kind wrote the file, are detected from the file.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/import", tag = "sessions",
    operation_id = "importSession",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path of the agent."), IdempotencyKey),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "The file, of any media type.",
    ),
    responses(
        (
            status = 201,
            description = "It is here.",
            body = ImportedTranscript,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
pub(super) async fn import(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    request: Request,
) -> Result<Created<ImportedTranscript>, Refused<ImportErrors>> {
    let (parts, body) = request.into_parts();
    media_type(&parts.headers)?;
    // Whoever may not is told before they have sent all of it.
    api.command()?
        .transcripts()
        .may_import(&caller.user, &target)
        .await?;
    let _permit = api.upload_permit(&caller.user).await?;
    let whose = "a session's file";
    let file = read_file(whose, TRANSCRIPT_BYTES_MAX, &parts.headers, body).await?;
    let share = api.session_share(&caller, key.by(&caller.user).key).await?;
    let imported = api
        .command()?
        .transcripts()
        .import(key.by(&caller.user), ImportSession { target, file })
        .await?;
    share.keep();
    let location = format!(
        "/api/agents/{}/sessions/{}",
        imported.agent, imported.session
    );
    let dialect = match imported.dialect {
        Dialect::Pi => DialectName::Pi,
        Dialect::Aix => DialectName::Aix,
    };
    let view = ImportedTranscript {
        session_id: imported.session,
        agent_id: imported.agent,
        dialect,
        exact: imported.exact,
        turns: imported.turns,
        known: imported.known,
        left_out: imported.left_out,
        passed_over: imported.passed_over,
    };
    Ok(Created { location, view })
}

//! An agent's notes: list, search, forget, and the reading of a session into notes.

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Params, SessionInPath, TargetAgent, TargetSession,
    existing, limit, read_path,
};
use crate::problem::Problem;
use crate::routing::routes;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::WantedNotes;
use domain::id::{NoteId, SessionId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    ForgetErrors = [NoteNotFound] + AgentCommand;
    ReadErrors = [
        MemoryNotConfigured, SessionClosed, SessionQuarantined, SessionStructured,
    ] + AgentCommand + Session;
}

/// Notes in one answer, unless others are asked for, and at most.
const NOTES: (usize, usize) = (20, 50);

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(read))
        .routes(routes!(list))
        .routes(routes!(forget))
}

/// Query for notes.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct NoteParams {
    /// Words to search for. A note with any of them is found, the best first. Without it, the
    /// latest notes come first.
    q: Option<String>,
    /// Only notes before this one: the `before` of the answer that came before. Not with `q`.
    before: Option<u64>,
    /// Maximum number of notes, from 1 to 50; 20 by default.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
}

/// Notes of an agent.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Notes {
    /// The notes.
    notes: Vec<wire::NoteView>,
    /// The place to go on from, if there may be more: the next request's `before`. Never after a
    /// search.
    before: Option<u64>,
}

/// A note that is gone.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Forgotten {
    /// The note.
    note_id: NoteId,
    /// Always true.
    forgotten: bool,
}

/// A session that is to be read.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ToBeRead {
    /// The session.
    session_id: SessionId,
}

/// Lists an agent's notes, or searches them.
///
/// You see the notes of your own sessions, and those of all sessions that your role shows you. A
/// mentee sees their own alone.
#[utoipa::path(
    get, path = "/api/agents/{id}/memory", tag = "agents",
    operation_id = "listNotes",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path of the agent."), NoteParams),
    responses((status = 200, description = "The notes.", body = Notes)),
)]
async fn list(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    Params(NoteParams {
        q,
        before,
        limit: asked,
    }): Params<NoteParams>,
) -> Result<axum::Json<Notes>, Refused<codes::Agent>> {
    let (without, max) = NOTES;
    let limit = limit(asked, without, max)?;
    if q.is_some() && before.is_some() {
        let detail = "`before` goes through the latest notes; what `q` finds comes at once, the \
                      best first: leave one of both out";
        return Err(Problem::invalid_query("before", detail).into());
    }
    let pages = q.is_none();
    let wanted = WantedNotes {
        words: q,
        before,
        limit,
    };
    let notes = caller
        .reading(&api)?
        .memory()
        .notes(&caller.user, &target, wanted)
        .await?;
    let last = notes.last().map(|note| note.position);
    Ok(axum::Json(Notes {
        notes: notes.iter().map(wire::note).collect(),
        before: last.filter(|_| pages && notes.len() == limit),
    }))
}

/// Forgets a note.
///
/// Its text is erased from the store; that there was a note stays on record. The conversation
/// that it was taken from stays as it is. You may forget the notes of your own sessions; as primary
/// or shared, all that you see.
#[utoipa::path(
    delete, path = "/api/agents/{id}/memory/{note}", tag = "agents",
    operation_id = "deleteNote",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        ("note" = String, Path, description = "The `note_id`."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "It is forgotten.", body = Forgotten)),
)]
async fn forget(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, note)): InPath<(String, String)>,
    key: Idempotency,
) -> Result<axum::Json<Forgotten>, Refused<ForgetErrors>> {
    let note: NoteId = read_path("note", &note)?;
    api.command()?
        .memory()
        .forget(key.by(&caller.user), &existing(&id)?, note)
        .await?;
    Ok(axum::Json(Forgotten {
        note_id: note,
        forgotten: true,
    }))
}

/// Has a chat read into notes now.
///
/// The memory agent of the session's agent (`memory` in its definition) is handed what it has not
/// read yet, as soon as no turn is open. A chat that is idle for some time is read automatically.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/memory", tag = "sessions",
    operation_id = "createSessionNotes",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 202, description = "It will be read.", body = ToBeRead)),
)]
async fn read(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<ToBeRead>), Refused<ReadErrors>> {
    api.command()?
        .memory()
        .read_session(key.by(&caller.user), &target, session)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(ToBeRead {
            session_id: session,
        }),
    ))
}
